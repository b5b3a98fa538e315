"""Header fields of batches as Arrow: the table of batches, and the columns about batches in the tables of records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from exhume.codecs import schemas
from exhume.codecs.batch_format import NOT_SET
from exhume.codecs.columns.arrow import ROWS, Flags, choices, flags, numbers
from exhume.codecs.columns.runs import Run
from exhume.codecs.compression import CODECS, codec_name
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.types import Int64s
from exhume.derived import derived_from

_TIMESTAMP_TYPES = ["CreateTime", "LogAppendTime", "NoTimestampType"]

#: Rows of a run: a range, or the number of a batch for each row of the result.
Selected = slice | Int64s


def batch_tables_of(run: Run) -> Iterator[pa.RecordBatch]:
    """Yield rows of `schemas.BATCHES` for the batches of this run."""
    for start in range(0, len(run), ROWS):
        selected = slice(start, min(start + ROWS, len(run)))
        yield pa.RecordBatch.from_arrays([batch_column(run, selected, field) for field in schemas.BATCHES], schema=schemas.BATCHES)


def batch_column(run: Run, selected: Selected, field: pa.Field) -> pa.Array:
    """Return one of `BATCH_COLUMNS` for the selected batches."""
    return BATCH_COLUMNS[field.name](run, selected, field.type)


_Column = Callable[[Run, Selected, pa.DataType], pa.Array]


def _count(run: Run, selected: Selected) -> int:
    return len(range(*selected.indices(len(run)))) if isinstance(selected, slice) else len(selected)


def _bounds(run: Run, selected: Selected, column: int) -> tuple[int, int]:
    """Return limits of this column in the selected batches: the least and the greatest value, perhaps of more batches. Numbers rise."""
    least, greatest = run.bounds(column)
    if least == greatest or isinstance(selected, slice):
        return least, greatest
    values = run.columns[column][selected[0] : selected[-1] + 1] if len(selected) else run.columns[column]
    return int(values.min()), int(values.max())


def _same(value: Callable[[Run], Any]) -> _Column:
    return lambda run, selected, data_type: run.same(value(run), data_type, _count(run, selected))


def _number(column: int) -> _Column:
    def make(run: Run, selected: Selected, data_type: pa.DataType) -> pa.Array:
        return numbers(run.columns[column][selected], data_type)

    return make


def _nullable(column: int, null: int, *, of: int | None = None) -> _Column:
    """Make a column that is null where it, or the column `of`, has the value `null`."""
    null_column = column if of is None else of

    def make(run: Run, selected: Selected, data_type: pa.DataType) -> pa.Array:
        least, greatest = _bounds(run, selected, null_column)
        values = run.columns[column][selected]
        if not least <= null <= greatest:
            return numbers(values, data_type)
        if least == greatest:
            return run.same(None, data_type, len(values))
        return numbers(values, data_type, run.columns[null_column][selected] != null)

    return make


def _base_timestamp(run: Run, selected: Selected, data_type: pa.DataType) -> pa.Array:
    """Return the base timestamps, null where the field is a delete horizon."""
    if not _some_have(run, selected, scan.DELETE_HORIZON):
        return _nullable(scan.BASE_TIMESTAMP, NOT_SET)(run, selected, data_type)
    timestamps = run.columns[scan.BASE_TIMESTAMP][selected]
    return numbers(timestamps, data_type, ~_have_horizon(run, selected) & (timestamps != NOT_SET))


def _delete_horizon(run: Run, selected: Selected, data_type: pa.DataType) -> pa.Array:
    if not _some_have(run, selected, scan.DELETE_HORIZON):
        return run.same(None, data_type, _count(run, selected))
    return numbers(run.columns[scan.BASE_TIMESTAMP][selected], data_type, _have_horizon(run, selected))


def _have_horizon(run: Run, selected: Selected) -> Flags:
    have: Flags = run.columns[scan.ATTRIBUTES][selected] & scan.DELETE_HORIZON != 0
    return have


def _some_have(run: Run, selected: Selected, bit: int) -> bool:
    """Return False if no batch can have this attribute."""
    least, greatest = _bounds(run, selected, scan.ATTRIBUTES)
    return least != greatest or bool(least & bit)


def _of_attributes(name: Callable[[Any], Any], make_array: Callable[[Int64s], pa.Array]) -> _Column:
    """Make a column of attributes: one value if all batches have the same attributes, else an array."""

    def make(run: Run, selected: Selected, data_type: pa.DataType) -> pa.Array:
        least, greatest = _bounds(run, selected, scan.ATTRIBUTES)
        if least == greatest:
            return run.same(name(least), data_type, _count(run, selected))
        return make_array(run.columns[scan.ATTRIBUTES][selected])

    return make


def _bit(bit: int) -> _Column:
    return _of_attributes(lambda attributes: bool(attributes & bit), lambda attributes: flags(attributes & bit != 0))


def _codec(run: Run, selected: Selected, data_type: pa.DataType) -> pa.Array:
    return _choice(_codec_names(), scan.CODEC, 0)(run, selected, data_type)


@derived_from(CODECS)
def _codec_names() -> list[str]:
    return [codec_name(codec) for codec in range(scan.CODEC + 1)]


def _choice(names: list[str], bits: int, shift: int) -> _Column:
    return _of_attributes(
        lambda attributes: names[attributes >> shift & bits], lambda attributes: choices(names, attributes >> shift & bits)
    )


def _timestamp_type(run: Run, selected: Selected, data_type: pa.DataType) -> pa.Array:
    if _bounds(run, selected, scan.MAGIC)[0] > 0:
        return _choice(_TIMESTAMP_TYPES, 1, 3)(run, selected, data_type)
    has_none = run.columns[scan.MAGIC][selected] == 0
    is_stamped = run.columns[scan.ATTRIBUTES][selected] >> 3 & 1
    return choices(_TIMESTAMP_TYPES, np.where(has_none, _TIMESTAMP_TYPES.index("NoTimestampType"), is_stamped))


#: The columns of `records_table` about a batch, from the columns of a scan.
BATCH_COLUMNS: Mapping[str, _Column] = {
    "replica": _same(lambda run: run.partition.replica),
    "offsets_partition": _same(lambda run: run.partition.offsets_partition),
    "path": _same(lambda run: run.segment.path),
    "byte_position": _number(scan.POSITION),
    "size_bytes": _number(scan.SIZE),
    "base_offset": _number(scan.BASE_OFFSET),
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
    "crc_status": _same(lambda run: run.crc_status),
}
