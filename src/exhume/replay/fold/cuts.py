"""Find where a log ends at moments in time: before the first record that is later.

A part knows only its own first later record, so its cut counts only if no earlier part has one. The counts that describe the order of a log
for a time (`replay.clock_counts`) are those of each part, and merged later. For the last moment the fold only stops to count records; at
an earlier one it begins anew, and the folds of both sides are merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.int64 import LARGEST_INT64
from exhume.moments import Clock
from exhume.replay.clock_counts import ClockCounts


@dataclass(frozen=True, slots=True)
class RunOfBatches:
    """Batches `first` to `last` of `rows`; the bytes of their records in `data` are `bodies[:, 0]` to `bodies[:, 1]`."""

    rows: Int64s
    first: int
    last: int
    data: Bytes
    bodies: Int64s


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut after the record offset `last_offset`, before batch `batch` of a run or within it: the end of moments of these numbers."""

    batch: int
    last_offset: int
    moments: tuple[int, ...]


class NotPlainRecords(Exception):
    """The times of the records of a batch cannot be read in columns."""


class TimeCutter:
    """Finds the cuts at ascending times in a part; `counts` are those of the records so far."""

    def __init__(self, times_ms: Sequence[int], clock: Clock, *, is_part: bool) -> None:
        self._clock = clock
        self._last = len(times_ms) - 1
        self.counts = ClockCounts.of(times_ms, is_part=is_part)

    @property
    def last_offset(self) -> int:
        """The last record offset that counts at the last moment."""
        return self.counts.first_later(self._last)[0] - 1 if self.counts.passed > self._last else LARGEST_INT64

    def cuts(self, run: RunOfBatches, start_offset: int) -> list[Cut]:
        """Count the times of this run; return its cuts at other moments than the last one. It comes after all runs before.

        Raises:
            NotPlainRecords: a batch cannot be read in columns.
        """
        known = self.counts.passed
        batches = run.first, run.last
        if self.counts.read(run.rows, batches, run.data, run.bodies, start_offset=start_offset, clock=self._clock) < run.last:
            raise NotPlainRecords
        passed = range(known, min(self.counts.passed, self._last))
        return [
            Cut(batch, first_later - 1, tuple(moments)) for (first_later, batch), moments in groupby(passed, key=self.counts.first_later)
        ]

    def end_at(self, run: RunOfBatches, batch: int, start_offset: int) -> None:
        """Forget the times of this run, which came last, from this batch on: the batches are read again."""
        self.counts.forget_last()
        self.counts.read(run.rows, (run.first, batch), run.data, run.bodies, start_offset=start_offset, clock=self._clock)
