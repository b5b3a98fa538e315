"""The rows of a query in types that every output has."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as pat

from exhume.arrow_times import TIME


def plain(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return these rows with times in milliseconds, sums of whole numbers as int64, and other decimals as float64.

    DuckDB counts times in microseconds, and gives a sum of int64 as a decimal of 38 digits.
    """
    schema = pa.schema([pa.field(field.name, _plain_type(field.type)) for field in reader.schema])

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            columns = [_as(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, rows())


def _plain_type(data_type: pa.DataType) -> pa.DataType:
    if pat.is_timestamp(data_type) and data_type.tz is not None:
        return TIME
    if pat.is_decimal(data_type):
        return pa.float64() if data_type.scale else pa.int64()
    if pat.is_dictionary(data_type):
        return data_type.value_type
    return data_type


def _as(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    if column.type == data_type:
        return column
    if pat.is_timestamp(data_type):
        return column.cast(data_type, safe=False)
    return column.cast(data_type)
