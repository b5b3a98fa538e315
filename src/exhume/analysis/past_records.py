"""The records of one log around a moment: the facts that show which records a cleaner may have removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from exhume.analysis.number_columns import Int64s
from exhume.codecs.columns.arrow import texts
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.kernels import keys, scan
from exhume.codecs.kernels import records as fields
from exhume.codecs.log_pass import LogCollector
from exhume.codecs.record_types import RECORD_TYPES, decode_record

_KNOWN_TYPES = np.array(sorted(RECORD_TYPES), np.int64)


@dataclass(frozen=True, slots=True)
class LaterRecords:
    """The records of a log around a moment, each by its record offset.

    Attributes:
        last: the last record up to the moment; None if there is none.
        first: the first record after the moment; None if there is none.
        first_of_group: the first record of each group after the moment; markers belong to no group.
        transactions: each marker after the moment with its producer id, and the record offset after the last marker before it of the same
            producer: the earliest offset that its transaction can have.
    """

    last: int | None
    first: int | None
    first_of_group: Mapping[str, int]
    transactions: tuple[tuple[int, int, int], ...]


class LaterRecordReader(LogCollector):
    """Read the records of one log after a moment.

    `moment_offset` is the last record offset up to the moment; None for the end of the log. A broker starts to read at `start_offset`.
    """

    def __init__(self, start_offset: int, moment_offset: int | None) -> None:
        self._start_offset, self._moment_offset = start_offset, moment_offset
        self._last: int | None = None
        self._first: int | None = None
        self._first_of_group: dict[str, int] = {}
        #: Producer id and record offset of each control record, in the order of the log.
        self._markers: list[tuple[int, int]] = []

    def later(self) -> LaterRecords:
        """Return the records that were read."""
        last: dict[int, int] = {}
        transactions = []
        for producer_id, record_offset in self._markers:
            begin = last.get(producer_id, self._start_offset - 1) + 1
            last[producer_id] = record_offset
            if self._moment_offset is not None and record_offset > self._moment_offset:
                transactions.append((record_offset, producer_id, begin))
        return LaterRecords(self._last, self._first, self._first_of_group, tuple(transactions))

    def add_records(self, block: RecordBlock) -> None:
        """Add these records."""
        moment_offset = self._moment_offset
        if moment_offset is None:
            return
        batches, offsets = block.records[fields.BATCH], block.records[fields.OFFSET]
        is_control = block.batches.columns[scan.ATTRIBUTES][batches] & scan.CONTROL != 0
        is_in_log = offsets >= self._start_offset
        markers = np.flatnonzero(is_control & is_in_log)
        if len(markers):
            producers = block.batches.columns[scan.PRODUCER_ID][batches[markers]]
            self._markers += zip(producers.tolist(), offsets[markers].tolist(), strict=True)
        is_later = is_in_log & (offsets > moment_offset)
        is_before = is_in_log & ~is_later
        # Record offsets may go back from one block to the next.
        if is_before.any():
            last = int(offsets[is_before].max())
            self._last = last if self._last is None else max(self._last, last)
        if is_later.any():
            first = int(offsets[is_later].min())
            self._first = first if self._first is None else min(self._first, first)
        is_later &= ~is_control
        if is_later.any():
            self._note_groups(block if is_later.all() else block.only(np.flatnonzero(is_later)))

    def _note_groups(self, later: RecordBlock) -> None:
        found = np.empty((keys.COLUMNS, len(later)), np.int64)
        keys.read_keys(later.data, later.records, found)
        is_read = (found[keys.IS_READ] != 0) & np.isin(later.records[fields.RECORD_TYPE], _KNOWN_TYPES)
        named = [(number, _group_of(later.key_and_value(number)[0])) for number in np.flatnonzero(~is_read).tolist()]
        numbers = np.flatnonzero(is_read)
        if len(numbers):
            names = texts(later.data, found[keys.GROUP_START][numbers], found[keys.GROUP_SIZE][numbers], pa.string()).dictionary_encode()
            _, firsts = np.unique(names.indices.to_numpy(), return_index=True)
            named += zip(numbers[firsts].tolist(), names.dictionary.to_pylist(), strict=True)
        for number, group in sorted(named, key=lambda each: each[0]):
            self._note_group(group, int(later.records[fields.OFFSET, number]))

    def _note_group(self, group: str | None, record_offset: int) -> None:
        if group is not None:
            self._first_of_group.setdefault(group, record_offset)


class CleanerBound(LogCollector):
    """Find the record offset that the cleaner cannot have reached.

    A round leaves one record of each key before its end. So it ended before the second record of a key, at the latest: of a key that has
    two records after the last missing offset, because a replica may have fetched the gaps of a leader whose cleaner went further.
    """

    def __init__(self) -> None:
        self._next_offset = 0
        self._has_gap = False
        #: The keys after the last missing offset, up to the first that repeats.
        self._keys: set[bytes] = set()
        self._repeated: int | None = None

    def before(self, end_offset: int) -> int:
        """Return the offset below which the log may have been cleaned: at most this log end offset."""
        return end_offset if self._repeated is None or end_offset > self._next_offset else self._repeated

    def add_records(self, block: RecordBlock) -> None:
        """Add these records."""
        offsets = block.records[fields.OFFSET]
        if not len(offsets):
            return
        gaps = np.flatnonzero(np.diff(offsets, prepend=self._next_offset - 1) != 1)
        self._next_offset = int(offsets[-1]) + 1
        if len(gaps):
            self._has_gap, self._repeated = True, None
            self._keys.clear()
        if self._has_gap and self._repeated is None:
            self._note_keys(block, range(int(gaps[-1]) if len(gaps) else 0, len(offsets)))

    def _note_keys(self, block: RecordBlock, numbers: range) -> None:
        is_control = block.batches.columns[scan.ATTRIBUTES][block.records[fields.BATCH]] & scan.CONTROL != 0
        for number in numbers:
            key = None if is_control[number] else block.key_and_value(number)[0]
            if key is None:
                continue
            if key in self._keys:
                self._repeated = int(block.records[fields.OFFSET, number])
                self._keys.clear()
                return
            self._keys.add(key)


#: Times of missing records may go back further than those of the records that are left, by this factor.
_FURTHER_BACK = 10


class ClockReader(LogCollector):
    """Find out if a record that is missing before this append time may be later than it.

    A record that is earlier than the time by more than the times of the log go back comes before all later ones. So records that are
    missing before it are not later than the time.
    """

    def __init__(self, time_ms: int) -> None:
        self._time_ms = time_ms
        self._next_offset = 0
        self._greatest_ms = self._most_back_ms = 0
        #: The least time of a record up to the moment, after the last missing offset before it; None if there is none.
        self._least_ms: int | None = None
        self._has_passed = False

    def is_doubtful(self) -> bool:
        """Return True if a record that is missing before the last one that counts may be later than the time."""
        is_near = self._least_ms is None or self._least_ms > self._time_ms - self._most_back_ms * _FURTHER_BACK
        return self._most_back_ms > 0 and is_near

    def add_records(self, block: RecordBlock) -> None:
        """Add these records."""
        offsets, times_ms = block.records[fields.OFFSET], block.records[fields.TIMESTAMP]
        if not len(offsets):
            return
        is_timed = times_ms != fields.NO_TIMESTAMP
        timed = times_ms[is_timed]
        if len(timed):
            greatest = np.maximum.accumulate(np.maximum(timed, self._greatest_ms))
            self._most_back_ms = max(self._most_back_ms, int((greatest - timed).max()))
            self._greatest_ms = int(greatest[-1])
        if not self._has_passed:
            later = np.flatnonzero(is_timed & (times_ms > self._time_ms))
            self._has_passed = len(later) > 0
            until = int(later[0]) if len(later) else len(offsets)
            self._note_up_to(offsets[:until], times_ms[:until])
        self._next_offset = int(offsets[-1]) + 1

    def _note_up_to(self, offsets: Int64s, times_ms: Int64s) -> None:
        gaps = np.flatnonzero(np.diff(offsets, prepend=self._next_offset - 1) != 1)
        if len(gaps):
            self._least_ms = None
            times_ms = times_ms[gaps[-1] :]
        timed = times_ms[times_ms != fields.NO_TIMESTAMP]
        if len(timed):
            least = int(timed.min())
            self._least_ms = least if self._least_ms is None else min(least, self._least_ms)


def _group_of(key: bytes | None) -> str | None:
    """Return the group that this key names; None if it names no group."""
    group = decode_record(key, None).key.get("group")
    return group if isinstance(group, str) else None
