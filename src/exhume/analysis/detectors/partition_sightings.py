"""The times at which commits of any group named the partitions of a topic: they show since when a partition exists."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from exhume.analysis.detectors.commit_loops.columns import LEAST_REPEATS, CommitColumn, KeyColumn
from exhume.analysis.detectors.commits import PAUSE_RATIO
from exhume.analysis.number_columns import NONE, Flags, Int64s
from exhume.analysis.topic_sizes import is_plausible
from exhume.durations import MINUTE_MS

if TYPE_CHECKING:
    from exhume.analysis.detectors.key_histories import KeyHistories

#: A group commits rising offsets all the time if it has so many different commits, and no pause of this length.
_BUSY_COMMITS, _BUSY_PAUSE_MS = 20, 5 * MINUTE_MS

#: For each partition: the first and the last time of a commit; the highest last committed offset of a group with its time; and the longest
#: time, from and to, in which one group committed rising offsets without a pause (0 and 0 for none).
_Sighting = tuple[int, int, int, int, int, int]
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
                    busy = max(each[4:], before[4:], key=lambda times: times[1] - times[0])
                    known[partition] = min(each[0], before[0]), max(each[1], before[1]), *max(each[2:4], before[2:4]), *busy
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

    def rose_during(self, topic: str, partition: int, from_ms: int, to_ms: int) -> bool:
        """Return True if one group committed rising offsets from before this time to after it, without a pause."""
        found = self._times.get(topic, {}).get(partition)
        return found is not None and found[4] <= from_ms and found[5] >= to_ms

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
    is_busy = _is_busy(histories, order)
    lengths = np.where(is_busy, lasts[order] - firsts[order], 0)
    longest = np.lexsort((lengths, codes))
    busy = longest[np.append(starts[1:], len(order)) - 1]
    busy_from, busy_to = (np.where(lengths[busy] > 0, times[order[busy]], 0) for times in (firsts, lasts))
    columns = (codes[starts], first, last, values[highest], lasts[highest], busy_from, busy_to)
    listed, found = names.topics(), dict[str, dict[int, _Sighting]]()
    for code, *sighting in zip(*(column.tolist() for column in columns), strict=True):
        if is_plausible((code & 0xFFFFFFFF) + 1):
            low, high, value, at, begin, end = sighting
            found.setdefault(listed[code >> 32], {})[code & 0xFFFFFFFF] = low, high, value, at, begin, end
    return found


def _is_busy(histories: KeyHistories, keys: Int64s) -> Flags:
    """Return True for each key with many commits, and no pause or repeated offset for five minutes."""
    commits, repeats = (histories.numbers(column, keys) for column in (KeyColumn.COMMITS, KeyColumn.REPEATS))
    same_ms = histories.numbers(KeyColumn.LONGEST_LAST, keys) - histories.numbers(KeyColumn.LONGEST_FROM, keys)
    run_ms = histories.last[keys, CommitColumn.TIME] - histories.numbers(KeyColumn.SAME_FROM, keys)
    has_run = histories.numbers(KeyColumn.SAME_COUNT, keys) >= LEAST_REPEATS
    is_busy: Flags = (commits - repeats >= _BUSY_COMMITS) & (same_ms < _BUSY_PAUSE_MS) & ~(has_run & (run_ms >= _BUSY_PAUSE_MS))
    is_busy &= histories.numbers(KeyColumn.WAS_REWOUND, keys) == 0
    candidates = np.flatnonzero(is_busy)
    usual_ms = histories.intervals.medians(keys[candidates])
    for place, key, interval_ms in zip(candidates.tolist(), keys[candidates].tolist(), usual_ms, strict=True):
        # A longer pause than ten usual intervals is kept, so a shorter one than five minutes is not hidden here.
        is_often = interval_ms is not None and interval_ms * PAUSE_RATIO <= _BUSY_PAUSE_MS
        is_busy[place] = is_often and all(pause.length_ms < _BUSY_PAUSE_MS for pause in histories.pauses.get(key, ()))
    return is_busy
