"""Records as Arrow: the table of records, and the first columns of every typed table, which have the place of the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from exhume.codecs import schemas
from exhume.codecs.columns.arrow import no_elements, numbers, texts
from exhume.codecs.columns.batch_columns import batch_column
from exhume.codecs.columns.pieces import Piece
from exhume.codecs.kernels import records


def record_table(piece: Piece) -> pa.RecordBatch:
    """Return these records as rows of `schemas.RECORDS`."""
    return pa.RecordBatch.from_arrays([record_column(piece, field) for field in schemas.RECORDS], schema=schemas.RECORDS)


def record_column(piece: Piece, field: pa.Field) -> pa.Array:
    """Return a column about these records, or about the batches that hold them."""
    if field.name in _RECORD_COLUMNS:
        return _RECORD_COLUMNS[field.name](piece, field.type)
    return batch_column(piece.run, piece.records[records.BATCH], field)


_Column = Callable[[Piece, pa.DataType], pa.Array]


def _number(column: int, none: int | None = None) -> _Column:
    def make(piece: Piece, data_type: pa.DataType) -> pa.Array:
        values = piece.records[column]
        return numbers(values, data_type, None if none is None else values != none)

    return make


def _bytes(start: int, size: int) -> _Column:
    return lambda piece, data_type: texts(piece.data, piece.records[start], piece.records[size], data_type)


_RECORD_COLUMNS: Mapping[str, _Column] = {
    "record_offset": _number(records.OFFSET),
    "timestamp_ms": _number(records.TIMESTAMP, records.NO_TIMESTAMP),
    "sequence": _number(records.SEQUENCE, records.MISSING),
    "record_type": _number(records.RECORD_TYPE, records.MISSING),
    "key": _bytes(records.KEY_START, records.KEY_SIZE),
    "value": _bytes(records.VALUE_START, records.VALUE_SIZE),
    "headers": lambda piece, data_type: no_elements(data_type).slice(0, len(piece)),
}
