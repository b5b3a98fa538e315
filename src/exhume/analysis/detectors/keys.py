"""Keys of a group: views of the columns of `KeyHistories`. A key costs only the columns that are read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import overload

import numpy as np

from exhume.analysis.detectors.commit_loops.columns import LEAST_REPEATS, LONGEST_RUN, CommitColumn, KeyColumn
from exhume.analysis.detectors.commit_rows import ChangeTable
from exhume.analysis.detectors.commits import REASONS, Change, CommitPause, CommitRow, Dropped, Reason, Removal, SameRun
from exhume.analysis.detectors.key_columns import KeyColumns
from exhume.analysis.number_columns import NONE, Flags, Int64s, or_none
from exhume.durations import MINUTE_MS

#: The attributes that a `GroupKeys` derives. `forget` drops them.
_MADE = ("names", "_places", "last_record_offsets", "_last_times", "usual_intervals_ms", "usual_rises", "_number_of", "_all_changes")


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """The history of one key, in numbers. `changes`, `removals` and `dropped` are in order. A view: made again on each access."""

    _keys: GroupKeys
    _place: int

    @property
    def group(self) -> str:
        return self._keys.group

    @property
    def topic(self) -> str:
        return self._keys.names[self._place][0]

    @property
    def partition(self) -> int:
        return self._keys.names[self._place][1]

    def _number(self, column: KeyColumn) -> int:
        return self._keys.number_list(column)[self._place]

    @property
    def commits(self) -> int:
        """The number of commits that took effect."""
        return self._number(KeyColumn.COMMITS)

    @property
    def first_record_offset(self) -> int | None:
        """The first effective commit or tombstone; None if the key has only transactional commits that never took effect."""
        return or_none(self._number(KeyColumn.FIRST_OFFSET))

    @property
    def first_timestamp_ms(self) -> int | None:
        return or_none(self._number(KeyColumn.FIRST_TIME))

    @property
    def first_committed_offset(self) -> int | None:
        return self._number(KeyColumn.FIRST_VALUE) if self._number(KeyColumn.HAS_FIRST_VALUE) else None

    @property
    def last(self) -> CommitRow | None:
        """The last effective commit. It is the committed offset unless `is_removed`."""
        return self._keys.last(self._place)

    @property
    def is_removed(self) -> bool:
        return bool(self._number(KeyColumn.IS_REMOVED))

    @property
    def holds(self) -> CommitRow | None:
        """The committed offset at the end of the log."""
        return None if self.is_removed else self.last

    @property
    def lowest(self) -> int | None:
        return self._number(KeyColumn.LOWEST) if self._number(KeyColumn.HAS_VALUE) else None

    @property
    def highest(self) -> int | None:
        return self._number(KeyColumn.HIGHEST) if self._number(KeyColumn.HAS_VALUE) else None

    @property
    def repeats(self) -> int:
        """The number of commits that repeat the committed offset."""
        return self._number(KeyColumn.REPEATS)

    @property
    def usual_interval_ms(self) -> float | None:
        """The median of the last `USUAL` intervals between commits; None if there are fewer than two."""
        return self._keys.usual_intervals_ms[self._place]

    @property
    def usual_rise(self) -> float | None:
        """The median of the last `USUAL` rises; None if there are fewer than two."""
        return self._keys.usual_rises[self._place]

    @property
    def commit_bytes(self) -> int:
        """The key and value bytes of all commits, before compression."""
        return self._number(KeyColumn.BYTES)

    @property
    def metadata_bytes(self) -> int:
        """The metadata bytes among `commit_bytes`."""
        return self._number(KeyColumn.METADATA)

    @property
    def largest_metadata_bytes(self) -> int:
        return self._number(KeyColumn.LARGEST_METADATA)

    @property
    def transactional(self) -> int:
        """The number of transactional commits."""
        return self._number(KeyColumn.STAGED)

    @property
    def without_leader_epoch(self) -> int:
        """The number of commits without a leader epoch."""
        return self._number(KeyColumn.WITHOUT_LEADER_EPOCH)

    @property
    def highest_leader_epoch(self) -> int:
        return self._number(KeyColumn.HIGHEST_LEADER_EPOCH)

    @property
    def hot_minutes(self) -> int:
        """The longest run of hot minutes: each with more than one commit a second."""
        return self._number(KeyColumn.HOTTEST_RUN)

    @property
    def hot_from_ms(self) -> int | None:
        """The start of that run."""
        return self._number(KeyColumn.HOTTEST_FROM) * MINUTE_MS if self.hot_minutes else None

    @property
    def hot_to_ms(self) -> int | None:
        """The end of that run."""
        return (self._number(KeyColumn.HOTTEST_LAST) + 1) * MINUTE_MS if self.hot_minutes else None

    @property
    def same(self) -> SameRun | None:
        """The present run of commits of one value; None if it has few repeats, or no times."""
        repeats, begin_ms, offset = map(self._number, (KeyColumn.SAME_COUNT, KeyColumn.SAME_FROM, KeyColumn.SAME_OFFSET))
        held = self.holds
        if repeats < LEAST_REPEATS or begin_ms == NONE or held is None or held.timestamp_ms is None:
            return None
        return SameRun(held.committed_offset, repeats, begin_ms, held.timestamp_ms, offset)

    @property
    def longest_same(self) -> SameRun | None:
        """The longest earlier run of commits of one value; None if each has few repeats."""
        return SameRun(*map(self._number, LONGEST_RUN)) if self._number(KeyColumn.LONGEST_COUNT) else None

    @property
    def count_of(self) -> Mapping[Reason, int]:
        """The number of commits that stood out, by reason. Reasons without one are left out."""
        return self._keys.counts(self._place)

    @property
    def changes(self) -> Sequence[Change]:
        return self._keys.changes(self._place)

    @property
    def pauses(self) -> Sequence[CommitPause]:
        """The longest intervals without a commit, in order."""
        return self._keys.pauses(self._place)

    @property
    def removals(self) -> Sequence[Removal]:
        return self._keys.removals(self._place)

    @property
    def dropped(self) -> Sequence[Dropped]:
        return self._keys.dropped(self._place)

    def of(self, *reasons: Reason) -> Iterator[Change]:
        """Return the changes that stand out for any of these reasons."""
        return (change for change in self.changes if not change.reasons.isdisjoint(reasons))

    def held_at(self, record_offset: int) -> bool | None:
        """Return True if the key had a value when this record was appended; None if the log does not show it (no earlier record of it)."""
        if self.first_record_offset is None or record_offset <= self.first_record_offset:
            return None
        before = [removal.record_offset for removal in self.removals if removal.record_offset < record_offset]
        if not before:
            # The one commit of a transaction counts from its marker on.
            is_later = self.commits == 1 and self.last is not None and self.last.settled_offset > record_offset
            return self.first_committed_offset is not None and not is_later
        return any(before[-1] < change.commit.settled_offset < record_offset for change in self.of("back"))


class GroupKeys(Sequence[KeyHistory]):
    """The keys of one group, in the order of their first records.

    `with_changes`, `with_removals`, `with_dropped` and `held_before` find few keys among many without reading each.
    """

    def __init__(self, columns: KeyColumns, group: str, place: slice) -> None:
        self.group = group
        self._shared, self._place = columns, place
        self._histories, self._numbers = columns.histories, columns.order[place]
        self._columns: dict[KeyColumn, list[int]] = {}
        self._lasts: dict[int, CommitRow | None] = {}
        self._changes: dict[int, list[Change]] = {}

    @property
    def is_kept(self) -> bool:
        """True if the log has few keys, so that what was derived from them may stay."""
        return self._shared.is_kept

    def forget(self) -> None:
        """Drop everything that can be derived again."""
        self._columns.clear()
        self._lasts.clear()
        self._changes.clear()
        for name in _MADE:
            self.__dict__.pop(name, None)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> KeyHistory: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[KeyHistory]: ...
    def __getitem__(self, place: int | slice) -> KeyHistory | Sequence[KeyHistory]:
        places = range(len(self))[place]
        return KeyHistory(self, places) if isinstance(places, int) else [KeyHistory(self, each) for each in places]

    def __iter__(self) -> Iterator[KeyHistory]:
        return map(partial(KeyHistory, self), range(len(self)))

    @cached_property
    def _number_of(self) -> list[int]:
        numbers: list[int] = self._numbers.tolist()
        return numbers

    @cached_property
    def names(self) -> list[tuple[str, int]]:
        """The topic and partition of each key."""
        return self._shared.names(self._place)

    @cached_property
    def _places(self) -> dict[tuple[str, int], int]:
        return {name: place for place, name in enumerate(self.names)}

    def find(self, topic: str, partition: int) -> KeyHistory | None:
        """Return the key of this partition; None if the group never committed for it."""
        place = self._places.get((topic, partition))
        return None if place is None else KeyHistory(self, place)

    def at(self, places: Int64s) -> list[KeyHistory]:
        """Return the keys at these positions, each once, in order."""
        return [] if not len(places) else [KeyHistory(self, place) for place in np.unique(places).tolist()]

    def with_changes(self, *reasons: Reason) -> list[KeyHistory]:
        """Return the keys with a commit that stands out for any of these reasons (default: any reason)."""
        met = self._met(reasons or REASONS)
        if not met:
            return []
        has_one: Flags = np.any(self._shared.counts(self._place)[:, met], axis=1)
        return self._those(has_one)

    def _met(self, reasons: Sequence[Reason]) -> list[int]:
        """Return the positions in `REASONS` of those of these reasons for which any key has a change."""
        return [place for place in map(REASONS.index, reasons) if self._has_reason[place]]

    @cached_property
    def _has_reason(self) -> list[bool]:
        flags: Flags = np.any(self._shared.counts(self._place), axis=0)
        has: list[bool] = flags.tolist()
        return has

    def changed(self, *reasons: Reason) -> ChangeTable:
        """Return the commits that stand out for any of these reasons as columns, key by key. `places` are positions of keys here."""
        if not self._met(reasons):
            return self._histories.changes.none
        return self._all_changes.where(self._all_changes.has(*reasons))

    @cached_property
    def _all_changes(self) -> ChangeTable:
        return self._histories.changes.of(self._numbers)

    def counts_of(self, reason: Reason) -> Int64s:
        """Return, for each key, the number of commits that stood out for this reason."""
        return self._shared.counts(self._place)[:, REASONS.index(reason)]

    def with_pauses(self) -> list[KeyHistory]:
        """Return the keys that were not committed for much longer than usual, and then were committed again."""
        return self._those_in(self._histories.pauses)

    def with_removals(self) -> list[KeyHistory]:
        """Return the keys with a tombstone."""
        return self._those_in(self._histories.removals)

    def with_dropped(self) -> list[KeyHistory]:
        """Return the keys with a transactional commit that never took effect."""
        return self._those_in(self._histories.dropped)

    def _those_in(self, kept: Collection[int]) -> list[KeyHistory]:
        return [KeyHistory(self, place) for place, number in enumerate(self._number_of) if number in kept] if kept else []

    def held_before(self, commit_timestamp_ms: int) -> list[KeyHistory]:
        """Return the keys whose committed offset was committed before this time."""
        holds, times_ms = self._held()
        return self._those(holds & (times_ms < commit_timestamp_ms))

    def held_count(self) -> int:
        """Return the number of keys with a committed offset."""
        return int(np.count_nonzero(self._held()[0]))

    def oldest_commit_ms(self) -> int | None:
        """Return the commit timestamp of the oldest committed offset; None without one."""
        holds, times_ms = self._held()
        return int(times_ms[holds].min()) if holds.any() else None

    def _held(self) -> tuple[Flags, Int64s]:
        """Return which keys have a committed offset, and the commit timestamps."""
        holds: Flags = (self.numbers(KeyColumn.HAS_VALUE) != 0) & (self.numbers(KeyColumn.IS_REMOVED) == 0)
        return holds, self._shared.last(CommitColumn.COMMITTED_AT, self._place)

    def with_at_least(self, least: float, column: KeyColumn) -> list[KeyHistory]:
        """Return the keys with at least this number in a column."""
        return self._those(self.numbers(column) >= least)

    def unbroken(self, least_commits: int, least_ms: int) -> list[KeyHistory]:
        """Return the keys with at least so many commits, over at least this time, of which none stands out."""
        firsts, lasts = self.numbers(KeyColumn.FIRST_TIME), self._shared.last(CommitColumn.TIME, self._place)
        has_time = (firsts != NONE) & (lasts != NONE) & (lasts - firsts >= least_ms)
        stands_out: Flags = np.any(self._shared.counts(self._place), axis=1)
        return self._those(has_time & (self.numbers(KeyColumn.COMMITS) >= least_commits) & ~stands_out)

    def _those(self, wanted: Flags) -> list[KeyHistory]:
        return [KeyHistory(self, place) for place in np.flatnonzero(wanted).tolist()]

    def numbers(self, column: KeyColumn) -> Int64s:
        """Return a column of all keys."""
        return self._shared.numbers(column, self._place)

    def number_list(self, column: KeyColumn) -> list[int]:
        """Return `numbers` as a list, and keep it until `forget`."""
        kept = self._columns.get(column)
        if kept is None:
            kept = self._columns[column] = self.numbers(column).tolist()
        return kept

    def total(self, column: KeyColumn) -> int:
        """Return the sum of a column."""
        return int(self.numbers(column).sum())

    def first_committed_offsets(self) -> list[int]:
        """Return `first_committed_offset` of each key that has one."""
        values: list[int] = self.numbers(KeyColumn.FIRST_VALUE)[self.numbers(KeyColumn.HAS_FIRST_VALUE) != 0].tolist()
        return values

    @cached_property
    def last_record_offsets(self) -> list[int]:
        """The record offset of the last commit of each key; -1 for none."""
        offsets: list[int] = np.where(
            self.numbers(KeyColumn.HAS_VALUE) != 0, self._shared.last(CommitColumn.OFFSET, self._place), NONE
        ).tolist()
        return offsets

    def last_times(self, names: Iterable[tuple[str, int]]) -> list[int]:
        """Return the append times of the last commits for these partitions. Partitions without one are left out."""
        known, times = self._places, self._last_times
        return [time for name in names if (place := known.get(name)) is not None and (time := times[place]) != NONE]

    @cached_property
    def _last_times(self) -> list[int]:
        times: list[int] = np.where(
            np.array(self.last_record_offsets) != NONE, self._shared.last(CommitColumn.TIME, self._place), NONE
        ).tolist()
        return times

    def newest(self, names: Iterable[tuple[str, int]]) -> CommitRow | None:
        """Return the last commit in the log for any of these partitions; None if there is none."""
        known = self._places
        places = [place for name in names if (place := known.get(name)) is not None]
        last = max(places, key=self.last_record_offsets.__getitem__, default=None)
        return None if last is None else self.last(last)

    def were_committed_before(self, record_offset: int, names: Iterable[tuple[str, int]]) -> bool:
        """Return True if one of these partitions has a commit or tombstone before this record."""
        known, firsts = self._places, self.number_list(KeyColumn.FIRST_OFFSET)
        return any(NONE < firsts[place] < record_offset for name in names if (place := known.get(name)) is not None)

    def last(self, place: int) -> CommitRow | None:
        """Return the last commit of a key; None if none took effect."""
        if place not in self._lasts:
            number = self._number_of[place]
            has_one = self.number_list(KeyColumn.HAS_VALUE)[place]
            self._lasts[place] = self._histories.names.commit(self._histories.last[number].tolist()) if has_one else None
        return self._lasts[place]

    @cached_property
    def usual_intervals_ms(self) -> list[float | None]:
        return self._shared.usual_intervals_ms(self._place)

    @cached_property
    def usual_rises(self) -> list[float | None]:
        return self._shared.usual_rises(self._place)

    def counts(self, place: int) -> dict[Reason, int]:
        counts = self._histories.counts[self._number_of[place]].tolist()
        return {reason: count for reason, count in zip(REASONS, counts, strict=True) if count}

    def changes(self, place: int) -> Sequence[Change]:
        if place not in self._changes:
            self._changes[place] = self._histories.changes.of(self._numbers[place : place + 1]).changes()
        return self._changes[place]

    def pauses(self, place: int) -> Sequence[CommitPause]:
        return self._histories.pauses.get(self._number_of[place], ())

    def removals(self, place: int) -> Sequence[Removal]:
        return self._histories.removals.get(self._number_of[place], ())

    def dropped(self, place: int) -> Sequence[Dropped]:
        return self._histories.dropped.get(self._number_of[place], ())
