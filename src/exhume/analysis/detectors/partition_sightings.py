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

#: For each partition: the first and the last time of a commit, and the highest last committed offset of a group with its time.
_Sighting = tuple[int, int, int, int]
Times = Mapping[str, Mapping[int, _Sighting]]


class PartitionSightings:
    """The commits of all groups of all logs, partition by partition. A partition that exists has all lower ones beside it."""

    def __init__(self, *parts: Times) -> None:
        self._times: dict[str, dict[int, _Sighting]] = {}
        for times in parts:
            for topic, listed in times.items():
                known = self._times.setdefault(topic, {})
                for partition, each in listed.items():
                    before = known.get(partition, each)
                    known[partition] = min(each[0], before[0]), max(each[1], before[1]), *max(each[2:], before[2:])
        #: By topic: the partitions in order, and the first time at which each of them or a higher one was named.
        self._ordered: dict[str, tuple[Sequence[int], Sequence[int]]] = {}

    def since_ms(self, topic: str, partition: int) -> int | None:
        """Return the first time of a commit that shows that this partition exists; None if there is none."""
        partitions, firsts = self._of(topic)
        place = bisect_left(partitions, partition)
        return firsts[place] if place < len(partitions) else None

    def reached_since(self, topic: str, partition: int, from_ms: int) -> int | None:
        """Return the highest last committed offset of all groups, if its commit is not before this time."""
        found = self._times.get(topic, {}).get(partition)
        return None if found is None or found[3] < from_ms else found[2]

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


def times_of(histories: KeyHistories) -> dict[str, dict[int, _Sighting]]:
    """Return the commits of each partition in one log."""
    names = histories.names
    keys = np.arange(names.key_count)
    firsts = histories.numbers(KeyColumn.FIRST_TIME, keys)
    lasts, values = histories.last[: len(keys), CommitColumn.TIME], histories.last[: len(keys), CommitColumn.VALUE]
    topics, partitions = names.topics_and_partitions(keys)
    wanted = np.flatnonzero((firsts != NONE) & (lasts != NONE) & (histories.numbers(KeyColumn.COMMITS, keys) > 0) & (partitions >= 0))
    order = wanted[np.lexsort((lasts[wanted], values[wanted], partitions[wanted], topics[wanted]))]
    codes = topics[order] << 32 | partitions[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    if not len(starts):
        return {}
    first, last = np.minimum.reduceat(firsts[order], starts), np.maximum.reduceat(lasts[order], starts)
    # The highest value of a partition comes last.
    highest = order[np.append(starts[1:], len(order)) - 1]
    columns = (codes[starts], first, last, values[highest], lasts[highest])
    listed, found = names.topics(), dict[str, dict[int, _Sighting]]()
    for code, *sighting in zip(*(column.tolist() for column in columns), strict=True):
        if is_plausible((code & 0xFFFFFFFF) + 1):
            found.setdefault(listed[code >> 32], {})[code & 0xFFFFFFFF] = sighting[0], sighting[1], sighting[2], sighting[3]
    return found
