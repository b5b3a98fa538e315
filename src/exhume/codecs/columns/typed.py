"""The typed tables of commits and of classic groups, as Arrow from columns of `kernels.values`.

Python code decodes the records that kernels cannot read, one by one. They keep their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from exhume.codecs import schemas
from exhume.codecs.columns.arrow import Flags, flags, lists, no_elements, numbered_texts, numbers, texts
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.columns.record_columns import record_column, record_table
from exhume.codecs.columns.versions import read_group_fields
from exhume.codecs.decoded_tables import decode_table
from exhume.codecs.kernels import keys, records, values
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.codecs.layout import Field, Struct
from exhume.codecs.layouts.classic_group import GROUP_METADATA_VALUE, MEMBER
from exhume.codecs.layouts.offsets import OFFSET_COMMIT_VALUE
from exhume.codecs.wire import format_uuid

_UUID = pa.binary(16)


def commit_table(block: RecordBlock, schema: pa.Schema | None = None) -> pa.RecordBatch:
    """Return these records, which are commits, as rows of this schema (None: the typed table). Its names may be dictionaries."""
    schema = schemas.decoded()["offset_commit"] if schema is None else schema
    commits = np.empty((values.COMMIT_COLUMNS, len(block)), np.int64)
    values.read_commits(block.data, block.records, commits)

    def column(block: RecordBlock, fields: Int64s, field: pa.Field) -> pa.Array:
        return COMMITS[field.name](block, fields, field.type)

    return _with_unread("offset_commit", schema, block, commits, column)


def group_table(block: RecordBlock) -> pa.RecordBatch:
    """Return these records, all of type 2, as rows of `schemas.decoded()["group_metadata"]`."""
    groups, members = read_group_fields(block)
    structs = _members(block.data, members)

    def column(block: RecordBlock, fields: Int64s, field: pa.Field) -> pa.Array:
        if field.name == "members":
            return lists(fields[values.MEMBERS_COUNT], structs, fields[values.VERSION] >= 0)
        return _GROUPS[field.name](block, fields, field.type)

    return _with_unread("group_metadata", schemas.decoded()["group_metadata"], block, groups, column)


def _with_unread(
    name: str, schema: pa.Schema, block: RecordBlock, fields: Int64s, column: Callable[[RecordBlock, Int64s, pa.Field], pa.Array]
) -> pa.RecordBatch:
    """Return the typed table of these records: `column` makes the columns of those that kernels read, Python code decodes the others."""
    is_read = fields[keys.IS_READ] != 0
    read, unread = np.flatnonzero(is_read), np.flatnonzero(~is_read)
    plain = block.only(read) if len(unread) else block
    fields = np.take(fields, read, axis=1) if len(unread) else fields
    own = {*COMMITS, *_GROUPS, "members"}

    def made(field: pa.Field) -> pa.Array:
        if field.name in own:
            return column(plain, fields, field)
        if field.name in schemas.RECORDS.names:
            return record_column(plain, field)
        # Only versions that kernels do not read have this field.
        return pa.nulls(len(plain), field.type)

    table = pa.RecordBatch.from_arrays([made(field) for field in schema], schema=schema)
    return put_together(read, table, unread, lambda: decode_table(name, record_table(block.only(unread))).select(schema.names).cast(schema))


def put_together(read: Int64s, table: pa.RecordBatch, unread: Int64s, unread_table: Callable[[], pa.RecordBatch]) -> pa.RecordBatch:
    """Return both tables as one; `read` and `unread` are the places of their rows in it."""
    if not len(unread):
        return table
    both = pa.Table.from_batches([table, unread_table()])
    return both.take(pa.array(np.argsort(np.concatenate([read, unread])))).combine_chunks().to_batches()[0]


_Column = Callable[[RecordBlock, Int64s, pa.DataType], pa.Array]


def _text(start: int, size: int) -> _Column:
    def make(block: RecordBlock, fields: Int64s, data_type: pa.DataType) -> pa.Array:
        if pa.types.is_dictionary(data_type):
            return numbered_texts(block.data, fields[start], fields[size])
        return texts(block.data, fields[start], fields[size], data_type)

    return make


def _number(column: int, field: Field | None = None) -> _Column:
    """Make a column of numbers that is null for tombstones, and in versions without this field."""

    def make(block: RecordBlock, fields: Int64s, data_type: pa.DataType) -> pa.Array:
        is_valid = _has(field, fields[values.VERSION])
        return numbers(fields[column], data_type, is_valid) if is_valid.any() else block.batches.same(None, data_type, len(block))

    return make


def _has(field: Field | None, versions: Int64s) -> Flags:
    """Return True for each value with this field; None for a field of every version. The version of a tombstone is -1."""
    if field is None:
        return versions >= 0
    has_field: Flags = versions >= field.since
    return has_field if field.until is None else has_field & (versions <= field.until)


def _id(start: int) -> _Column:
    def make(block: RecordBlock, fields: Int64s, data_type: pa.DataType) -> pa.Array:
        places = fields[start]
        has_id = places >= 0
        if not has_id.any():
            return block.batches.same(None, data_type, len(block))
        found = texts(block.data, places, np.where(has_id, 16, -1), pa.binary()).cast(_UUID).dictionary_encode()
        names = [format_uuid(raw) if any(raw) else None for raw in found.dictionary.to_pylist()]
        return pa.array(names, data_type).take(found.indices)

    return make


def _nothing(block: RecordBlock, fields: Int64s, data_type: pa.DataType) -> pa.Array:  # noqa: ARG001
    return block.batches.same(None, data_type, len(block))


def _columns(struct: Struct, places: Mapping[str, int]) -> dict[str, _Column]:
    """Return a column for each text, id and number of this struct that kernels read; `places` are the rows of `fields`, by their names."""
    found: dict[str, _Column] = {}
    for field in struct.fields:
        start, size = f"{field.name}_start", f"{field.name}_size"
        if field.name in places:
            found[field.name] = _number(places[field.name], field)
        elif size in places:
            found[field.name] = _text(places[start], places[size])
        elif start in places:
            found[field.name] = _id(places[start])
    return found


#: The columns of both tables for a record without marks.
_COMMON: Mapping[str, _Column] = {
    "record_type": lambda block, fields, data_type: numbers(block.records[records.RECORD_TYPE], data_type),  # noqa: ARG005
    "value_version": _number(values.VERSION),
    "is_tombstone": lambda block, fields, data_type: flags(block.records[records.VALUE_SIZE] < 0),  # noqa: ARG005
    "marks": lambda block, fields, data_type: no_elements(data_type).slice(0, len(block)),  # noqa: ARG005
    "raw_key": _nothing,
    "raw_value": _nothing,
    "group": _text(keys.GROUP_START, keys.GROUP_SIZE),
}
COMMITS: Mapping[str, _Column] = {
    **_COMMON,
    "topic": _text(keys.TOPIC_START, keys.TOPIC_SIZE),
    "partition": lambda block, fields, data_type: numbers(fields[keys.PARTITION], data_type),  # noqa: ARG005
    **_columns(OFFSET_COMMIT_VALUE.struct, values.COMMITS),
}
_GROUPS: Mapping[str, _Column] = {**_COMMON, **_columns(GROUP_METADATA_VALUE.struct, values.GROUPS)}


def _members(data: Bytes, members: Int64s) -> pa.StructArray:
    arrays = []
    struct = MEMBER.arrow()
    for field, arrow_field in zip(MEMBER.fields, struct, strict=True):
        start = values.MEMBERS.get(f"{field.name}_start")
        if start is not None:
            arrays.append(texts(data, members[start], members[start + 1], arrow_field.type))
        elif field.name in values.MEMBERS:
            is_valid = _has(field, members[values.MEMBER_VERSION]) if field.since or field.until is not None else None
            arrays.append(numbers(members[values.MEMBERS[field.name]], arrow_field.type, is_valid))
        else:
            arrays.append(pa.nulls(members.shape[1], arrow_field.type))
    return pa.StructArray.from_arrays(arrays, fields=list(struct))
