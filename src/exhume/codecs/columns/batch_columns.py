"""Header fields of batches as Arrow: the table of batches, and the columns about batches in the tables of records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from exhume.codecs import schemas
from exhume.codecs.batch_format import NOT_SET
from exhume.codecs.columns.arrow import ROWS, Flags, choices, flags, numbers
from exhume.codecs.columns.blocks import Block
from exhume.codecs.columns.careful_batches import CRC_STATUSES
from exhume.codecs.compression import CODECS, codec_name
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.types import Int64s
from exhume.derived import derived_from

_TIMESTAMP_TYPES = ["CreateTime", "LogAppendTime", "NoTimestampType"]

#: Rows of a block: a range, or the number of a batch for each row of the result.
Selected = slice | Int64s


def batch_tables_of(block: Block) -> Iterator[pa.RecordBatch]:
    """Yield rows of `schemas.BATCHES` for the batches of this block."""
    for start in range(0, len(block), ROWS):
        selected = slice(start, min(start + ROWS, len(block)))
        yield pa.RecordBatch.from_arrays(
            [batch_column(block, selected, field.name, field.type) for field in schemas.BATCHES], schema=schemas.BATCHES
        )


def batch_column(block: Block, selected: Selected, name: str, data_type: pa.DataType) -> pa.Array:
    """Return one of `BATCH_COLUMNS` for the selected batches."""
    return BATCH_COLUMNS[name](block, selected, data_type)


_Column = Callable[[Block, Selected, pa.DataType], pa.Array]


def _count(block: Block, selected: Selected) -> int:
    return len(range(*selected.indices(len(block)))) if isinstance(selected, slice) else len(selected)


def _bounds(block: Block, selected: Selected, column: int) -> tuple[int, int]:
    """Return limits of this column in the selected batches: the least and the greatest value, perhaps of more batches. Numbers rise."""
    least, greatest = block.bounds(column)
    if least == greatest or isinstance(selected, slice):
        return least, greatest
    values = block.columns[column][selected[0] : selected[-1] + 1] if len(selected) else block.columns[column]
    return int(values.min()), int(values.max())


def _same(value: Callable[[Block], Any]) -> _Column:
    return lambda block, selected, data_type: block.same(value(block), data_type, _count(block, selected))


def _number(column: int) -> _Column:
    def make(block: Block, selected: Selected, data_type: pa.DataType) -> pa.Array:
        return numbers(block.columns[column][selected], data_type)

    return make


def _nullable(column: int, null: int, *, of: int | None = None) -> _Column:
    """Make a column that is null where it, or the column `of`, has the value `null`."""
    null_column = column if of is None else of

    def make(block: Block, selected: Selected, data_type: pa.DataType) -> pa.Array:
        least, greatest = _bounds(block, selected, null_column)
        values = block.columns[column][selected]
        if not least <= null <= greatest:
            return numbers(values, data_type)
        if least == greatest:
            return block.same(None, data_type, len(values))
        return numbers(values, data_type, block.columns[null_column][selected] != null)

    return make


def _base_timestamp(block: Block, selected: Selected, data_type: pa.DataType) -> pa.Array:
    """Return the base timestamps, null where the field is a delete horizon."""
    if not _some_have(block, selected, scan.DELETE_HORIZON):
        return _nullable(scan.BASE_TIMESTAMP, NOT_SET)(block, selected, data_type)
    timestamps = block.columns[scan.BASE_TIMESTAMP][selected]
    return numbers(timestamps, data_type, ~_have_horizon(block, selected) & (timestamps != NOT_SET))


def _delete_horizon(block: Block, selected: Selected, data_type: pa.DataType) -> pa.Array:
    if not _some_have(block, selected, scan.DELETE_HORIZON):
        return block.same(None, data_type, _count(block, selected))
    return numbers(block.columns[scan.BASE_TIMESTAMP][selected], data_type, _have_horizon(block, selected))


def _have_horizon(block: Block, selected: Selected) -> Flags:
    have: Flags = block.columns[scan.ATTRIBUTES][selected] & scan.DELETE_HORIZON != 0
    return have


def _some_have(block: Block, selected: Selected, bit: int) -> bool:
    """Return False if no batch can have this attribute."""
    least, greatest = _bounds(block, selected, scan.ATTRIBUTES)
    return least != greatest or bool(least & bit)


def _of_attributes(name: Callable[[Any], Any], make_array: Callable[[Int64s], pa.Array]) -> _Column:
    """Make a column of attributes: one value if all batches have the same attributes, else an array."""

    def make(block: Block, selected: Selected, data_type: pa.DataType) -> pa.Array:
        least, greatest = _bounds(block, selected, scan.ATTRIBUTES)
        if least == greatest:
            return block.same(name(least), data_type, _count(block, selected))
        return make_array(block.columns[scan.ATTRIBUTES][selected])

    return make


def _bit(bit: int) -> _Column:
    return _of_attributes(lambda attributes: bool(attributes & bit), lambda attributes: flags(attributes & bit != 0))


def _codec(block: Block, selected: Selected, data_type: pa.DataType) -> pa.Array:
    return _choice(_codec_names(), scan.CODEC, 0)(block, selected, data_type)


@derived_from(CODECS)
def _codec_names() -> list[str]:
    return [codec_name(codec) for codec in range(scan.CODEC + 1)]


def _choice(names: list[str], bits: int, shift: int) -> _Column:
    return _of_attributes(
        lambda attributes: names[attributes >> shift & bits], lambda attributes: choices(names, attributes >> shift & bits)
    )


def _timestamp_type(block: Block, selected: Selected, data_type: pa.DataType) -> pa.Array:
    if _bounds(block, selected, scan.MAGIC)[0] > 0:
        return _choice(_TIMESTAMP_TYPES, 1, 3)(block, selected, data_type)
    has_none = block.columns[scan.MAGIC][selected] == 0
    is_stamped = block.columns[scan.ATTRIBUTES][selected] >> 3 & 1
    return choices(_TIMESTAMP_TYPES, np.where(has_none, _TIMESTAMP_TYPES.index("NoTimestampType"), is_stamped))


def _crc_status(block: Block, selected: Selected, data_type: pa.DataType) -> pa.Array:
    if block.careful is None:
        return block.same(block.crc_status, data_type, _count(block, selected))
    return choices(list(CRC_STATUSES), block.columns[scan.IS_SOUND][selected])


def _base_offset(block: Block, selected: Selected, data_type: pa.DataType) -> pa.Array:
    is_known = block.has_base_offsets()
    return numbers(block.columns[scan.BASE_OFFSET][selected], data_type, None if is_known is None else is_known[selected])


#: The columns of `schemas.RECORDS` about a batch, from the columns of a scan.
BATCH_COLUMNS: Mapping[str, _Column] = {
    "replica": _same(lambda block: block.partition.replica),
    "offsets_partition": _same(lambda block: block.partition.offsets_partition),
    "path": _same(lambda block: block.segment.path),
    "byte_position": _number(scan.POSITION),
    "size_bytes": _number(scan.SIZE),
    "base_offset": _base_offset,
    "last_offset": _number(scan.LAST_OFFSET),
    "magic": _number(scan.MAGIC),
    "codec": _codec,
    "timestamp_type": _timestamp_type,
    "base_timestamp_ms": _base_timestamp,
    "max_timestamp_ms": _nullable(scan.MAX_TIMESTAMP, NOT_SET),
    "partition_leader_epoch": _nullable(scan.LEADER_EPOCH, scan.NO_LEADER_EPOCH),
    "producer_id": _nullable(scan.PRODUCER_ID, NOT_SET),
    "producer_epoch": _nullable(scan.PRODUCER_EPOCH, NOT_SET, of=scan.PRODUCER_ID),
    "base_sequence": _nullable(scan.BASE_SEQUENCE, NOT_SET),
    "is_transactional": _bit(scan.TRANSACTIONAL),
    "is_control": _bit(scan.CONTROL),
    "delete_horizon_ms": _delete_horizon,
    "record_count": _number(scan.RECORD_COUNT),
    "crc": _number(scan.CRC),
    "crc_status": _crc_status,
}
