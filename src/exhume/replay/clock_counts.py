"""The times of the records of a log, counted by kernels: the same for a log and for its parts, whose counts are merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exhume.codecs.kernels import times
from exhume.codecs.kernels.records import NO_TIMESTAMP
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.moments import Clock
from exhume.replay.moment import ClockOrder

#: The most different times of records in order that the counts of a part keep.
_MOST_HIGHS = 1 << 17


@dataclass(slots=True, eq=False)
class ClockCounts:
    """The counts of times so far, for ascending moments; the arrays are those of `kernels.times`.

    Only counts with `highs` can be merged to earlier ones.
    """

    counts: Int64s
    moments: Int64s
    highs: Int64s
    #: Counts, moments and the last row of `highs` before the last `read`.
    _before: tuple[Int64s, Int64s, Int64s] | None = None

    @classmethod
    def of(cls, times_ms: Sequence[int], *, is_part: bool = False) -> ClockCounts:
        """Return the counts of no record, for these ascending moments."""
        moments = np.zeros((len(times_ms) + 1, times.MOMENT_COLUMNS), np.int64)
        moments[:-1, times.MOMENT_MS] = times_ms
        return cls(np.zeros(times.COUNTS, np.int64), moments, np.zeros((_MOST_HIGHS if is_part else 0, times.HIGH_COLUMNS), np.int64))

    @property
    def passed(self) -> int:
        """The number of moments that have a later record."""
        return int(self.counts[times.PASSED])

    def read(
        self, rows: Int64s, batches: tuple[int, int], data: Bytes, bodies: Int64s, *, start_offset: int = 0, clock: Clock = "append"
    ) -> int:
        """Count batches of `rows`, from the first to the one after the last; return the first one that is not counted.

        That is the one after the last, or a batch whose records only the plain reader reads.
        """
        first, last = batches
        self._before = self.counts.copy(), self.moments.copy(), self.highs[self.counts[times.HIGHS] - 1 :][:1].copy()

        def read(until: int) -> int:
            is_of_commits = clock == "commit"
            found = (self.counts, self.moments, self.highs)
            return int(times.read_times(rows, first, until, data, bodies, start_offset, is_of_commits, *found))

        done = read(last)
        if done < last:
            # The first records of that batch are counted.
            self.forget_last()
            read(done)
        return done

    def forget_last(self) -> None:
        """Forget the batches of the last `read`."""
        assert self._before is not None
        counts, moments, last_high = self._before
        self.counts, self.moments = counts.copy(), moments.copy()
        self.highs[counts[times.HIGHS] - 1 :][:1] = last_high

    def take(self, record_offsets: Sequence[int], times_ms: Sequence[int | None]) -> None:
        """Count these records; None for a record without a time."""
        stamped = [NO_TIMESTAMP if time_ms is None else time_ms for time_ms in times_ms]
        self.take_columns(np.array(record_offsets, np.int64), np.array(stamped, np.int64))

    def take_columns(self, record_offsets: Int64s, times_ms: Int64s) -> None:
        """Count these records; -1 for a record without a time."""
        times.take_times(record_offsets, times_ms, self.counts, self.moments, self.highs)

    def first_later(self, number: int) -> tuple[int, int]:
        """Return offset and batch number of the first record later than the moment of this number, which is one of the `passed` ones.

        `take` counts the place among its records as batch number.
        """
        row = self.moments[number]
        return int(row[times.FIRST_LATER]), int(row[times.FIRST_LATER_BATCH])

    def order(self, number: int = 0) -> ClockOrder:
        """Return the order of these records for the moment of this number."""
        counts, row = self.counts.tolist(), self.moments[number].tolist()
        is_passed = number < counts[times.PASSED]
        return ClockOrder(
            timed=counts[times.TIMED],
            untimed=counts[times.UNTIMED],
            out_of_order=counts[times.OUT_OF_ORDER],
            first_later=(row[times.FIRST_LATER], row[times.FIRST_LATER_MS]) if is_passed else None,
            left_out=int(self.moments[: number + 1, times.LEFT_OUT].sum()) if is_passed else 0,
            greatest_ms=counts[times.GREATEST_MS] if counts[times.TIMED] else None,
        )

    def merge(self, later: ClockCounts) -> bool:
        """Add the counts of the records that come after these; False if their order is not known, since too many times are different."""
        mine, its = self.counts, later.counts
        out_of_order = self._out_of_order_in(later)
        if out_of_order is None:
            return False
        passed, up_to = int(mine[times.PASSED]), np.cumsum(later.moments[:, times.UP_TO])
        left_out = np.cumsum(later.moments[:, times.LEFT_OUT])
        # For a moment that a record here has passed, all records of the later counts are after a later record.
        left_out[:passed] = up_to[:passed]
        self.moments[:, times.LEFT_OUT] += np.diff(left_out, prepend=0)
        self.moments[:, times.UP_TO] += later.moments[:, times.UP_TO]
        first_later = slice(passed, int(its[times.PASSED]))
        self.moments[first_later, times.FIRST_LATER :] = later.moments[first_later, times.FIRST_LATER :]
        if its[times.TIMED]:
            is_first = not mine[times.TIMED]
            mine[times.LEAST_MS] = its[times.LEAST_MS] if is_first else min(mine[times.LEAST_MS], its[times.LEAST_MS])
            self._add_highs(later, None if is_first else int(mine[times.GREATEST_MS]))
            mine[times.GREATEST_MS] = its[times.GREATEST_MS] if is_first else max(mine[times.GREATEST_MS], its[times.GREATEST_MS])
        mine[[times.TIMED, times.UNTIMED]] += its[[times.TIMED, times.UNTIMED]]
        mine[times.OUT_OF_ORDER] += out_of_order
        mine[times.PASSED] = max(mine[times.PASSED], its[times.PASSED])
        return True

    def _out_of_order_in(self, later: ClockCounts) -> int | None:
        """Return the number of records of `later` that are out of order after these; None if it is not known."""
        its: list[int] = later.counts.tolist()
        greatest_ms = int(self.counts[times.GREATEST_MS])
        if not self.counts[times.TIMED] or not its[times.TIMED] or greatest_ms <= its[times.LEAST_MS]:
            return its[times.OUT_OF_ORDER]
        if greatest_ms > its[times.GREATEST_MS]:
            return its[times.TIMED]
        if its[times.HIGHS] > len(later.highs):
            return None
        highs = later.highs[: its[times.HIGHS]]
        earlier = highs[: np.searchsorted(highs[:, times.HIGH_MS], greatest_ms), times.HIGH_COUNT]
        return its[times.OUT_OF_ORDER] + int(earlier.sum())

    def _add_highs(self, later: ClockCounts, greatest_ms: int | None) -> None:
        """Add the times that are in order after these records."""
        used, more = int(self.counts[times.HIGHS]), int(later.counts[times.HIGHS])
        if used > len(self.highs) or more > len(later.highs):
            self.counts[times.HIGHS] = len(self.highs) + 1
            return
        highs = later.highs[:more]
        if greatest_ms is not None:
            highs = highs[np.searchsorted(highs[:, times.HIGH_MS], greatest_ms) :]
        if used and len(highs) and highs[0, times.HIGH_MS] == self.highs[used - 1, times.HIGH_MS]:
            self.highs[used - 1, times.HIGH_COUNT] += highs[0, times.HIGH_COUNT]
            highs = highs[1:]
        self.highs = np.concatenate([self.highs[:used], highs])[:_MOST_HIGHS]
        self.counts[times.HIGHS] = min(used + len(highs), _MOST_HIGHS + 1)

    def __getstate__(self) -> tuple[Int64s, Int64s, Int64s]:
        return self.counts, self.moments, self.highs[: self.counts[times.HIGHS]].copy()

    def __setstate__(self, state: tuple[Int64s, Int64s, Int64s]) -> None:
        self.counts, self.moments, self.highs = state
        self._before = None
