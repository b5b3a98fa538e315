"""Find offsets that were committed from outside the group while it had no members: by an operator, or by replication."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.commits import Change
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import counted, finding, some, span
from exhume.analysis.detectors.set_back import find_set_back
from exhume.analysis.memberships import Membership
from exhume.findings import Finding

#: Commits this close together are of one request, or of one round of requests.
_TOGETHER_MS = 5000
#: An operator commits at most this often to an empty group.
_MOST_RESETS = 5
#: A period has at least this many rounds. Three in four intervals differ from the median by at most a quarter.
_ROUNDS = 4
_SPREAD = 0.25
_LEAST_PERIOD_MS = 10_000
#: The default interval of MirrorMaker 2.
_MIRROR_PERIOD_MS = 60_000


@dataclass(frozen=True, slots=True)
class _Burst:
    """Commits to a group without members, close together."""

    changes: list[tuple[KeyHistory, Change]]

    @property
    def rounds(self) -> int:
        """The largest number of commits of one key."""
        return max(Counter((key.topic, key.partition) for key, _ in self.changes).values())

    @property
    def timestamp_ms(self) -> int:
        return self.changes[0][1].commit.timestamp_ms or 0

    @property
    def record_offset(self) -> int:
        return self.changes[0][1].commit.record_offset

    @property
    def is_stock(self) -> bool:
        """True if all commits are as those of kafka-consumer-groups.sh: without leader epoch and metadata."""
        return all(change.commit.leader_epoch == -1 and not change.commit.metadata_bytes for _, change in self.changes)

    @property
    def shares_batches(self) -> bool:
        """True if one batch contains several partitions."""
        return len(self.changes) > len({change.commit.byte_position for _, change in self.changes})

    @property
    def moved(self) -> int:
        """The number of commits that changed the value."""
        return sum(bool(change.delta) for _, change in self.changes)


def find_operator_resets(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """Commits to a group with a protocol type while it had no members, once or a few times: not at regular intervals, and at most five
    times before a member joins again.

    kafka-consumer-groups.sh resets offsets this way, without leader epoch and metadata. It is likely if one batch contains several
    partitions, most of them get another value, and members join later.

    Also all, or nearly all, offsets of a topic that went far back together, while their owners stayed or the group has no members at all:
    by twenty usual rises and 100 offsets or more, and no later commit undoes it. A tool, an older checkpoint or a seek of the application
    does that. A group that does it more than three times does so on purpose.
    """
    yield from find_set_back(group)
    bursts = _bursts(group)
    if _period_ms([burst.timestamp_ms for burst in bursts]) is not None:
        return
    steps = [group.membership_before(burst.record_offset) for burst in bursts]
    # Bursts with the same step come before the next member joins.
    rounds: Counter[int] = Counter()
    for step, burst in zip(steps, bursts, strict=True):
        rounds[id(step)] += burst.rounds
    for burst, step in zip(bursts, steps, strict=True):
        if step is None or not step.is_empty or rounds[id(step)] > _MOST_RESETS:
            continue
        if step.kind != "classic" or step.protocol_type is not None:
            yield _reset(group, burst, step, len(bursts))


def _bursts(group: GroupCase) -> list[_Burst]:
    """Return the plain commits while the group had no members, in log order."""
    changes = sorted(
        (
            (key, change)
            for key in group.keys.with_changes("while_empty")
            for change in key.of("while_empty")
            if change.commit.producer_id is None
        ),
        key=lambda each: each[1].commit.record_offset,
    )
    bursts: list[_Burst] = []
    last: Change | None = None
    for key, change in changes:
        if last is None or (change.commit.timestamp_ms or 0) - (last.commit.timestamp_ms or 0) > _TOGETHER_MS:
            bursts.append(_Burst([]))
        bursts[-1].changes.append((key, change))
        last = change
    return bursts


def _reset(group: GroupCase, burst: _Burst, step: Membership, bursts: int) -> Finding:
    later = next((each for each in group.memberships if each.record_offset > burst.record_offset and not each.is_empty), None)
    signs = sum((burst.shares_batches, burst.is_stock, burst.moved * 2 > len(burst.changes), later is not None))
    emptied_ms = step.state_timestamp_ms if step.state_timestamp_ms is not None else step.timestamp_ms
    when = "while the group was Empty" if emptied_ms is None else f"{span(burst.timestamp_ms - emptied_ms)} after the group became Empty"
    moves = [_move(key, change) for key, change in burst.changes]
    topics = {key.topic for key, _ in burst.changes}
    not_excluded = ["a consumer with assign() and the same group id (IC-24)", "a single round of replication (IC-33)"]
    return finding(
        "IC-05b",
        f"{counted(len(burst.changes), 'offset')} reset {when}: {some(moves)}",
        group,
        severity="warn" if burst.is_stock and burst.moved else "info",
        confidence="likely" if signs >= 3 and burst.is_stock else "possible",
        topic=next(iter(topics)) if len(topics) == 1 else None,
        partition=burst.changes[0][0].partition if len(burst.changes) == 1 else None,
        evidence=[step, *(change for _, change in burst.changes), *([later] if later is not None else [])],
        not_excluded=not_excluded if bursts > 1 or signs < 4 else [],
    )


def _move(key: KeyHistory, change: Change) -> str:
    """Format the committed offset before and after this commit."""
    if change.before is None:
        return f"{key.topic}-{key.partition} → {change.commit.committed_offset}"
    return f"{key.topic}-{key.partition} {change.before.committed_offset} → {change.commit.committed_offset} ({change.delta:+d})"


def find_replicated_positions(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """Commits at regular intervals to a group without members, all of them without a leader epoch: replication writes them.

    MirrorMaker 2 commits every 60 s. It is a warning if such an offset goes back, is beyond the end of the local topic, or if members join
    the group during the replication.
    """
    bursts = _bursts(group)
    period_ms = _replication_period_ms(group, bursts)
    if period_ms is None:
        return
    keys = [key for key in group.keys if key.commits and not key.transactional]
    if not keys or _has_leader_epochs(keys, bursts):
        return
    alarms, evidence = _alarms(group, keys, bursts, inputs)
    is_mirror = abs(period_ms - _MIRROR_PERIOD_MS) <= _SPREAD * _MIRROR_PERIOD_MS
    synced = f"offsets of {counted(len(keys), 'partition')} every {span(period_ms)}"
    sentence = f"a process outside the group commits {synced}, while the group has no members"
    yield finding(
        "IC-33",
        f"{sentence}{'; ' if alarms else ''}{'; '.join(alarms)}",
        group,
        severity="warn" if alarms else "info",
        confidence="likely" if is_mirror else "possible",
        evidence=[*evidence, *(key.last for key in keys if key.last is not None)],
        not_excluded=[] if is_mirror else ["a consumer with assign() that commits at regular intervals"],
        remedy="Compare these offsets with the checkpoints of MirrorMaker 2: it may have written source offsets without translation"
        if alarms
        else None,
    )


def _replication_period_ms(group: GroupCase, bursts: Sequence[_Burst]) -> float | None:
    """Return the period of the commits to a group without members; None if they are few or not regular."""
    if bursts or any(record.phase == "active" for record in group.records):
        return _period_ms([burst.timestamp_ms for burst in bursts])
    # The group never had members, and may have no group record. Only the numbers of its commits are kept.
    rounds = [interval for interval in group.last_intervals_ms if interval > _TOGETHER_MS]
    return _regular(rounds) if len(group.last_intervals_ms) < 2 * len(rounds) or len(group.keys) > 1 else None


def _has_leader_epochs(keys: Sequence[KeyHistory], bursts: Sequence[_Burst]) -> bool:
    """Return True if a commit while the group had no members has a leader epoch."""
    if any(change.commit.leader_epoch != -1 for burst in bursts for _, change in burst.changes):
        return True
    return any(key.without_leader_epoch < key.commits for key in keys if not key.count_of.get("while_empty"))


def _alarms(
    group: GroupCase, keys: Sequence[KeyHistory], bursts: Sequence[_Burst], inputs: Inputs
) -> tuple[list[str], list[Change | Membership]]:
    alarms: list[str] = []
    evidence: list[Change | Membership] = []
    for key in keys:
        rewinds = [change for change in key.of("rewind") if change.phase != "active"]
        for change in rewinds:
            assert change.before is not None
            alarms.append(f"{key.topic}-{key.partition} went back: {change.before.committed_offset} → {change.commit.committed_offset}")
            evidence.append(change)
        end = (inputs.end_offsets or {}).get((key.topic, key.partition))
        if end is not None and key.holds is not None and key.holds.committed_offset > end:
            alarms.append(f"{key.topic}-{key.partition} is at {key.holds.committed_offset}, and its local log ends at {end}")
    if bursts:
        between = (bursts[0].record_offset, bursts[-1].record_offset)
        members = next((step for step in group.memberships if between[0] < step.record_offset < between[1] and step.members), None)
        if members is not None:
            alarms.append(f"{counted(len(members.members), 'member')} joined at record {members.record_offset}, during the replication")
            evidence.append(members)
    return alarms[:_ROUNDS], evidence


def _period_ms(times: Sequence[int]) -> float | None:
    """Return the period of these rounds; None if they are few or not regular."""
    return _regular([later - earlier for earlier, later in pairwise(times)])


def _regular(intervals: Sequence[int]) -> float | None:
    if len(intervals) < _ROUNDS - 1:
        return None
    usual = median(intervals)
    if usual < _LEAST_PERIOD_MS:
        return None
    regular = sum(abs(interval - usual) <= _SPREAD * usual for interval in intervals)
    return usual if regular >= (1 - _SPREAD) * len(intervals) else None


DETECTORS = (
    Detector(
        code="IC-05b",
        title="Offsets reset by an operator, or set back together",
        section="Offsets moved",
        in_group=find_operator_resets,
        traps=(
            "Replication commits the same way, but at regular intervals (IC-33)",
            "A consumer with assign() and the same group id commits while the group is Empty, again and again (IC-24)",
            "Some clients never send leader epochs",
            "A reset to the committed offset changes nothing; its finding is `info`",
        ),
    ),
    Detector(
        code="IC-33",
        title="Positions written by cluster replication",
        section="Offsets moved",
        in_group=find_replicated_positions,
        traps=(
            "An operator resets offsets once, not at regular intervals",
            "Replication repeats the same values; that is normal",
        ),
        better_with=("--end-offsets",),
    ),
)
