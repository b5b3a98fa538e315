"""How long a cluster keeps offsets, as far as what it removed speaks for it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from exhume.analysis.detectors.cases import GroupCase, TopicCase
from exhume.analysis.detectors.commits import Removal
from exhume.durations import DAY_MS

#: Passes come every ten minutes by default; what they remove has been due for so long at most, with a minute for clocks and work.
CHECK_MS = 11 * 60_000
#: The defaults of brokers, now and before 2.0.
DEFAULTS_MS = (7 * DAY_MS, DAY_MS)
_MOST_DAYS = 366


def age_of(group: GroupCase, removal: Removal) -> tuple[int, str] | None:
    """How old what this tombstone removed was, as an expiry pass counts, and what that is counted from; None where nobody knows.

    Of an Empty classic group it counts from when the group became Empty, of everything else from the commit.
    """
    if removal.timestamp_ms is None:
        return None
    step = group.membership_before(removal.record_offset)
    is_empty_classic = step is not None and step.kind == "classic" and step.is_empty and not step.is_tombstone
    if is_empty_classic and step is not None and step.protocol_type is not None and step.state_timestamp_ms is not None:
        return removal.timestamp_ms - step.state_timestamp_ms, "the group became Empty"
    if removal.value is None:
        return None
    return removal.timestamp_ms - removal.value.commit_timestamp_ms, "the commit"


def likely_retention_ms(case: TopicCase) -> int | None:
    """The retention that tombstones speak for: a default, or a whole number of days that several groups were swept right behind.

    None where nothing stands out. The most groups decide, of as many the longer retention.
    """
    return most_likely_ms(swept_groups(case))


def swept_groups(case: TopicCase) -> dict[int, set[str]]:
    """The groups that were swept right behind a whole number of days, by that time."""
    swept: defaultdict[int, set[str]] = defaultdict(set)
    for partition in case.partitions:
        with_tombstones = {name for _, name, _ in partition.sweeps}
        for group in partition.groups:
            if group.group not in with_tombstones:
                continue
            for removal in (removal for key in group.keys.with_removals() for removal in key.removals):
                age = age_of(group, removal)
                days, late_ms = divmod(age[0], DAY_MS) if age is not None else (0, 0)
                if 1 <= days <= _MOST_DAYS and late_ms <= CHECK_MS:
                    swept[days * DAY_MS].add(group.group)
            group.forget()
    return dict(swept)


def most_likely_ms(swept: Mapping[int, set[str]]) -> int | None:
    """The retention that most of these groups speak for: see `likely_retention_ms`."""
    votes = Counter({retention: len(groups) for retention, groups in swept.items() if retention in DEFAULTS_MS or len(groups) > 1})
    return max(votes, key=lambda retention: (votes[retention], retention), default=None)
