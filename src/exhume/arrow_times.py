"""Times as Arrow timestamps. Inside exhume a time is int64 milliseconds, as written; tools that read Arrow expect a type."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from exhume.moments import is_moment

TIME = pa.timestamp("ms", "UTC")
#: Tools that count microseconds in 64 bits have no later time, and no earlier one below zero.
_MOST_MS = ((1 << 63) - 1) // 1000


def is_time(field: pa.Field) -> bool:
    """Return True for a column of int64 milliseconds since the epoch."""
    return bool(pat.is_int64(field.type) and is_moment(field.name))


def timed_schema(schema: pa.Schema) -> pa.Schema:
    """Return this schema with times as `timestamp[ms, UTC]`."""
    return pa.schema([pa.field(field.name, TIME) if is_time(field) else field for field in schema])


def timed(table: pa.Table) -> pa.Table:
    """Return this table with times as `timestamp[ms, UTC]`, each as it is: also those beyond all calendars."""
    return table.cast(timed_schema(table.schema))


def with_times(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return these rows with times as `timestamp[ms, UTC]`; a time that no calendar of 64-bit microseconds has is null."""
    columns = [_times(column) if is_time(field) else column for field, column in zip(batch.schema, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=timed_schema(batch.schema))


def _times(column: pa.Array) -> pa.Array:
    bounds = pc.min_max(column)
    if bounds["max"].is_valid and (bounds["max"].as_py() > _MOST_MS or bounds["min"].as_py() < -_MOST_MS):
        fits = pc.and_(pc.less_equal(column, _MOST_MS), pc.greater_equal(column, -_MOST_MS))
        column = pc.if_else(fits, column, pa.scalar(None, pa.int64()))
    return column.cast(TIME)
