"""What all removals together show: the likely retention, and sweeps over several groups."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from exhume.analysis.detectors.cases import PartitionCase, TopicCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.removal_evidence import removed_together
from exhume.analysis.removals.causes import WINDOWS, KnownRetention
from exhume.analysis.removals.evidence import RemovedOffset
from exhume.analysis.removals.judge import age_of
from exhume.analysis.removals.sweeps import AgedRemoval, IdleGroup, Sweeps, sweeps_of
from exhume.durations import DAY_MS


@dataclass(slots=True)
class RemovalFacts:
    """The facts of some logs about removals.

    Attributes:
        swept: The groups that lost offsets right after a whole number of days, by that time in ms.
        aged: The removals whose ages alone decide whether the offsets were due.
        idle: The groups without members that kept offsets; empty if no removal is in `aged`.
    """

    swept: dict[int, set[str]] = field(default_factory=dict)
    aged: list[AgedRemoval] = field(default_factory=list)
    idle: list[IdleGroup] = field(default_factory=list)

    def add(self, other: RemovalFacts) -> None:
        """Add the facts of other logs."""
        for retention_ms, groups in other.swept.items():
            self.swept.setdefault(retention_ms, set()).update(groups)
        self.aged += other.aged
        self.idle += other.idle

    def retention(self, given_ms: int | None) -> KnownRetention:
        """Return the retention: as given, or the one that these removals suggest."""
        return KnownRetention(given_ms, most_likely_ms(self.swept) if given_ms is None else given_ms)

    def sweeps(self, retention: KnownRetention) -> Sweeps:
        """Return the sweeps among these removals."""
        return sweeps_of(self.aged, self.idle, retention)


def learn_removals(case: TopicCase, inputs: Inputs) -> None:
    """Set the retention and the sweeps of all logs of this case. The retention is the given one, or the one that removals suggest."""
    facts = RemovalFacts()
    for partition in case.partitions:
        facts.add(removal_facts(partition))
    retention = facts.retention(inputs.retention_ms)
    sweeps = facts.sweeps(retention)
    for partition in case.partitions:
        partition.log_context.likely_retention_ms, partition.log_context.sweeps = retention.likely_ms, sweeps


def removal_facts(partition: PartitionCase) -> RemovalFacts:
    """Return the facts of one log."""
    facts, swept = RemovalFacts(), defaultdict[int, set[str]](set)
    with_tombstones = {each.group for each in partition.tombstones}
    for group in partition.groups:
        if group.group not in with_tombstones:
            continue
        for together in removed_together(group):
            for retention_ms in filter(None, map(_whole_days_ms, together)):
                swept[retention_ms].add(group.group)
            facts.aged += _aged(group.group, together)
        group.forget()
    facts.swept = dict(swept)
    facts.idle += _idle(partition)
    return facts


def _whole_days_ms(removed: RemovedOffset) -> int | None:
    """Return the whole days after which this offset was removed by the next run of the expiry task; None if it was not."""
    age = age_of(removed, KnownRetention())
    days, late_ms = divmod(age.age_ms, DAY_MS) if age is not None else (0, 0)
    return days * DAY_MS if 1 <= days <= WINDOWS.most_retention_days and late_ms <= WINDOWS.next_pass_ms else None


def _aged(group: str, together: list[RemovedOffset]) -> Iterator[AgedRemoval]:
    """Yield this removal if the expiry task may have removed all of its offsets, with some retention."""
    time_ms = together[0].timestamp_ms
    ages = [age_of(each, KnownRetention()) for each in together if each.may_expire_by_age]
    ages_ms = tuple(age.age_ms for age in ages if age is not None)
    if time_ms is not None and len(ages_ms) == len(together) and min(ages_ms) >= WINDOWS.least_retention_ms:
        yield AgedRemoval(time_ms, group, frozenset(each.topic for each in together), ages_ms)


def _idle(partition: PartitionCase) -> Iterator[IdleGroup]:
    for group in partition.groups:
        if group.phase in ("empty", "unrecorded"):
            oldest_ms = group.keys.oldest_commit_ms()
            if oldest_ms is not None:
                yield IdleGroup(group.group, group.records[-1].timestamp_ms if group.records else None, oldest_ms)
        group.forget()


def most_likely_ms(swept: Mapping[int, Iterable[str]]) -> int | None:
    """Return the retention that these groups suggest: a default, or a whole number of days after which several groups lost offsets.

    The largest number of groups decides, then the longer retention. Returns None if nothing suggests one.
    """
    votes = Counter({retention_ms: len({*groups}) for retention_ms, groups in swept.items()})
    candidates = [each for each in votes if each in WINDOWS.default_retentions_ms or votes[each] > 1]
    return max(candidates, key=lambda retention_ms: (votes[retention_ms], retention_ms), default=None)
