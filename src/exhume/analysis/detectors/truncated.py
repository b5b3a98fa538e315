"""Find topic partitions that an election truncated: their committed offsets go back when the leader epoch rises, or in several groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from exhume.analysis.detectors.cases import GroupCase, LogContext, TopicCase
from exhume.analysis.detectors.commit_loops.columns import CommitColumn
from exhume.analysis.detectors.commits import GROUP_PHASES, Change
from exhume.analysis.detectors.report import counted, finding, some
from exhume.analysis.number_columns import NONE
from exhume.durations import MINUTE_MS
from exhume.findings import Finding

#: The offsets of a truncated partition go back within this time, in all groups that read it.
_TOGETHER_MS = 15 * MINUTE_MS
#: A key that goes back more often has another cause.
_MOST_FALLS = 3
#: The least number of groups whose offsets go back, if no leader epoch shows the election.
_LEAST_READERS = 2


@dataclass(frozen=True, slots=True)
class _Fall:
    group: str
    log_context: LogContext
    change: Change

    @property
    def is_new_leader(self) -> bool:
        """True if the leader epoch rose from the commit before to this one."""
        before = self.change.before
        return before is not None and self.change.commit.leader_epoch > before.leader_epoch >= 0

    @property
    def move(self) -> str:
        before = None if self.change.before is None else self.change.before.committed_offset
        return f"{self.group} {before} → {self.change.commit.committed_offset} ({self.change.delta:+d})"


def find_truncated(case: TopicCase) -> Iterator[Finding]:
    """Find truncated topic partitions: see `find_recreated_topics`."""
    by_partition: defaultdict[tuple[str, int], list[_Fall]] = defaultdict(list)
    topics: defaultdict[str, set[int]] = defaultdict(set)
    for group in case.groups():
        for place, fall in _falls(group):
            by_partition[place].append(fall)
            topics[place[0]].add(place[1])
        group.forget()
    for place, falls in sorted(by_partition.items()):
        falls.sort(key=lambda fall: fall.change.commit.timestamp_ms or 0)
        with_epoch = [fall for fall in falls if fall.is_new_leader]
        first_ms = ((with_epoch or falls)[0].change.commit.timestamp_ms) or 0
        together = [fall for fall in falls if abs((fall.change.commit.timestamp_ms or 0) - first_ms) <= _TOGETHER_MS]
        groups = {fall.group for fall in together}
        # If most partitions of a topic go back, the topic was created again, or its readers went back.
        is_alone = len(topics[place[0]]) == 1
        if with_epoch or (is_alone and len(groups) >= _LEAST_READERS):
            yield _truncated(place, together, is_new_leader=bool(with_epoch), groups=len(groups))


def _falls(group: GroupCase) -> Iterator[tuple[tuple[str, int], _Fall]]:
    rewinds = group.keys.changed("rewind")
    if not len(rewinds):
        return
    is_rare = group.keys.counts_of("rewind")[rewinds.places] <= _MOST_FALLS
    is_plain = rewinds.commit(CommitColumn.IS_STAGED) == 0
    is_alone = ~rewinds.has("leader_epoch", "topic_id", "while_empty")
    has_time = rewinds.commit(CommitColumn.TIME) != NONE
    phases = [GROUP_PHASES.index(phase) for phase in ("active", "unrecorded")]
    falls = rewinds.where(is_rare & is_plain & is_alone & has_time & np.isin(rewinds.commit(CommitColumn.PHASE), phases))
    names = group.keys.names
    for place, change in zip(falls.places.tolist(), falls.changes(), strict=True):
        yield names[place], _Fall(group.group, group.log_context, change)


def _truncated(place: tuple[str, int], falls: Sequence[_Fall], *, is_new_leader: bool, groups: int) -> Finding:
    topic, partition = place
    log_context = falls[0].log_context
    how = "when its leader epoch rose" if is_new_leader else "within minutes"
    names = sorted({fall.group for fall in falls})
    return finding(
        "IC-07",
        f"the offsets of {topic}-{partition} went back {how}, in {counted(groups, 'group')}, as after an unclean leader election that"
        f" truncated it: {some([fall.move for fall in falls])}",
        log_context,
        severity="warn",
        confidence="likely" if is_new_leader and groups >= _LEAST_READERS else "possible",
        group=names[0] if len(names) == 1 else None,
        topic=topic,
        partition=partition,
        evidence=[fall.change for fall in falls if fall.log_context is log_context],
        not_excluded=("commits in the memory of a previous owner (IC-02)", "an application that went back on purpose"),
        remedy="Check the broker log for an unclean election or a truncation: records at the offsets above may be lost",
    )
