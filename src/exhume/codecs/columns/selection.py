"""Select the records of a block that a filter accepts."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from exhume.codecs.columns.arrow import Flags, texts
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.kernels import keys, records, scan
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import RECORD_TYPES, decode_control_record, decode_record

_TYPES = 1 << 16
_MOST_INT32 = (1 << 31) - 1
_CONTROL_NAMES = frozenset({"end_txn_marker", "control", "unknown"})


class Selection:
    """Applies a `RecordFilter` to record blocks instead of single records."""

    def __init__(self, wanted: RecordFilter) -> None:
        self._wanted = wanted
        self._needs_names = any(condition is not None for condition in (wanted.groups, wanted.topics, wanted.partitions))
        self._types = _wanted_types(wanted.types, known_only=self._needs_names)
        self._takes_control = not self._needs_names and (wanted.types is None or not _CONTROL_NAMES.isdisjoint(wanted.types))

    def of(self, block: RecordBlock) -> RecordBlock:
        """Return the records of this block that the filter accepts."""
        is_placed = self._is_placed(block.records)
        if is_placed is not None and not is_placed.all():
            block = block.only(np.flatnonzero(is_placed))
        if not self._wanted.needs_key or not len(block):
            return block
        numbers = block.records[records.RECORD_TYPE]
        is_control = block.batches.columns[scan.ATTRIBUTES][block.records[records.BATCH]] & scan.CONTROL != 0
        # A missing type is not one of the 65536: it has the last row of the table.
        is_accepted = np.where(
            is_control, self._takes_control, self._types[np.where(numbers == records.MISSING, _TYPES, numbers & _TYPES - 1)]
        )
        left = np.flatnonzero(is_accepted)
        if len(left) < len(block):
            block, is_control = block.only(left), is_control[left]
        if not len(block):
            return block
        is_certain = ~is_control
        is_accepted = np.ones(len(block), np.bool_)
        if self._needs_names:
            fields = np.empty((keys.COLUMNS, len(block)), np.int64)
            keys.read_keys(block.data, block.records, fields)
            is_certain &= fields[keys.IS_READ] != 0
            fields[:, ~is_certain] = -1
            is_accepted = self._has_names(block.data, fields)
        for number in np.flatnonzero(~is_certain).tolist():
            is_accepted[number] = self._accepts(block, number, is_control=bool(is_control[number]))
        return block if is_accepted.all() else block.only(np.flatnonzero(is_accepted))

    def _is_placed(self, rows: Int64s) -> Flags | None:
        wanted, offsets, timestamps = self._wanted, rows[records.OFFSET], rows[records.TIMESTAMP]
        conditions = []
        if wanted.from_offset is not None:
            conditions.append(offsets >= wanted.from_offset)
        if wanted.to_offset is not None:
            conditions.append(offsets <= wanted.to_offset)
        if wanted.from_time_ms is not None:
            conditions.append((timestamps != -1) & (timestamps >= wanted.from_time_ms))
        if wanted.to_time_ms is not None:
            conditions.append((timestamps != -1) & (timestamps <= wanted.to_time_ms))
        return np.logical_and.reduce(conditions) if conditions else None

    def _has_names(self, data: Bytes, fields: Int64s) -> Flags:
        wanted = self._wanted
        is_accepted = np.ones(fields.shape[1], np.bool_)
        if wanted.groups is not None:
            is_accepted &= _is_one_of(data, fields[keys.GROUP_START], fields[keys.GROUP_SIZE], wanted.groups)
        if wanted.topics is not None:
            is_accepted &= _is_one_of(data, fields[keys.TOPIC_START], fields[keys.TOPIC_SIZE], wanted.topics)
        if wanted.partitions is not None:
            numbers = [int(number) for number in wanted.partitions if -_MOST_INT32 - 1 <= number <= _MOST_INT32]
            is_accepted &= np.isin(fields[keys.PARTITION], np.array(numbers, np.int64))
        return is_accepted

    def _accepts(self, block: RecordBlock, number: int, *, is_control: bool) -> bool:
        key, _ = block.key_and_value(number)
        return self._wanted.accepts_key((decode_control_record if is_control else decode_record)(key, None))


def _wanted_types(types: Collection[str] | None, *, known_only: bool) -> npt.NDArray[np.bool_]:
    """Return True for each record type that the filter may accept: types as 16 bits, then the missing type.

    With `known_only`, only known types count, because no other key is known to have names.
    """
    table = np.full(_TYPES + 1, types is None or "unknown" in types)
    if known_only:
        table[:] = False
    for number, record_type in RECORD_TYPES.items():
        table[number] = types is None or record_type.name in types or str(number) in types
    for name in types or ():
        with suppress(ValueError):
            number = int(name)
            if -(1 << 15) <= number < 1 << 15 and (number in RECORD_TYPES or not known_only):
                table[number & _TYPES - 1] = True
    return table


def _is_one_of(data: Bytes, starts: Int64s, sizes: Int64s, names: Collection[Any]) -> Flags:
    found = texts(data, starts, sizes, pa.string())
    valid = [name for name in names if isinstance(name, str) and _is_text(name)]
    is_in: Flags = pc.is_in(found, value_set=pa.array(valid, pa.string())).to_numpy(zero_copy_only=False)
    return is_in


def _is_text(name: str) -> bool:
    """Return False if no valid UTF-8 has this text."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
