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
from exhume.codecs.layouts.classic_group import MEMBER
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
            return lists(fields[values.MEMBERS], structs, fields[values.VERSION] >= 0)
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
    return put_together(read, table, unread, lambda: decode_table(name, record_table(block.only(unread))).cast(schema))


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


def _number(column: int, versions: range = range(5)) -> _Column:
    """Make a column of numbers that is null in other versions and for tombstones."""

    def make(block: RecordBlock, fields: Int64s, data_type: pa.DataType) -> pa.Array:
        version = fields[values.VERSION]
        is_valid = (version >= versions.start) & (version < versions.stop)
        return numbers(fields[column], data_type, is_valid) if is_valid.any() else block.batches.same(None, data_type, len(block))

    return make


def _topic_ids(block: RecordBlock, fields: Int64s, data_type: pa.DataType) -> pa.Array:
    places = fields[values.TOPIC_ID]
    has_id = places >= 0
    if not has_id.any():
        return block.batches.same(None, data_type, len(block))
    found = texts(block.data, places, np.where(has_id, 16, -1), pa.binary()).cast(_UUID).dictionary_encode()
    names = [format_uuid(raw) if any(raw) else None for raw in found.dictionary.to_pylist()]
    return pa.array(names, data_type).take(found.indices)


def _nothing(block: RecordBlock, fields: Int64s, data_type: pa.DataType) -> pa.Array:  # noqa: ARG001
    return block.batches.same(None, data_type, len(block))


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
    "committed_offset": _number(values.COMMITTED_OFFSET),
    "leader_epoch": _number(values.LEADER_EPOCH, range(3, 5)),
    "metadata": _text(values.METADATA_START, values.METADATA_SIZE),
    "commit_timestamp_ms": _number(values.COMMIT_TIMESTAMP),
    "expire_timestamp_ms": _number(values.EXPIRE_TIMESTAMP, range(1, 2)),
    "topic_id": _topic_ids,
}
_GROUPS: Mapping[str, _Column] = {
    **_COMMON,
    "protocol_type": _text(values.PROTOCOL_TYPE_START, values.PROTOCOL_TYPE_SIZE),
    "generation": _number(values.GENERATION),
    "protocol": _text(values.PROTOCOL_START, values.PROTOCOL_SIZE),
    "leader": _text(values.LEADER_START, values.LEADER_SIZE),
    "current_state_timestamp_ms": _number(values.STATE_TIMESTAMP, range(2, 5)),
}
_MEMBER_TEXTS = {
    "member_id": values.MEMBER_ID,
    "group_instance_id": values.INSTANCE_ID,
    "client_id": values.CLIENT_ID,
    "client_host": values.CLIENT_HOST,
    "subscription": values.SUBSCRIPTION,
    "assignment": values.ASSIGNMENT,
}


def _members(data: Bytes, members: Int64s) -> pa.StructArray:
    arrays = []
    struct = MEMBER.arrow()
    has_rebalance_timeout: Flags = members[values.MEMBER_VERSION] >= 1
    for field in struct:
        if field.name in _MEMBER_TEXTS:
            place = _MEMBER_TEXTS[field.name]
            arrays.append(texts(data, members[place], members[place + 1], field.type))
        elif field.name == "rebalance_timeout_ms":
            arrays.append(numbers(members[values.REBALANCE_TIMEOUT], field.type, has_rebalance_timeout))
        else:
            arrays.append(numbers(members[values.SESSION_TIMEOUT], field.type))
    return pa.StructArray.from_arrays(arrays, fields=list(struct))
