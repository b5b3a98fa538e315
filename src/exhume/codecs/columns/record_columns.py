"""Records as Arrow: the table of records, and the first columns of every typed table, which have the place of the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from exhume.codecs import schemas
from exhume.codecs.columns.arrow import no_elements, numbers, texts
from exhume.codecs.columns.batch_columns import batch_column
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.kernels import records


def record_table(block: RecordBlock) -> pa.RecordBatch:
    """Return these records as rows of `schemas.RECORDS`."""
    return pa.RecordBatch.from_arrays([record_column(block, field) for field in schemas.RECORDS], schema=schemas.RECORDS)


def record_column(block: RecordBlock, field: pa.Field) -> pa.Array:
    """Return a column about these records, or about the batches that hold them."""
    if field.name in _RECORD_COLUMNS:
        return _RECORD_COLUMNS[field.name](block, field.type)
    return _of_batch(block, field.name, field.type)


def _of_batch(block: RecordBlock, name: str, data_type: pa.DataType) -> pa.Array:
    return batch_column(block.batches, block.records[records.BATCH], name, data_type)


_Column = Callable[[RecordBlock, pa.DataType], pa.Array]


def _number(column: int, none: int | None = None) -> _Column:
    def make(block: RecordBlock, data_type: pa.DataType) -> pa.Array:
        values = block.records[column]
        return numbers(values, data_type, None if none is None else values != none)

    return make


def _bytes(start: int, size: int) -> _Column:
    return lambda block, data_type: texts(block.data, block.records[start], block.records[size], data_type)


_RECORD_COLUMNS: Mapping[str, _Column] = {
    "record_offset": _number(records.OFFSET),
    "timestamp_ms": _number(records.TIMESTAMP, records.NO_TIMESTAMP),
    "sequence": _number(records.SEQUENCE, records.MISSING),
    "record_type": _number(records.RECORD_TYPE, records.MISSING),
    "key": _bytes(records.KEY_START, records.KEY_SIZE),
    "value": _bytes(records.VALUE_START, records.VALUE_SIZE),
    "magic": lambda block, data_type: _of_batch(block, "magic", data_type) if block.details is None else block.details.magics,
    "timestamp_type": lambda block, data_type: (
        _of_batch(block, "timestamp_type", data_type) if block.details is None else block.details.timestamp_types
    ),
    "headers": lambda block, data_type: (
        no_elements(data_type).slice(0, len(block)) if block.details is None else block.details.headers.cast(data_type)
    ),
}
