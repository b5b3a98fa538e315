"""Cut a part so that the state at a moment is the state before a cut.

A cut is between two batches, or after some records of one. For a record offset, the offset alone gives the cut. For a time, the cut is
before the first later record of the log. A part knows only its own first later record, so its cut counts only if no earlier part has
one. The counts that describe the order of a log for a time (`replay.moment`) are taken for each part, and added up later.
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
from exhume.replay.fold.kernels.commit_times import take_commit_times
from exhume.replay.moment import Clock, Moment

#: The most different times that are kept, with their counts, of the records that are in order.
_MOST_HIGHS = 1 << 17


@dataclass(frozen=True, slots=True)
class RunOfBatches:
    """Batches `first` to `last` of `rows`; the bytes of their records in `data` are `bodies[:, 0]` to `bodies[:, 1]`."""

    rows: Int64s
    first: int
    last: int
    data: Bytes
    bodies: Int64s

    def records(self, first: int, last: int) -> Int64s | None:
        """Return the records of batches `first` to `last` as columns of `kernels.records`; None if a batch is not plain."""
        sizes = self.bodies[first:last, 1] - self.bodies[first:last, 0]
        room = int(np.clip(self.rows[first:last, scan.RECORD_COUNT], 0, sizes // LEAST_BYTES).sum())
        records = np.empty((columns.COLUMNS, room), np.int64)
        done, count = split(self.rows, first, last, self.data, self.bodies, records)
        return records[:, :count] if done == last else None


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut before batch `batch` of a run, or after the first `taken` records of that batch.

    `end` is the byte of the run's data after these records, `last_offset` the record offset of the last one. `moments` are the numbers of
    the moments that end at the cut.
    """

    batch: int
    moments: tuple[int, ...]
    taken: int = 0
    end: int = 0
    last_offset: int = 0


class NotPlainRecords(Exception):
    """The records of a batch cannot be read in columns."""


class Cutter(Protocol):
    """Finds the cuts of a part. It gets the runs in order, without the batches that the load leaves out."""

    def cuts(self, run: RunOfBatches) -> Iterator[Cut]:
        """Yield the cuts in this run, in order.

        Raises:
            NotPlainRecords: a batch cannot be read in columns.
        """
        ...


def cutter_for(moments: Sequence[Moment | None], offsets_partition: int | None) -> Cutter | None:
    """Return the cutter of a log of this offsets partition for one record offset, or for ascending times; None if nothing is cut."""
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
    """Cuts after one record offset."""

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
        raise NotPlainRecords
    return records


def _cut_within(records: Int64s, batch: int, taken: int, moments: tuple[int, ...]) -> Cut:
    """Return the cut after so many of the records of this batch."""
    if not taken:
        return Cut(batch, moments)
    last = taken - 1
    # After the value comes the count of headers in one byte: these records have none.
    end = int(records[columns.VALUE_START, last] + max(records[columns.VALUE_SIZE, last], 0) + 1)
    return Cut(batch, moments, taken, end, int(records[columns.OFFSET, last]))


@dataclass(slots=True)
class ClockFacts:
    """The order of the records of a part by the clock. Lists have an item for each moment; times are those of the clock."""

    timed: int = 0
    untimed: int = 0
    #: The records whose time is less than that of a record before them in this part.
    out_of_order: int = 0
    least_ms: int | None = None
    greatest_ms: int | None = None
    #: For each moment: the records that are not later than it, in total and after the cut; the first later record (record offset, time).
    not_later: list[int] = field(default_factory=list)
    not_later_after_cut: list[int] = field(default_factory=list)
    first_later: list[tuple[int, int] | None] = field(default_factory=list)
    #: The times of records that are in order, ascending, and the number of records of each; None if there are too many times.
    highs: tuple[Int64s, Int64s] | None = None

    def out_of_order_after(self, greatest_ms: int | None) -> int | None:
        """Return the number of records that are out of order after records up to this time; None if it is not known."""
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
    """Cuts before the first record later than each of these ascending times; `facts` describes the records so far."""

    def __init__(self, times_ms: Sequence[int], clock: Clock) -> None:
        self._times_ms = np.array(times_ms, np.int64)
        self._clock = clock
        self._next = 0
        self._highs: list[tuple[Int64s, Int64s]] = []
        self._high_count = 0
        self.facts = ClockFacts(not_later=[0] * len(times_ms), not_later_after_cut=[0] * len(times_ms), first_later=[None] * len(times_ms))

    def finished(self) -> ClockFacts:
        """Return the facts of the whole part."""
        if self._high_count <= _MOST_HIGHS:
            times = np.concatenate([times for times, _ in self._highs] or [np.empty(0, np.int64)])
            counts = np.concatenate([counts for _, counts in self._highs] or [np.empty(0, np.int64)])
            self.facts.highs = times, counts
        return self.facts

    def cuts(self, run: RunOfBatches) -> Iterator[Cut]:
        records = run.records(run.first, run.last)
        if records is None or (self._clock == "commit" and take_commit_times(run.data, records, records.shape[1]) < records.shape[1]):
            raise NotPlainRecords
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
                facts.not_later_after_cut[moment] += int(earlier[moment])
        while self._next < len(self._times_ms) and highest[-1] > self._times_ms[self._next]:
            at = int(np.searchsorted(highest, self._times_ms[self._next], side="right"))
            moments = []
            while self._next < len(self._times_ms) and self._times_ms[self._next] < highest[at]:
                moment = self._next
                moments.append(moment)
                facts.not_later_after_cut[moment] += int((times[at:] <= self._times_ms[moment]).sum())
                facts.first_later[moment] = int(records[columns.OFFSET, timed[at]]), int(times[at])
                self._next += 1
            batch = int(records[columns.BATCH, timed[at]])
            taken = int(timed[at] - np.searchsorted(records[columns.BATCH], batch))
            yield _cut_within(_records_of(run, batch), batch, taken, tuple(moments))
