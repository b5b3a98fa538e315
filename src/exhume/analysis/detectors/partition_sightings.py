"""The times at which commits of any group named the partitions of a topic: they show since when a partition exists."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from exhume.analysis.detectors.commit_loops.columns import CommitColumn, KeyColumn
from exhume.analysis.number_columns import NONE
from exhume.analysis.topic_sizes import is_plausible

if TYPE_CHECKING:
    from exhume.analysis.detectors.key_histories import KeyHistories

#: The first and the last time of a commit for each partition, by topic.
Times = Mapping[str, Mapping[int, tuple[int, int]]]


class PartitionSightings:
    """The commits of all groups of all logs, partition by partition. A partition that exists has all lower ones beside it."""

    def __init__(self, *parts: Times) -> None:
        self._times: dict[str, dict[int, tuple[int, int]]] = {}
        for times in parts:
            for topic, listed in times.items():
                known = self._times.setdefault(topic, {})
                for partition, (first, last) in listed.items():
                    before = known.get(partition, (first, last))
                    known[partition] = min(first, before[0]), max(last, before[1])
        #: By topic: the partitions in order, and the first time at which each of them or a higher one was named.
        self._ordered: dict[str, tuple[Sequence[int], Sequence[int]]] = {}

    def since_ms(self, topic: str, partition: int) -> int | None:
        """Return the first time of a commit that shows that this partition exists; None if there is none."""
        partitions, firsts = self._of(topic)
        place = bisect_left(partitions, partition)
        return firsts[place] if place < len(partitions) else None

    def count_since(self, topic: str, count: int, after_ms: int) -> int:
        """Return the number of partitions after the topic grew from `count` partitions, later than this time; `count` if it did not."""
        partitions, _ = self._of(topic)
        since_ms = self.since_ms(topic, count)
        return partitions[-1] + 1 if since_ms is not None and since_ms > after_ms else count

    def _of(self, topic: str) -> tuple[Sequence[int], Sequence[int]]:
        if topic not in self._ordered:
            times = self._times.get(topic, {})
            partitions = sorted(times)
            firsts = [*accumulate((times[partition][0] for partition in reversed(partitions)), min)][::-1]
            self._ordered[topic] = partitions, firsts
        return self._ordered[topic]


def times_of(histories: KeyHistories) -> dict[str, dict[int, tuple[int, int]]]:
    """Return the first and the last commit time of each partition in one log."""
    names = histories.names
    keys = np.arange(names.key_count)
    firsts, lasts = histories.numbers(KeyColumn.FIRST_TIME, keys), histories.last[: len(keys), CommitColumn.TIME]
    topics, partitions = names.topics_and_partitions(keys)
    wanted = np.flatnonzero((firsts != NONE) & (lasts != NONE) & (histories.numbers(KeyColumn.COMMITS, keys) > 0) & (partitions >= 0))
    order = wanted[np.lexsort((partitions[wanted], topics[wanted]))]
    codes = topics[order] << 32 | partitions[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    if not len(starts):
        return {}
    first, last = np.minimum.reduceat(firsts[order], starts), np.maximum.reduceat(lasts[order], starts)
    listed, found = names.topics(), dict[str, dict[int, tuple[int, int]]]()
    for code, *times in zip(codes[starts].tolist(), first.tolist(), last.tolist(), strict=True):
        if is_plausible((code & 0xFFFFFFFF) + 1):
            found.setdefault(listed[code >> 32], {})[code & 0xFFFFFFFF] = times[0], times[1]
    return found
