"""Infer the retention of a cluster from its removals."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from exhume.analysis.detectors.cases import TopicCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.removal_evidence import removed_offset
from exhume.analysis.removals.causes import WINDOWS, KnownRetention
from exhume.analysis.removals.judge import age_of
from exhume.durations import DAY_MS


def learn_retention(case: TopicCase, inputs: Inputs) -> None:
    """Set the retention of all logs of this case: the given one, or the one that its removals suggest."""
    retention_ms = inputs.retention_ms if inputs.retention_ms is not None else likely_retention_ms(case)
    for partition in case.partitions:
        partition.log_context.likely_retention_ms = retention_ms


def likely_retention_ms(case: TopicCase) -> int | None:
    """Return the retention that tombstones suggest: a default, or a whole number of days after which several groups lost offsets.

    The largest number of groups decides, then the longer retention. Returns None if nothing suggests one.
    """
    return most_likely_ms(swept_groups(case))


def swept_groups(case: TopicCase) -> dict[int, set[str]]:
    """Return the groups that lost offsets right after a whole number of days, by that time in ms."""
    swept: defaultdict[int, set[str]] = defaultdict(set)
    for partition in case.partitions:
        with_tombstones = {each.group for each in partition.tombstones}
        for group in partition.groups:
            if group.group not in with_tombstones:
                continue
            for key in group.keys.with_removals():
                for removal in key.removals:
                    age = age_of(removed_offset(group, key, removal), KnownRetention())
                    days, late_ms = divmod(age.age_ms, DAY_MS) if age is not None else (0, 0)
                    if 1 <= days <= WINDOWS.most_retention_days and late_ms <= WINDOWS.next_pass_ms:
                        swept[days * DAY_MS].add(group.group)
            group.forget()
    return dict(swept)


def most_likely_ms(swept: Mapping[int, set[str]]) -> int | None:
    """Return the retention that most of these groups suggest: see `likely_retention_ms`."""
    votes = Counter(
        {
            retention_ms: len(groups)
            for retention_ms, groups in swept.items()
            if retention_ms in WINDOWS.default_retentions_ms or len(groups) > 1
        }
    )
    return max(votes, key=lambda retention_ms: (votes[retention_ms], retention_ms), default=None)
