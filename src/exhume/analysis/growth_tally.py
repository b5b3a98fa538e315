"""Counts of each key and hour of one offsets partition, and the range that a cleaner may clean.

(Source: Cleaner, LogCleanerManager.cleanableOffsets and calculateCleanableBytes of Kafka 3.8.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from exhume.codecs.log_directory import PartitionDirectory
from exhume.durations import HOUR_MS

#: The time of a record without one.
NO_TIME = np.iinfo(np.int64).min
Floats = npt.NDArray[np.float64]
_Int64s = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Reach:
    """The range of a partition that a cleaner may clean.

    `segments` are base offsets and sizes in bytes, in log order; other numbers are record offsets.
    """

    segments: tuple[tuple[int, int], ...]
    first_dirty: int
    first_uncleanable: int
    open_transaction: int | None

    @property
    def first_dirty_end(self) -> int:
        """Return the end of the first dirty segment; the active segment does not count."""
        return next((base for base, _ in self.segments if base > self.first_dirty), self.first_dirty)

    @property
    def is_stopped_by_transaction(self) -> bool:
        return bool(self.segments) and self.first_uncleanable < self.segments[-1][0]

    @property
    def stopped_by(self) -> str:
        """Return what stops the cleaner."""
        return "open_transaction" if self.is_stopped_by_transaction else "active_segment"

    @property
    def size_bytes(self) -> int:
        """Return the bytes of all segments."""
        return sum(size for _, size in self.segments)

    def bytes_between(self, first: int, end: int) -> int:
        """Return the size of the segments with a base offset from `first` on and before `end`."""
        return sum(size for base, size in self.segments if first <= base < end)


def reach_of(directory: PartitionDirectory, open_transaction: int | None) -> Reach:
    """Return the range that a cleaner may clean. `open_transaction` is the first record offset of the oldest open transaction, or None."""
    segments = tuple((each.base_offset, each.size_bytes) for each in directory.read_segments)
    bases = [base for base, _ in segments]
    start = directory.start_offset
    active = bases[-1] if bases else 0
    end = active
    if open_transaction is not None and open_transaction < active:
        end = max((base for base in bases if base <= open_transaction), default=active)
    # The cleaner ignores a checkpoint after the end of the log.
    dirty = directory.cleaner_offset if directory.cleaner_offset is not None else start
    return Reach(segments, max(dirty, start), end, open_transaction)


#: The counts per key: records and bytes, of all and of those that a cleaner may clean; and the last record of each.
_COUNTS = ("records", "size", "cleanable_records", "cleanable_size")
_LASTS = ("last_size", "last_is_tombstone", "last_timestamp", "last_offset")
_LAST_CLEANABLES = ("last_cleanable_size", "last_cleanable_is_due", "last_cleanable_timestamp")
_NUMBERS = ("last_timestamp", "last_offset", "last_cleanable_timestamp", "first_offset")
_COLUMNS = {name: np.int64 if name in _NUMBERS else np.float64 for name in (*_COUNTS, *_LASTS, *_LAST_CLEANABLES, "first_offset")}


@dataclass(frozen=True, slots=True)
class _Data:
    """Some data records. `numbers` are those of their keys, `is_due` marks tombstones after their horizon."""

    numbers: _Int64s
    offsets: _Int64s
    sizes: Floats
    times: _Int64s
    is_tombstone: _Flags
    is_due: _Flags


@dataclass(slots=True)
class Tally:
    """The keys of one partition, record by record."""

    reach: Reach
    now_ms: int
    #: True if `hours` are counted.
    has_hours: bool = True
    #: In the order of their numbers.
    keys: pa.Array = field(default_factory=lambda: pa.array([], pa.binary()))
    columns: dict[str, npt.NDArray[Any]] = field(default_factory=lambda: {name: np.zeros(1024, kind) for name, kind in _COLUMNS.items()})
    marker_records: int = 0
    marker_bytes: float = 0.0
    markers: tuple[int, int, int] | None = None
    hours: dict[str, dict[int, Any]] = field(default_factory=lambda: {name: {} for name in (*_COUNTS, "first_offset", "last_offset")})
    first_dirty_ms: int | None = None
    last_offset: int | None = None
    last_timestamp_ms: int | None = None

    def add(self, chunk: pa.Table) -> None:
        """Count these records."""
        chunk = chunk.combine_chunks()
        offsets, sizes = _array(chunk, "record_offset", -1), chunk["size_bytes"].to_numpy()
        times = _array(chunk, "timestamp_ms", NO_TIME)
        is_control = chunk["is_control"].to_numpy()
        self.last_offset = int(offsets[-1])
        self._note_times(offsets, times)
        if is_control.any():
            self._add_markers(offsets[is_control], sizes[is_control], times[is_control])
        is_data = ~is_control
        horizons = _array(chunk, "delete_horizon_ms", np.iinfo(np.int64).max)
        is_tombstone = chunk["is_tombstone"].to_numpy()
        is_due = is_tombstone & (horizons <= self.now_ms)
        keys = chunk["key"].combine_chunks() if isinstance(chunk["key"], pa.ChunkedArray) else chunk["key"]
        numbers = self._numbers_of(keys, is_data)
        data = _Data(numbers, offsets[is_data], sizes[is_data], times[is_data], is_tombstone[is_data], is_due[is_data])
        self._add_keys(data)
        if self.has_hours:
            self._add_hours(data)

    def _note_times(self, offsets: _Int64s, times: _Int64s) -> None:
        known = times[times != NO_TIME]
        if len(known):
            newest = int(known.max())
            self.last_timestamp_ms = newest if self.last_timestamp_ms is None else max(self.last_timestamp_ms, newest)
        is_first_dirty = (offsets >= self.reach.first_dirty) & (offsets < self.reach.first_dirty_end) & (times != NO_TIME)
        if is_first_dirty.any():
            newest = int(times[is_first_dirty].max())
            self.first_dirty_ms = newest if self.first_dirty_ms is None else max(self.first_dirty_ms, newest)

    def _add_markers(self, offsets: _Int64s, sizes: Floats, times: _Int64s) -> None:
        self.marker_records += len(offsets)
        self.marker_bytes += float(sizes.sum())
        first = int(offsets[0]) if self.markers is None else self.markers[0]
        self.markers = (first, int(offsets[-1]), int(times[-1]))

    def _numbers_of(self, keys: pa.Array, is_data: _Flags) -> _Int64s:
        """Return the number of the key of each of these records; new keys get the next numbers."""
        encoded = (keys if is_data.all() else keys.filter(pa.array(is_data))).dictionary_encode(null_encoding="encode")
        distinct = pc.index_in(encoded.dictionary, value_set=self.keys)
        if distinct.null_count:
            new = encoded.dictionary.filter(pc.is_null(distinct))
            more = pa.array(np.arange(len(self.keys), len(self.keys) + len(new), dtype=np.int32))
            distinct = pc.replace_with_mask(distinct, pc.is_null(distinct), more)
            self.keys = pa.concat_arrays([self.keys, new])
        known = self.keys
        room = len(next(iter(self.columns.values())))
        if len(known) > room:
            more = max(len(known), room) * 2 - room
            self.columns = {name: np.concatenate([column, np.zeros(more, column.dtype)]) for name, column in self.columns.items()}
        numbers: _Int64s = distinct.to_numpy().astype(np.int64)[encoded.indices.to_numpy()]
        return numbers

    def _add_keys(self, data: _Data) -> None:
        columns, numbers, offsets, sizes, times = self.columns, data.numbers, data.offsets, data.sizes, data.times
        is_new = columns["records"][numbers] == 0
        # For equal numbers the last assignment wins: assign in reverse, so that the first records win.
        columns["first_offset"][numbers[is_new][::-1]] = offsets[is_new][::-1]
        self._count(numbers, sizes, "records", "size")
        for name, values in zip(_LASTS, (sizes, data.is_tombstone, times, offsets), strict=True):
            columns[name][numbers] = values
        is_cleanable = offsets < self.reach.first_uncleanable
        if is_cleanable.any():
            numbers = numbers[is_cleanable]
            self._count(numbers, sizes[is_cleanable], "cleanable_records", "cleanable_size")
            for name, cleanable in zip(_LAST_CLEANABLES, (sizes, data.is_due, times), strict=True):
                columns[name][numbers] = cleanable[is_cleanable]

    def _count(self, numbers: _Int64s, sizes: Floats, records: str, size: str) -> None:
        most = int(numbers.max(initial=-1)) + 1
        self.columns[records][:most] += np.bincount(numbers, minlength=most)
        self.columns[size][:most] += np.bincount(numbers, sizes, minlength=most)

    def _add_hours(self, data: _Data) -> None:
        offsets, sizes, hours = data.offsets, data.sizes, _hours(data.times)
        is_cleanable = offsets < self.reach.first_uncleanable
        distinct, places = np.unique(hours, return_inverse=True)
        count, size = np.bincount(places), np.bincount(places, sizes)
        cleanable, cleanable_size = np.bincount(places, is_cleanable), np.bincount(places, sizes * is_cleanable)
        first, last = np.empty(len(distinct), np.int64), np.empty(len(distinct), np.int64)
        first[places[::-1]], last[places] = offsets[::-1], offsets
        for number, hour in enumerate(distinct.tolist()):
            for name, values in zip(_COUNTS, (count, size, cleanable, cleanable_size), strict=True):
                self.hours[name][hour] = self.hours[name].get(hour, 0.0) + float(values[number])
            self.hours["first_offset"].setdefault(hour, int(first[number]))
            self.hours["last_offset"][hour] = int(last[number])


def _hours(times: _Int64s) -> _Int64s:
    hours: _Int64s = np.where(times == NO_TIME, NO_TIME, times // HOUR_MS * HOUR_MS)
    return hours


def _array(chunk: pa.Table, name: str, missing: int) -> _Int64s:
    values: _Int64s = chunk[name].fill_null(missing).to_numpy()
    return values


def measures(columns: Mapping[str, npt.NDArray[Any]]) -> dict[str, Floats]:
    """Return the measures of each key, from its counts."""
    is_tombstone, is_due = columns["last_is_tombstone"], columns["last_cleanable_is_due"]
    has_cleanable = columns["cleanable_records"] > 0
    kept = np.where(is_due > 0, 0, has_cleanable)
    return {
        "records": columns["records"],
        "size_bytes": columns["size"],
        "live_records": np.ones(len(is_due)),
        "live_bytes": columns["last_size"],
        "superseded_records": columns["records"] - 1,
        "superseded_bytes": columns["size"] - columns["last_size"],
        "tombstone_records": is_tombstone,
        "tombstone_bytes": columns["last_size"] * is_tombstone,
        "freeable_records": columns["cleanable_records"] - kept,
        "freeable_bytes": columns["cleanable_size"] - columns["last_cleanable_size"] * kept,
    }


def summed_by_hour(times: _Int64s, counts: npt.NDArray[Any], sizes: Floats) -> dict[int, tuple[float, float]]:
    """Return the counts and the sizes of each hour, by its begin in ms; `NO_TIME` for records without a time."""
    hours, places = np.unique(_hours(times), return_inverse=True)
    summed, summed_sizes = np.bincount(places, counts), np.bincount(places, sizes)
    return {int(hour): (float(summed[number]), float(summed_sizes[number])) for number, hour in enumerate(hours)}
