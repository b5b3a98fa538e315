"""Where a stretch is cut, so that the state at a moment is what lies in front of a cut.

A cut lies between two batches, or behind some records of one. Where it lies by record offset follows from the offset alone. By time it lies
in front of the first record of the log that is later; a stretch knows the first one of its own, and the cut is there if no stretch in
front has one. What a moment by time has to say about the order of a log (`replay.moment`) is counted for each stretch, so that it can
be added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from exhume.codecs.kernels import records as columns
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.records import LEAST_BYTES, NO_TIMESTAMP, split
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.replay.moment import Clock, Moment
from exhume.replay.survivors.commit_times import take_commit_times

#: Times that never went back, with how often each came: so many different ones are remembered.
_MOST_HIGHS = 1 << 17


@dataclass(frozen=True, slots=True)
class RunOfBatches:
    """Batches `first` to `last` of `rows`, whose records lie in `data` from `bodies[:, 0]` to `bodies[:, 1]`."""

    rows: Int64s
    first: int
    last: int
    data: Bytes
    bodies: Int64s

    def records(self, first: int, last: int) -> Int64s | None:
        """The records of batches `first` to `last`, as columns of `kernels.records`; None where one is odd."""
        sizes = self.bodies[first:last, 1] - self.bodies[first:last, 0]
        room = int(np.clip(self.rows[first:last, scan.RECORD_COUNT], 0, sizes // LEAST_BYTES).sum())
        records = np.empty((columns.COLUMNS, room), np.int64)
        done, count = split(self.rows, first, last, self.data, self.bodies, records)
        return records[:, :count] if done == last else None


@dataclass(frozen=True, slots=True)
class Cut:
    """In front of batch `batch` of a run, or behind `taken` of its records: `end` is the byte of the run's data behind those, `last_offset`
    the record offset of the last one. `moments` are the numbers of the moments that end there.
    """

    batch: int
    moments: tuple[int, ...]
    taken: int = 0
    end: int = 0
    last_offset: int = 0


class OddRecords(Exception):
    """The records of a batch cannot be read in columns."""


class Cutter(Protocol):
    """Knows where to cut. Is given run after run of a stretch, in order, without the batches that nobody loads."""

    def cuts(self, run: RunOfBatches) -> Iterator[Cut]:
        """The cuts in this run, in order.

        Raises:
            OddRecords: a batch cannot be read in columns.
        """
        ...


def cutter_for(moments: Sequence[Moment | None], offsets_partition: int | None) -> Cutter | None:
    """What cuts a log of this offsets partition at these moments: one record offset, or times that ascend; None where none is cut off."""
    times_ms = [at.time_ms for at in moments if at is not None and at.time_ms is not None]
    first = moments[0]
    if first is None:
        return None
    if times_ms:
        assert len(times_ms) == len(moments)
        return TimeCutter(times_ms, first.clock)
    last_offset = first.last_offsets.get(offsets_partition)
    return None if last_offset is None else OffsetCutter(last_offset)


@dataclass(slots=True)
class OffsetCutter:
    """Cuts behind one record offset."""

    last_offset: int
    _is_done: bool = False

    def cuts(self, run: RunOfBatches) -> Iterator[Cut]:
        if self._is_done:
            return
        last_offsets = run.rows[run.first : run.last, scan.LAST_OFFSET]
        batch = run.first + int(np.searchsorted(last_offsets, self.last_offset))
        if batch == run.last:
            return
        self._is_done = True
        if run.rows[batch, scan.LAST_OFFSET] == self.last_offset:
            yield Cut(batch + 1, (0,))
        elif run.rows[batch, scan.BASE_OFFSET] > self.last_offset:
            yield Cut(batch, (0,))
        else:
            records = _records_of(run, batch)
            yield _cut_within(records, batch, int((records[columns.OFFSET] <= self.last_offset).sum()), (0,))


def _records_of(run: RunOfBatches, batch: int) -> Int64s:
    records = run.records(batch, batch + 1)
    if records is None:
        raise OddRecords
    return records


def _cut_within(records: Int64s, batch: int, taken: int, moments: tuple[int, ...]) -> Cut:
    """Behind so many of the records of this batch."""
    if not taken:
        return Cut(batch, moments)
    last = taken - 1
    # Behind the value comes the count of headers, which is one byte: none.
    end = int(records[columns.VALUE_START, last] + max(records[columns.VALUE_SIZE, last], 0) + 1)
    return Cut(batch, moments, taken, end, int(records[columns.OFFSET, last]))


@dataclass(slots=True)
class ClockFacts:
    """What the records of a stretch say about its order. Numbers by moment where there are several; times are those of the clock."""

    timed: int = 0
    untimed: int = 0
    #: Those earlier than another one in front of them, in this stretch.
    out_of_order: int = 0
    least_ms: int | None = None
    greatest_ms: int | None = None
    #: For each moment: how many records are not later than it, in all and behind the cut; the first one that is later.
    not_later: list[int] = field(default_factory=list)
    not_later_behind_cut: list[int] = field(default_factory=list)
    first_later: list[tuple[int, int] | None] = field(default_factory=list)
    #: The times of records that are not out of order, ascending, and how many have each; None where there are too many.
    highs: tuple[Int64s, Int64s] | None = None

    def out_of_order_behind(self, greatest_ms: int | None) -> int | None:
        """How many records are earlier than another one, given the greatest time in front; None where that cannot be told."""
        if greatest_ms is None or self.least_ms is None or greatest_ms <= self.least_ms:
            return self.out_of_order
        assert self.greatest_ms is not None
        if greatest_ms > self.greatest_ms:
            return self.timed
        if self.highs is None:
            return None
        times, counts = self.highs
        return self.out_of_order + int(counts[: np.searchsorted(times, greatest_ms)].sum())


class TimeCutter:
    """Cuts in front of the first record later than each of these times, which ascend; `facts` is what it saw."""

    def __init__(self, times_ms: Sequence[int], clock: Clock) -> None:
        self._times_ms = np.array(times_ms, np.int64)
        self._clock = clock
        self._next = 0
        self._highs: list[tuple[Int64s, Int64s]] = []
        self._high_count = 0
        self.facts = ClockFacts(not_later=[0] * len(times_ms), not_later_behind_cut=[0] * len(times_ms), first_later=[None] * len(times_ms))

    def finished(self) -> ClockFacts:
        """What was seen of the whole stretch."""
        if self._high_count <= _MOST_HIGHS:
            times = np.concatenate([times for times, _ in self._highs] or [np.empty(0, np.int64)])
            counts = np.concatenate([counts for _, counts in self._highs] or [np.empty(0, np.int64)])
            self.facts.highs = times, counts
        return self.facts

    def cuts(self, run: RunOfBatches) -> Iterator[Cut]:
        records = run.records(run.first, run.last)
        if records is None or (self._clock == "commit" and take_commit_times(run.data, records, records.shape[1]) < records.shape[1]):
            raise OddRecords
        times = records[columns.TIMESTAMP]
        timed = np.nonzero(times != NO_TIMESTAMP)[0]
        self.facts.untimed += len(times) - len(timed)
        if not len(timed):
            return
        times = times[timed]
        highest = np.maximum.accumulate(times)
        if self.facts.greatest_ms is not None:
            np.maximum(highest, self.facts.greatest_ms, out=highest)
        self._count(times, highest)
        yield from self._look(run, records, timed, times, highest)

    def _count(self, times: Int64s, highest: Int64s) -> None:
        facts = self.facts
        is_high = times == highest
        facts.timed += len(times)
        facts.out_of_order += len(times) - int(is_high.sum())
        facts.least_ms = int(times.min()) if facts.least_ms is None else min(facts.least_ms, int(times.min()))
        facts.greatest_ms = int(highest[-1])
        if self._high_count <= _MOST_HIGHS:
            self._highs.append(np.unique(times[is_high], return_counts=True))
            self._high_count += len(self._highs[-1][0])

    def _look(self, run: RunOfBatches, records: Int64s, timed: Int64s, times: Int64s, highest: Int64s) -> Iterator[Cut]:
        facts, known = self.facts, self._next
        earlier = np.cumsum(np.bincount(np.searchsorted(self._times_ms, times), minlength=len(self._times_ms) + 1))
        for moment in range(len(self._times_ms)):
            facts.not_later[moment] += int(earlier[moment])
            if moment < known:
                facts.not_later_behind_cut[moment] += int(earlier[moment])
        while self._next < len(self._times_ms) and highest[-1] > self._times_ms[self._next]:
            at = int(np.searchsorted(highest, self._times_ms[self._next], side="right"))
            moments = []
            while self._next < len(self._times_ms) and self._times_ms[self._next] < highest[at]:
                moment = self._next
                moments.append(moment)
                facts.not_later_behind_cut[moment] += int((times[at:] <= self._times_ms[moment]).sum())
                facts.first_later[moment] = int(records[columns.OFFSET, timed[at]]), int(times[at])
                self._next += 1
            batch = int(records[columns.BATCH, timed[at]])
            taken = int(timed[at] - np.searchsorted(records[columns.BATCH], batch))
            yield _cut_within(_records_of(run, batch), batch, taken, tuple(moments))
