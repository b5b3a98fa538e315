"""The dump of commits, as Arrow from columns of `kernels.values`; JSON texts are joined of their parts.

All other records, and commits with anything odd about them, are decoded one by one, and put in their places.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.codecs.columns import typed
from exhume.codecs.columns.arrow import texts
from exhume.codecs.columns.pieces import Piece
from exhume.codecs.columns.record_columns import record_column, record_table
from exhume.codecs.decoded_tables import DUMP, dump_table
from exhume.codecs.kernels import keys, records, values
from exhume.codecs.kernels.primitives import Int64s
from exhume.codecs.kernels.texts import find_escapes
from exhume.codecs.layout import Struct, arrow_fields
from exhume.codecs.layouts.offsets import OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE
from exhume.codecs.record_types import RECORD_TYPES

_LEGACY, _COMMIT = 0, 1


def dumped(piece: Piece, *, raw: bool) -> pa.RecordBatch:
    """These records as rows of `DUMP`; with `raw`, every row keeps its raw bytes."""
    numbers = piece.records[records.RECORD_TYPE]
    commits = np.flatnonzero((numbers == _LEGACY) | (numbers == _COMMIT))
    candidates = piece.only(commits)
    fields = np.empty((values.COMMIT_COLUMNS, len(candidates)), np.int64)
    values.read_commits(candidates.data, candidates.records, fields)
    # The places of what was not read are no places.
    is_read = np.flatnonzero(fields[keys.IS_READ])
    commits, candidates, fields = commits[is_read], candidates.only(is_read), np.take(fields, is_read, axis=1)
    has_escapes = np.zeros(len(candidates), np.int64)
    for start in (keys.GROUP_START, keys.TOPIC_START, values.METADATA_START):
        find_escapes(candidates.data, fields[start], fields[start + 1], has_escapes)
    is_plain = np.flatnonzero(has_escapes == 0)
    if len(is_plain) < len(candidates):
        commits, candidates, fields = commits[is_plain], candidates.only(is_plain), np.take(fields, is_plain, axis=1)
    others = np.setdiff1d(np.arange(len(piece)), commits, assume_unique=True)
    table = pa.RecordBatch.from_arrays([_column(candidates, fields, field, raw=raw) for field in DUMP], schema=DUMP)
    return typed.put_together(commits, table, others, lambda: dump_table(record_table(piece.only(others)), raw=raw))


def _column(piece: Piece, fields: Int64s, field: pa.Field, *, raw: bool) -> pa.Array:
    match field.name:
        case "type":
            return piece.run.same(RECORD_TYPES[_COMMIT].name, field.type, len(piece))
        case "member_id":
            return piece.run.same(None, field.type, len(piece))
        case "layout":
            names = pa.array([RECORD_TYPES[number].layouts[0].releases for number in (_LEGACY, _COMMIT)], field.type)
            return names.take(pa.array(piece.records[records.RECORD_TYPE], mask=fields[values.VERSION] < 0))
        case "key":
            return pa.ExtensionArray.from_storage(field.type, _objects(piece, fields, OFFSET_COMMIT_KEY, 0))
        case "value":
            return pa.ExtensionArray.from_storage(field.type, _values(piece, fields))
        case "raw_key" if raw:
            return texts(piece.data, piece.records[records.KEY_START], piece.records[records.KEY_SIZE], field.type)
        case "raw_value" if raw:
            return texts(piece.data, piece.records[records.VALUE_START], piece.records[records.VALUE_SIZE], field.type)
    return typed.COMMITS[field.name](piece, fields, field.type) if field.name in typed.COMMITS else record_column(piece, field)


def _values(piece: Piece, fields: Int64s) -> pa.Array:
    """The values as JSON objects, null for tombstones."""
    versions = fields[values.VERSION]
    places, arrays = [], []
    for version in range(-1, OFFSET_COMMIT_VALUE.versions.stop):
        at = np.flatnonzero(versions == version)
        if len(at):
            places.append(at)
            some, their_fields = piece.only(at), np.take(fields, at, axis=1)
            arrays.append(
                pa.nulls(len(at), pa.string()) if version < 0 else _objects(some, their_fields, OFFSET_COMMIT_VALUE.struct, version)
            )
    if len(arrays) < 2:
        return arrays[0] if arrays else pa.array([], pa.string())
    return pa.concat_arrays(arrays).take(pa.array(np.argsort(np.concatenate(places))))


def _objects(piece: Piece, fields: Int64s, struct: Struct, version: int) -> pa.Array:
    """The fields of this version as JSON objects. No text has a character that JSON escapes."""
    parts: list[pa.Array | str] = []
    for field in arrow_fields(Struct(tuple(each for each in struct.fields if each.is_in(version)))):
        column = typed.COMMITS[field.name](piece, fields, field.type)
        name = f'{"," if parts else "{"}"{field.name}":'
        if field.type != pa.string():
            parts += [name, column.cast(pa.string())]
        elif column.null_count:
            parts += [name, pc.fill_null(pc.binary_join_element_wise('"', column, '"', ""), "null")]
        else:
            parts += [f'{name}"', column, '"']
    return pc.binary_join_element_wise(*parts, "}", "")
