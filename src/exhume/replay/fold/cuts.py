"""Cut a part so that the state at a moment is the state before a cut.

A cut is between two batches, or after some records of one. For a record offset, the offset alone gives the cut. For a time, the cut is
before the first later record of the log. A part knows only its own first later record, so its cut counts only if no earlier part has
one. The counts that describe the order of a log for a time (`replay.moment`) are taken for each part, and added up later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np

from exhume.codecs.kernels import records as columns
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.records import LEAST_BYTES, split
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.moments import Clock
from exhume.replay.clock_counts import ClockCounts
from exhume.replay.moment import Moment


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


class TimeCutter:
    """Cuts before the first record later than each of these ascending times; `counts` are those of the records so far."""

    def __init__(self, times_ms: Sequence[int], clock: Clock) -> None:
        self._clock = clock
        self.counts = ClockCounts.of(times_ms, is_part=True)

    def cuts(self, run: RunOfBatches) -> Iterator[Cut]:
        counts, known = self.counts, self.counts.passed
        if counts.read(run.rows, (run.first, run.last), run.data, run.bodies, clock=self._clock) < run.last:
            raise NotPlainRecords
        for (first_later, batch), moments in groupby(range(known, counts.passed), key=counts.first_later):
            records = _records_of(run, batch)
            taken = int((records[columns.OFFSET] < first_later).sum())
            yield _cut_within(records, batch, taken, tuple(moments))
