"""The last few numbers of each of many series, and their median."""

from __future__ import annotations

import numpy as np

from exhume.analysis.detectors.commit_loops import loops
from exhume.analysis.detectors.commit_loops.columns import USUAL, Floats
from exhume.analysis.number_columns import Int64s

_UNKNOWN = -1


class Recent:
    """The last `USUAL` values of each series, by its number. Values are 0 or more."""

    def __init__(self) -> None:
        # Ring buffers. Most series of a log with many keys never have a value, so a series gets its row with its first one. Row 0 is empty.
        self._values = np.full((1, USUAL), _UNKNOWN, np.int64)
        #: The number of values ever added to each row. Modulo `USUAL` it is the next position.
        self._given = np.zeros(1, np.int64)
        self._row_of = np.zeros(0, np.int64)
        self._rows = 1
        self._ordered = np.empty(USUAL, np.int64)

    def make_room(self, count: int) -> None:
        """Make room for this number of series."""
        if count > len(self._row_of):
            more = max(count, 2 * len(self._row_of)) - len(self._row_of)
            self._row_of = np.append(self._row_of, np.zeros(more, np.int64))

    def _add_rows(self, more: int) -> None:
        """Make room for at least this number of new rows."""
        needed = self._rows + more
        if needed > len(self._values):
            more = max(needed, 2 * len(self._values)) - len(self._values)
            self._values = np.concatenate([self._values, np.full((more, USUAL), _UNKNOWN, np.int64)])
            self._given = np.append(self._given, np.zeros(more, np.int64))

    def medians(self, series: Int64s) -> list[float | None]:
        """Return the median of the last values of each series; None if there are fewer than two."""
        values = np.sort(self._values[self._row_of[series]], axis=1)
        known = (values != _UNKNOWN).sum(axis=1)
        rows, first = np.arange(len(values)), USUAL - known
        low, high = values[rows, first + np.maximum(known - 1, 0) // 2 - (known == 0)], values[rows, first + known // 2 - (known == 0)]
        return [median if count > 1 else None for median, count in zip(((low + high) / 2).tolist(), known.tolist(), strict=True)]

    def last(self, series: int) -> list[int]:
        """Return the last values, the newest one last."""
        row = self._row_of[series]
        oldest = int(self._given[row]) % USUAL
        values: list[int] = self._values[row].tolist()
        return [value for value in values[oldest:] + values[:oldest] if value != _UNKNOWN]

    def judge(self, series: Int64s, values: Int64s, floor: int, ratio: float) -> Floats:
        """Add these values in order, and return the median before each value that stands out: see `commit_loops.loops.judge`."""
        self._add_rows(int(np.count_nonzero((values >= 0) & (self._row_of[series] == 0))))
        usual = np.empty(len(series), np.float64)
        self._rows = loops.judge(
            series, values, floor, float(ratio), self._row_of, self._values, self._given, self._rows, self._ordered, usual
        )
        return usual
