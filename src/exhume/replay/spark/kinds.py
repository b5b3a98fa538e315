"""The kinds of rows that the data source has, each with its Arrow schema; `for_spark` is that schema in types of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

import pyarrow as pa

from exhume import findings
from exhume.codecs import schemas
from exhume.codecs.decoded_tables import DUMP
from exhume.errors import RequestError

#: One row per segment or part of one: the bytes fetched for it (0 for local files), and the number of rows of the kind `of`.
READS = pa.schema(
    [
        ("replica", pa.string()),
        ("offsets_partition", pa.int32()),
        ("path", pa.string()),
        ("base_offset", pa.int64()),
        ("from_byte_position", pa.int64()),
        ("size_bytes", pa.int64()),
        ("fetched_bytes", pa.int64()),
        ("row_count", pa.int64()),
    ]
)

_ALIASES = {"offset_commits": "offset_commit"}


def filtered_kinds() -> Mapping[str, pa.Schema]:
    """The kinds with a row for each record: all conditions on records apply to them."""
    return {"records": schemas.RECORDS, "dump": DUMP, **schemas.decoded(), "end_txn_markers": schemas.END_TXN_MARKERS}


def kinds() -> Mapping[str, pa.Schema]:
    """All kinds by name."""
    others = {"batches": schemas.BATCHES, "segments": schemas.SEGMENTS, "findings": findings.SCHEMA, "reads": READS}
    return {**filtered_kinds(), **others}


def kind_named(name: str) -> str:
    """The kind of this name.

    Raises:
        RequestError: no such kind; lists similar names.
    """
    kind = _ALIASES.get(name, name)
    known = kinds()
    if kind not in known:
        near = get_close_matches(name, known, n=3) or list(known)
        raise RequestError(f"no kind {name!r}", remedy=f"Choose one of {', '.join(near)}")
    return kind


def for_spark(schema: pa.Schema) -> pa.Schema:
    """This schema in the types of Spark: no unsigned numbers, JSON as text, list elements by the name `element`."""
    return pa.schema([pa.field(field.name, _type_for_spark(field.type), nullable=True) for field in schema])


def _type_for_spark(data_type: pa.DataType) -> pa.DataType:
    if isinstance(data_type, pa.JsonType):
        return pa.string()
    if pa.types.is_uint32(data_type):
        return pa.int64()
    if pa.types.is_list(data_type):
        return pa.list_(pa.field("element", _type_for_spark(data_type.value_type), nullable=True))
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(field.name, _type_for_spark(field.type), nullable=True) for field in data_type])
    return data_type


def as_spark_carries(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """This batch with the columns of `schema`, which is `for_spark` of its own or some columns of it."""
    arrays = []
    for field in schema:
        column = batch.column(batch.schema.get_field_index(field.name))
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        arrays.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
