"""The columns of all keys of a log, those of each group side by side: a group reads its part as a slice."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from exhume.analysis.detectors.commit_loops.columns import CommitColumn, KeyColumn
from exhume.analysis.detectors.key_histories import KeyHistories
from exhume.analysis.number_columns import Int64s

_Key = TypeVar("_Key")
_Made = TypeVar("_Made", Int64s, list[float | None], list[tuple[str, int]])


class KeyColumns:
    """The numbers of keys in the order of their groups. With `is_kept`, a column is made once for all groups; otherwise for each again.

    `order` are the numbers of the keys. Every method takes the place of a group in it.
    """

    def __init__(self, histories: KeyHistories, order: Int64s, *, is_kept: bool) -> None:
        self.histories, self.order, self.is_kept = histories, order, is_kept
        self._numbers: dict[KeyColumn, Int64s] = {}
        self._last: dict[CommitColumn, Int64s] = {}
        self._counts: dict[str, Int64s] = {}
        self._medians: dict[str, list[float | None]] = {}
        self._names: dict[str, list[tuple[str, int]]] = {}

    def numbers(self, column: KeyColumn, place: slice) -> Int64s:
        """Return this column."""
        return self._part(self._numbers, column, place, lambda keys: self.histories.numbers(column, keys))

    def last(self, column: CommitColumn, place: slice) -> Int64s:
        """Return this column of the last commits."""
        return self._part(self._last, column, place, lambda keys: self.histories.last[keys, column])

    def counts(self, place: slice) -> Int64s:
        """Return the number of commits that stood out: a row for each key, a column for each of `REASONS`."""
        return self._part(self._counts, "counts", place, lambda keys: self.histories.counts[keys])

    def usual_intervals_ms(self, place: slice) -> list[float | None]:
        """Return the median of the last intervals between commits of each key; None if there are fewer than two."""
        return self._part(self._medians, "intervals", place, self.histories.intervals.medians)

    def usual_rises(self, place: slice) -> list[float | None]:
        """Return the median of the last rises of each key; None if there are fewer than two."""
        return self._part(self._medians, "rises", place, self.histories.rises.medians)

    def names(self, place: slice) -> list[tuple[str, int]]:
        """Return the topic and partition of each key."""
        return self._part(self._names, "names", place, self._names_of)

    def _names_of(self, keys: Int64s) -> list[tuple[str, int]]:
        names = self.histories.names
        topics, partitions = names.topics_and_partitions(keys)
        return [*zip(map(names.topics().__getitem__, topics.tolist()), partitions.tolist(), strict=True)]

    def _part(self, kept: dict[_Key, _Made], name: _Key, place: slice, make: Callable[[Int64s], _Made]) -> _Made:
        if not self.is_kept:
            return make(self.order[place])
        if name not in kept:
            kept[name] = make(self.order)
        return kept[name][place]
