"""The last few numbers of each of many series, and what is usual among them."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt

from exhume.analysis.detectors.commits import USUAL

Int64s = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

#: What is compared with so few first: most numbers are done with then.
_FEW = 5
_UNKNOWN = -1


class Recent:
    """For each series, by its number, its last `USUAL` values; they are 0 or more."""

    def __init__(self) -> None:
        # Rings. Most series of a log with many keys have no value ever: rows are given out as they come. Row 0 stays empty.
        self._values = np.full((1, USUAL), _UNKNOWN, np.int64)
        #: How many values each row was ever given: the next one's place, but for the turns of the ring.
        self._given = np.zeros(1, np.int64)
        self._row_of = np.zeros(0, np.int64)
        self._rows = 1

    def make_room(self, count: int) -> None:
        """Let there be series up to this number."""
        if count > len(self._row_of):
            more = max(count, 2 * len(self._row_of)) - len(self._row_of)
            self._row_of = np.append(self._row_of, np.zeros(more, np.int64))

    def _give_rows(self, series: Int64s) -> None:
        """Let these series, each there once, have rows."""
        new = series[self._row_of[series] == 0]
        needed = self._rows + len(new)
        if needed > len(self._values):
            more = max(needed, 2 * len(self._values)) - len(self._values)
            self._values = np.concatenate([self._values, np.full((more, USUAL), _UNKNOWN, np.int64)])
            self._given = np.append(self._given, np.zeros(more, np.int64))
        self._row_of[new] = np.arange(self._rows, needed)
        self._rows = needed

    def medians(self, series: Int64s) -> list[float | None]:
        """The median of the last values of each series; None where there are fewer than two."""
        values = np.sort(self._values[self._row_of[series]], axis=1)
        known = (values != _UNKNOWN).sum(axis=1)
        rows, first = np.arange(len(values)), USUAL - known
        low, high = values[rows, first + np.maximum(known - 1, 0) // 2 - (known == 0)], values[rows, first + known // 2 - (known == 0)]
        return [median if count > 1 else None for median, count in zip(((low + high) / 2).tolist(), known.tolist(), strict=True)]

    def last(self, series: int) -> list[int]:
        """The last values, the newest one last."""
        row = self._row_of[series]
        oldest = int(self._given[row]) % USUAL
        values: list[int] = self._values[row].tolist()
        return [value for value in values[oldest:] + values[:oldest] if value != _UNKNOWN]

    def beyond(self, series: Int64s, values: Int64s, candidates: Int64s, ratio: float) -> dict[int, float]:
        """Those of `candidates`, places among these new values, that are more than `ratio` times the median of the `USUAL` before them.

        What comes back are the medians, by place. Values come series by series, each in order. One counts only if it is more than `ratio`
        times the median of the last few as well: after a pause many values are large, and the first alone stands out. Where fewer than two
        are before it, nothing is usual yet.
        """
        starts = _starts(series)
        medians = self._few_medians(series, values, starts, candidates)
        with np.errstate(invalid="ignore"):
            stands_out = values[candidates] > ratio * medians
        found = {}
        for place in candidates[stands_out].tolist():
            first = max(int(starts[place]), place - USUAL)
            before = values[first:place].tolist()
            median = _median([*self.last(int(series[place])), *before][-USUAL:])
            if median is not None and values[place] > ratio * median:
                found[place] = median
        return found

    def _few_medians(self, series: Int64s, values: Int64s, starts: Int64s, places: Int64s) -> Floats:
        """The medians of the last few values in front of these places; NaN where fewer than two are known."""
        before = np.empty((len(places), _FEW), np.float64)
        rows = self._row_of[series[places]]
        given = self._given[rows]
        for back in range(1, _FEW + 1):
            source = places - back
            too_far = starts[places] - source
            kept = self._values[rows, (given - np.maximum(too_far, 1)) % USUAL]
            before[:, back - 1] = np.where(too_far <= 0, values[np.maximum(source, 0)], kept)
        known = (before != _UNKNOWN).sum(axis=1)
        before[before == _UNKNOWN] = np.inf
        before.sort(axis=1)
        each = np.arange(len(places))
        low = before[each, np.maximum(known - 1, 0) // 2]
        high = before[each, np.minimum(known // 2, _FEW - 1)]
        return np.where(known >= 2, (low + high) / 2, np.nan)

    def take(self, series: Int64s, values: Int64s) -> None:
        """Add these values; they come series by series, each in order."""
        if not len(series):
            return
        firsts = np.flatnonzero(np.concatenate([[True], series[1:] != series[:-1]]))
        counts = np.diff(np.append(firsts, len(series)))
        self._give_rows(series[firsts])
        rows = self._row_of[series[firsts]]
        # The last ones of each series: what they would take the place of at once need not be written.
        back = np.repeat(firsts + counts, counts) - np.arange(len(series))
        late = np.flatnonzero(back <= USUAL)
        ends = self._given[rows] + counts
        self._values[np.repeat(rows, counts)[late], (np.repeat(ends, counts)[late] - back[late]) % USUAL] = values[late]
        self._given[rows] = ends


def _starts(series: Int64s) -> Int64s:
    """For each place the first place of its series."""
    places = np.arange(len(series))
    is_first = np.ones(len(series), np.bool_)
    is_first[1:] = series[1:] != series[:-1]
    return np.maximum.accumulate(np.where(is_first, places, 0))


def _median(values: list[int]) -> float | None:
    known = sorted(values)
    known = known[bisect_right(known, _UNKNOWN) :]
    if len(known) < 2:
        return None
    middle = len(known) // 2
    return float(known[middle]) if len(known) % 2 else (known[middle - 1] + known[middle]) / 2
