"""The dump of commits and of classic groups as Arrow, from columns of `kernels.values`; a kernel writes the JSON texts.

Python code decodes records of other types, and those that kernels cannot read, one by one. They keep their rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from exhume.codecs.columns import dumped_groups, typed
from exhume.codecs.columns.arrow import choices, numbers, texts
from exhume.codecs.columns.json_texts import Texts, field_steps, object_steps, text_starts
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.columns.record_columns import record_column, record_table
from exhume.codecs.decoded_tables import DUMP, dump_table
from exhume.codecs.kernels import json_texts, keys, records, values
from exhume.codecs.kernels.json_texts import NUMBER, TEXT
from exhume.codecs.kernels.readers import NEWEST_COMMIT_VERSION
from exhume.codecs.kernels.texts import find_escapes
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.codecs.layouts.classic_group import GROUP_METADATA_KEY
from exhume.codecs.layouts.offsets import OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE
from exhume.codecs.record_types import GROUP_METADATA, OFFSET_COMMIT_TYPES, RECORD_TYPES

#: Indexed by record type.
_ROWS = [RECORD_TYPES[number] for number in (*OFFSET_COMMIT_TYPES, GROUP_METADATA)]
_LAYOUTS = [row.layouts[0].releases for row in _ROWS]
_TYPE_NAMES = [row.name for row in _ROWS]
_GROUP_STEPS = {"group": [(TEXT, keys.GROUP_START)]}
_COMMIT_STEPS = {
    **_GROUP_STEPS,
    "topic": [(TEXT, keys.TOPIC_START)],
    "partition": [(NUMBER, keys.PARTITION)],
    **field_steps(OFFSET_COMMIT_VALUE.struct, values.COMMITS),
}
#: The keys of commits, and of groups.
_KEYS = Texts([object_steps(OFFSET_COMMIT_KEY, 0, _COMMIT_STEPS), object_steps(GROUP_METADATA_KEY, 0, _GROUP_STEPS)])
#: The number of versions of commits that kernels read. The next choice copies the texts of groups, which `write_groups` writes before.
_COMMIT_VERSIONS = NEWEST_COMMIT_VERSION + 1
_READY = values.COMMIT_COLUMNS
_VALUES = Texts(
    [
        *(object_steps(OFFSET_COMMIT_VALUE.struct, version, _COMMIT_STEPS) for version in range(_COMMIT_VERSIONS)),
        [(json_texts.READY, _READY)],
    ]
)
_FIELDS = values.COMMIT_COLUMNS + 2
_COMMIT_TEXTS = text_starts(OFFSET_COMMIT_VALUE.struct, values.COMMITS)


def dumped(block: RecordBlock, *, raw: bool) -> pa.RecordBatch:
    """Return these records as rows of `DUMP`; with `raw`, every row keeps its raw bytes."""
    fields = np.empty((_FIELDS, len(block)), np.int64)
    values.read_commits(block.data, block.records, fields)
    groups = np.flatnonzero(block.records[records.RECORD_TYPE] == GROUP_METADATA)
    for start in _COMMIT_TEXTS:
        fields[start + 1, groups] = -1
    ready = dumped_groups.write_groups(block, groups, fields, _READY)
    # The fields of a record that was not read have no places.
    has_escapes = (fields[keys.IS_READ] == 0).astype(np.int64)
    for start in (keys.GROUP_START, keys.TOPIC_START, *_COMMIT_TEXTS):
        sizes = np.where(fields[keys.IS_READ], fields[start + 1], 0)
        find_escapes(block.data, fields[start], sizes, has_escapes)
    plain, others = np.flatnonzero(has_escapes == 0), np.flatnonzero(has_escapes)
    candidates = block
    if len(others):
        candidates, fields = block.only(plain), np.take(fields, plain, axis=1)
    table = pa.RecordBatch.from_arrays([_column(candidates, fields, ready, field, raw=raw) for field in DUMP], schema=DUMP)
    return typed.put_together(plain, table, others, lambda: dump_table(record_table(block.only(others)), raw=raw))


def _column(block: RecordBlock, fields: Int64s, ready: Bytes, field: pa.Field, *, raw: bool) -> pa.Array:
    record_types = block.records[records.RECORD_TYPE]
    match field.name:
        case "type":
            return choices(_TYPE_NAMES, record_types)
        case "member_id":
            return block.batches.same(None, field.type, len(block))
        case "layout":
            return pa.array(_LAYOUTS, field.type).take(pa.array(record_types, mask=fields[values.VERSION] < 0))
        case "partition":
            return numbers(fields[keys.PARTITION], field.type, record_types != GROUP_METADATA)
        case "key":
            texts_of = _KEYS.column((record_types == GROUP_METADATA).astype(np.int64), fields, block.data)
            return pa.ExtensionArray.from_storage(field.type, texts_of)
        case "value":
            versions = fields[values.VERSION]
            made = np.where((record_types == GROUP_METADATA) & (versions >= 0), _COMMIT_VERSIONS, versions)
            return pa.ExtensionArray.from_storage(field.type, _VALUES.column(made, fields, block.data, ready))
        case "raw_key" if raw:
            return texts(block.data, block.records[records.KEY_START], block.records[records.KEY_SIZE], field.type)
        case "raw_value" if raw:
            return texts(block.data, block.records[records.VALUE_START], block.records[records.VALUE_SIZE], field.type)
    return typed.COMMITS[field.name](block, fields, field.type) if field.name in typed.COMMITS else record_column(block, field)
