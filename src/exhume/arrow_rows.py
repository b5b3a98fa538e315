"""Rows into Arrow: the one place where Python values become columns of a schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from exhume.int64 import LARGEST_INT64, LEAST_INT64

#: Rows of one record batch: bounds the memory of everything that streams.
BATCH_ROWS = 8192

#: Which log a row is of: (replica, offsets partition), the first two columns of most tables.
Origin = tuple[str | None, int | None]


def batch_of(schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """These rows as one record batch; columns that a row lacks are null."""
    return pa.RecordBatch.from_arrays([column(field.type, [row.get(field.name) for row in rows]) for field in schema], schema=schema)


def table_of(schema: pa.Schema, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """These rows as a table."""
    return pa.Table.from_batches([batch_of(schema, list(rows))], schema=schema)


def column(data_type: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """These values as an array. Values of a JSON column are JSON texts.

    An integer beyond the 64 bits of its type becomes the nearest that they hold: a difference of two that fit may not fit.
    """
    if isinstance(data_type, pa.JsonType):
        return pa.array(values, pa.string()).cast(data_type)
    try:
        return pa.array(values, data_type)
    except OverflowError:
        return pa.array([value and max(LEAST_INT64, min(value, LARGEST_INT64)) for value in values], data_type)


def batches_of(schema: pa.Schema, rows: Iterable[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
    """These rows as record batches of at most `BATCH_ROWS` rows, none of them empty."""
    pending: list[Mapping[str, Any]] = []
    for row in rows:
        pending.append(row)
        if len(pending) >= BATCH_ROWS:
            yield batch_of(schema, pending)
            pending = []
    if pending:
        yield batch_of(schema, pending)
