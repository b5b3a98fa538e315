"""Read the keys of records into columns: a row of the result is a field, a column is a record, and all numbers are int64."""

from __future__ import annotations

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.primitives import NO_POSITION, NOT_EXACT, kind_of_text
from exhume.codecs.kernels.readers import TYPE_BYTES, read_commit_key, read_group_key
from exhume.codecs.kernels.records import KEY_SIZE, KEY_START, MISSING, RECORD_TYPE
from exhume.codecs.kernels.types import Bytes, Number, Rows
from exhume.codecs.record_types import LEGACY_OFFSET_COMMIT, OFFSET_COMMIT

#: `IS_READ` is 0 for a key that only `record_types` can decode; then the other fields mean nothing. Commits have a topic and a partition;
#: in other keys the size of the topic is -1.
IS_READ, GROUP_START, GROUP_SIZE, TOPIC_START, TOPIC_SIZE, PARTITION = range(6)
COLUMNS = 6


@kernel
def read_key(data: Bytes, record_type: Number, start: Number, size: Number, fields: Rows, at: Number) -> None:
    """Read the key `data[start:start + size]` into column `at` of `fields`. It must begin with this record type and a group.

    Reads the whole key of a commit, and only the group of other keys.
    """
    fields[IS_READ, at] = 0
    if size < TYPE_BYTES:
        return
    end = start + size
    if record_type == OFFSET_COMMIT or record_type == LEGACY_OFFSET_COMMIT:
        key = read_commit_key(data, start + TYPE_BYTES, end)
        is_exact = key.after == end and kind_of_text(data, key.group_start, key.group_size) != NOT_EXACT
        if is_exact and kind_of_text(data, key.topic_start, key.topic_size) != NOT_EXACT:
            fields[IS_READ, at] = 1
            fields[GROUP_START, at] = key.group_start
            fields[GROUP_SIZE, at] = key.group_size
            fields[TOPIC_START, at] = key.topic_start
            fields[TOPIC_SIZE, at] = key.topic_size
            fields[PARTITION, at] = key.partition
        return
    group = read_group_key(data, start + TYPE_BYTES, end)
    if group.after != NO_POSITION and kind_of_text(data, group.group_start, group.group_size) != NOT_EXACT:
        fields[IS_READ, at] = 1
        fields[GROUP_START, at] = group.group_start
        fields[GROUP_SIZE, at] = group.group_size
        fields[TOPIC_START, at] = start
        fields[TOPIC_SIZE, at] = -1
        fields[PARTITION, at] = MISSING


@kernel
def read_keys(data: Bytes, records: Rows, fields: Rows) -> None:
    """Read the keys of all `records`. Each must begin with a record type and a group."""
    for at in range(records.shape[1]):
        read_key(data, records[RECORD_TYPE, at], records[KEY_START, at], records[KEY_SIZE, at], fields, at)
