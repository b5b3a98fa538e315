"""Keys of a group: views of the columns that `KeyHistories` keeps, so that a key costs nothing but what is asked of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import overload

import numpy as np

from exhume.analysis.detectors.changes import ChangeTable
from exhume.analysis.detectors.commit_loops.columns import NONE, CommitColumn, Int64s, KeyColumn
from exhume.analysis.detectors.commit_loops.loops import MINUTE_MS
from exhume.analysis.detectors.commit_rows import Flags, or_none
from exhume.analysis.detectors.commits import REASONS, Change, CommitPause, CommitRow, Dropped, Reason, Removal
from exhume.analysis.detectors.key_histories import KeyHistories

#: What a `GroupKeys` keeps, until it forgets it.
_MADE = ("names", "_places", "last_record_offsets", "_last_times", "usual_intervals_ms", "usual_rises", "_number_of", "_all_changes")


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """All that the log has of one key, in numbers; `changes`, `removals` and `dropped` in order. Made anew whenever it is asked for."""

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

    def _told(self, column: KeyColumn) -> int:
        return self._keys.told(column)[self._place]

    @property
    def commits(self) -> int:
        """Commits that counted."""
        return self._told(KeyColumn.COMMITS)

    @property
    def first_record_offset(self) -> int | None:
        """The first record that counted, of whatever kind; None where there are commits of transactions only that never did."""
        return or_none(self._told(KeyColumn.FIRST_OFFSET))

    @property
    def first_timestamp_ms(self) -> int | None:
        return or_none(self._told(KeyColumn.FIRST_TIME))

    @property
    def first_committed_offset(self) -> int | None:
        return self._told(KeyColumn.FIRST_VALUE) if self._told(KeyColumn.HAS_FIRST_VALUE) else None

    @property
    def last(self) -> CommitRow | None:
        """The last commit that counted; it holds unless `is_removed`."""
        return self._keys.last(self._place)

    @property
    def is_removed(self) -> bool:
        return bool(self._told(KeyColumn.IS_REMOVED))

    @property
    def holds(self) -> CommitRow | None:
        """What is committed at the end of the log."""
        return None if self.is_removed else self.last

    @property
    def lowest(self) -> int | None:
        return self._told(KeyColumn.LOWEST) if self._told(KeyColumn.HAS_VALUE) else None

    @property
    def highest(self) -> int | None:
        return self._told(KeyColumn.HIGHEST) if self._told(KeyColumn.HAS_VALUE) else None

    @property
    def repeats(self) -> int:
        """Commits of the value that held already."""
        return self._told(KeyColumn.REPEATS)

    @property
    def usual_interval_ms(self) -> float | None:
        """The median of the last `USUAL` intervals between commits; None before two."""
        return self._keys.usual_intervals_ms[self._place]

    @property
    def usual_rise(self) -> float | None:
        """The median of the last `USUAL` rises; None before two."""
        return self._keys.usual_rises[self._place]

    @property
    def commit_bytes(self) -> int:
        """Key and value bytes of all commits, before compression."""
        return self._told(KeyColumn.BYTES)

    @property
    def metadata_bytes(self) -> int:
        """What of them is metadata."""
        return self._told(KeyColumn.METADATA)

    @property
    def largest_metadata_bytes(self) -> int:
        return self._told(KeyColumn.LARGEST_METADATA)

    @property
    def transactional(self) -> int:
        """Commits of transactions."""
        return self._told(KeyColumn.STAGED)

    @property
    def without_leader_epoch(self) -> int:
        """Commits without a leader epoch."""
        return self._told(KeyColumn.WITHOUT_LEADER_EPOCH)

    @property
    def highest_leader_epoch(self) -> int:
        return self._told(KeyColumn.HIGHEST_LEADER_EPOCH)

    @property
    def hot_minutes(self) -> int:
        """The longest run of minutes with at least one commit a second each."""
        return self._told(KeyColumn.HOTTEST_RUN)

    @property
    def hot_from_ms(self) -> int | None:
        """When that began."""
        return self._told(KeyColumn.HOTTEST_FROM) * MINUTE_MS if self.hot_minutes else None

    @property
    def hot_to_ms(self) -> int | None:
        """When that was over."""
        return (self._told(KeyColumn.HOTTEST_LAST) + 1) * MINUTE_MS if self.hot_minutes else None

    @property
    def count_of(self) -> Mapping[Reason, int]:
        """How many commits stood out, for each reason that one did."""
        return self._keys.counts(self._place)

    @property
    def changes(self) -> Sequence[Change]:
        return self._keys.changes(self._place)

    @property
    def pauses(self) -> Sequence[CommitPause]:
        """The longest times without a commit, in order."""
        return self._keys.pauses(self._place)

    @property
    def removals(self) -> Sequence[Removal]:
        return self._keys.removals(self._place)

    @property
    def dropped(self) -> Sequence[Dropped]:
        return self._keys.dropped(self._place)

    def of(self, *reasons: Reason) -> Iterator[Change]:
        """The changes that stand out for any of these reasons."""
        return (change for change in self.changes if not change.reasons.isdisjoint(reasons))

    def held_at(self, record_offset: int) -> bool | None:
        """Whether the key had a value when this record was appended; None where the log does not say (before its first record of it)."""
        if self.first_record_offset is None or record_offset <= self.first_record_offset:
            return None
        before = [removal.record_offset for removal in self.removals if removal.record_offset < record_offset]
        if not before:
            return self.first_committed_offset is not None
        return any(before[-1] < change.commit.settled_offset < record_offset for change in self.of("back"))


class GroupKeys(Sequence[KeyHistory]):
    """The keys of one group, in the order in which the log met them.

    What few keys have is found without looking at each: `with_changes`, `with_removals`, `with_dropped`, `held_before`.
    """

    def __init__(self, histories: KeyHistories, group: str, numbers: Int64s) -> None:
        self.group = group
        self._lives, self._numbers = histories, numbers
        self._columns: dict[KeyColumn, list[int]] = {}
        self._lasts: dict[int, CommitRow | None] = {}
        self._changes: dict[int, list[Change]] = {}

    def forget(self) -> None:
        """Let go of what can be made again."""
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
        """Topic and partition of each."""
        names = self._lives.names
        topics, partitions = names.topics_and_partitions(self._numbers)
        return [*zip(map(names.topics().__getitem__, topics.tolist()), partitions.tolist(), strict=True)]

    @cached_property
    def _places(self) -> dict[tuple[str, int], int]:
        return {name: place for place, name in enumerate(self.names)}

    def find(self, topic: str, partition: int) -> KeyHistory | None:
        """The key of this partition; None where the group never committed for it."""
        place = self._places.get((topic, partition))
        return None if place is None else KeyHistory(self, place)

    def at(self, places: Int64s) -> list[KeyHistory]:
        """The keys in these places, each once, in their order here."""
        return [] if not len(places) else [KeyHistory(self, place) for place in np.unique(places).tolist()]

    def with_changes(self, *reasons: Reason) -> list[KeyHistory]:
        """The keys with a commit that stands out for any of these reasons; for whatever reason where none is named."""
        met = self._met(reasons or REASONS)
        if not met:
            return []
        has_one: Flags = np.any(self._lives.counts[self._numbers][:, met], axis=1)
        return self._those(has_one)

    def _met(self, reasons: Sequence[Reason]) -> list[int]:
        """Those of these reasons, by their places in `REASONS`, that any key has a change for."""
        return [place for place in map(REASONS.index, reasons) if self._has_reason[place]]

    @cached_property
    def _has_reason(self) -> list[bool]:
        flags: Flags = np.any(self._lives.counts[self._numbers], axis=0)
        has: list[bool] = flags.tolist()
        return has

    def changed(self, *reasons: Reason) -> ChangeTable:
        """The commits that stand out for any of these reasons as columns, key by key; `places` are those of the keys here."""
        if not self._met(reasons):
            return self._lives.changes.none
        return self._all_changes.where(self._all_changes.has(*reasons))

    @cached_property
    def _all_changes(self) -> ChangeTable:
        return self._lives.changes.of(self._numbers)

    def with_pauses(self) -> list[KeyHistory]:
        """The keys that were not committed for much longer than usual, and then were again."""
        return self._those_in(self._lives.pauses)

    def with_removals(self) -> list[KeyHistory]:
        """The keys with a tombstone."""
        return self._those_in(self._lives.removals)

    def with_dropped(self) -> list[KeyHistory]:
        """The keys with a commit of a transaction that never counted."""
        return self._those_in(self._lives.dropped)

    def _those_in(self, kept: Collection[int]) -> list[KeyHistory]:
        return [KeyHistory(self, place) for place, number in enumerate(self._number_of) if number in kept] if kept else []

    def held_before(self, commit_timestamp_ms: int) -> list[KeyHistory]:
        """The keys that hold what was committed before this time."""
        holds = (self.numbers(KeyColumn.HAS_VALUE) != 0) & (self.numbers(KeyColumn.IS_REMOVED) == 0)
        return self._those(holds & (self._lives.last[self._numbers, CommitColumn.COMMITTED_AT] < commit_timestamp_ms))

    def with_at_least(self, least: float, column: KeyColumn) -> list[KeyHistory]:
        """The keys of which a number is so large."""
        return self._those(self.numbers(column) >= least)

    def _those(self, wanted: Flags) -> list[KeyHistory]:
        return [KeyHistory(self, place) for place in np.flatnonzero(wanted).tolist()]

    def numbers(self, column: KeyColumn) -> Int64s:
        """A number of each key."""
        return self._lives.numbers(column, self._numbers)

    def told(self, column: KeyColumn) -> list[int]:
        """`numbers` as a list, which is kept."""
        told = self._columns.get(column)
        if told is None:
            told = self._columns[column] = self.numbers(column).tolist()
        return told

    def total(self, column: KeyColumn) -> int:
        """The sum of these numbers."""
        return int(self.numbers(column).sum())

    def first_committed_offsets(self) -> list[int]:
        """`first_committed_offset` of each key that has one."""
        values: list[int] = self.numbers(KeyColumn.FIRST_VALUE)[self.numbers(KeyColumn.HAS_FIRST_VALUE) != 0].tolist()
        return values

    @cached_property
    def last_record_offsets(self) -> list[int]:
        """Where the last commit of each key lies; -1 where it has none."""
        offsets: list[int] = np.where(
            self.numbers(KeyColumn.HAS_VALUE) != 0, self._lives.last[self._numbers, CommitColumn.OFFSET], NONE
        ).tolist()
        return offsets

    def last_times(self, names: Iterable[tuple[str, int]]) -> list[int]:
        """Append times of the last commits to these partitions; without those that have none."""
        known, times = self._places, self._last_times
        return [time for name in names if (place := known.get(name)) is not None and (time := times[place]) != NONE]

    @cached_property
    def _last_times(self) -> list[int]:
        times: list[int] = np.where(
            np.array(self.last_record_offsets) != NONE, self._lives.last[self._numbers, CommitColumn.TIME], NONE
        ).tolist()
        return times

    def newest(self, names: Iterable[tuple[str, int]]) -> CommitRow | None:
        """The last commit in the log that one of these partitions has; None where they have none."""
        known = self._places
        places = [place for name in names if (place := known.get(name)) is not None]
        last = max(places, key=self.last_record_offsets.__getitem__, default=None)
        return None if last is None else self.last(last)

    def were_committed_before(self, record_offset: int, names: Iterable[tuple[str, int]]) -> bool:
        """Whether something was said of one of these partitions in front of this record."""
        known, firsts = self._places, self.told(KeyColumn.FIRST_OFFSET)
        return any(NONE < firsts[place] < record_offset for name in names if (place := known.get(name)) is not None)

    def last(self, place: int) -> CommitRow | None:
        """The last commit of a key; None where none counted."""
        if place not in self._lasts:
            number = self._number_of[place]
            has_one = self.told(KeyColumn.HAS_VALUE)[place]
            self._lasts[place] = self._lives.names.commit(self._lives.last[number].tolist()) if has_one else None
        return self._lasts[place]

    @cached_property
    def usual_intervals_ms(self) -> list[float | None]:
        return self._lives.intervals.medians(self._numbers)

    @cached_property
    def usual_rises(self) -> list[float | None]:
        return self._lives.rises.medians(self._numbers)

    def counts(self, place: int) -> dict[Reason, int]:
        counts = self._lives.counts[self._number_of[place]].tolist()
        return {reason: count for reason, count in zip(REASONS, counts, strict=True) if count}

    def changes(self, place: int) -> Sequence[Change]:
        if place not in self._changes:
            self._changes[place] = self._lives.changes.of(self._numbers[place : place + 1]).changes()
        return self._changes[place]

    def pauses(self, place: int) -> Sequence[CommitPause]:
        return self._lives.pauses.get(self._number_of[place], ())

    def removals(self, place: int) -> Sequence[Removal]:
        return self._lives.removals.get(self._number_of[place], ())

    def dropped(self, place: int) -> Sequence[Dropped]:
        return self._lives.dropped.get(self._number_of[place], ())
