"""Convert rows to Arrow: the one place where Python values become columns of a schema.

A table is declared once, as the type of its rows:

    class OwnerRow(OfLog):
        group: str
        partition: Int32 | None

    OWNERS = schema_of(OwnerRow)

Functions that make or read rows are annotated with the type, so that mypy knows the names and types of columns. `| None` means that
a column may be null.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypedDict, Union, get_args, get_origin, get_type_hints, is_typeddict

import pyarrow as pa

from exhume.int64 import LARGEST_INT64, LEAST_INT64

#: Rows of one record batch, and the bytes of its texts: they limit the memory of all streams.
BATCH_ROWS = 8192
BATCH_BYTES = 8 << 20

#: The log of a row: (replica, offsets partition), the first two columns of most tables.
Origin = tuple[str | None, int | None]

# Numbers that are narrower than 64 bits in a column, and text that is JSON.
Int8 = Annotated[int, pa.int8()]
Int16 = Annotated[int, pa.int16()]
Int32 = Annotated[int, pa.int32()]
UInt32 = Annotated[int, pa.uint32()]
Json = Annotated[str, pa.json_()]

_ARROW_TYPES = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64(), bytes: pa.binary()}


class OfLog(TypedDict):
    """The columns that name the log of a row."""

    replica: str | None
    offsets_partition: Int32 | None


def of_log(replica: str | None, offsets_partition: int | None) -> OfLog:
    """The columns of this log."""
    return {"replica": replica, "offsets_partition": offsets_partition}


def schema_of(row: type) -> pa.Schema:
    """The schema of a table with such rows, which are a `TypedDict`: its keys are the columns."""
    return pa.schema(list(_fields(row)))


def _fields(row: type) -> Iterator[pa.Field]:
    for name, column_type in get_type_hints(row, include_extras=True).items():
        yield pa.field(name, _arrow_type(column_type))


def _arrow_type(column_type: Any) -> pa.DataType:
    match get_origin(column_type):
        case None if is_typeddict(column_type):
            return pa.struct(list(_fields(column_type)))
        case None:
            return _ARROW_TYPES[column_type]
        case origin if origin is Literal:
            return _ARROW_TYPES[type(get_args(column_type)[0])]
        case origin if origin is Annotated:
            return column_type.__metadata__[0]
        case origin if origin is list:
            return pa.list_(_arrow_type(*get_args(column_type)))
        case origin if origin in (Union, UnionType):
            types = [each for each in get_args(column_type) if each is not NoneType]
            if len(types) == 1:
                return _arrow_type(types[0])
    raise TypeError(f"no column holds {column_type}")


def batch_of(schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """These rows as one record batch; columns that a row lacks are null."""
    return _batch(schema, [_values(schema.names, row) for row in rows])


def _values(names: Sequence[str], row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(map(row.get, names))


def _batch(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.RecordBatch.from_arrays([column(field.type, values) for field, values in zip(schema, columns, strict=True)], schema=schema)


def table_of(schema: pa.Schema, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """These rows as a table."""
    return pa.Table.from_batches([batch_of(schema, list(rows))], schema=schema)


def column(data_type: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """These values as an array. Values of a JSON column are JSON texts.

    An integer beyond the 64 bits of its type becomes the nearest possible one: a difference of two integers may not fit.
    """
    if isinstance(data_type, pa.JsonType):
        return pa.array(values, pa.string()).cast(data_type)
    try:
        return pa.array(values, data_type)
    except OverflowError:
        return pa.array([value and max(LEAST_INT64, min(value, LARGEST_INT64)) for value in values], data_type)


def batches_of(schema: pa.Schema, rows: Iterable[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
    """These rows as record batches, none of them empty: of `BATCH_ROWS` rows, or fewer where texts and bytes reach `BATCH_BYTES`."""
    # A tuple takes a fifth of the memory of a row.
    names = schema.names
    pending: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        values = _values(names, row)
        pending.append(values)
        size += sum([len(value) for value in values if isinstance(value, (str, bytes))])
        if len(pending) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield _batch(schema, pending)
            pending, size = [], 0
    if pending:
        yield _batch(schema, pending)
