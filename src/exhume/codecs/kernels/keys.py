"""Read the keys of records into columns: a row of the result is a field, a column is a record, and all numbers are int64."""

from __future__ import annotations

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.primitives import NOT_EXACT, int16, int32, kind_of_text
from exhume.codecs.kernels.records import KEY_SIZE, KEY_START, MISSING, RECORD_TYPE
from exhume.codecs.kernels.types import Bytes, Number, Rows
from exhume.codecs.record_types import LEGACY_OFFSET_COMMIT, OFFSET_COMMIT

#: `IS_READ` is 0 for a key that only `record_types` can decode; then the other fields mean nothing. Commits have a topic and a partition;
#: in other keys the size of the topic is -1.
IS_READ, GROUP_START, GROUP_SIZE, TOPIC_START, TOPIC_SIZE, PARTITION = range(6)
COLUMNS = 6

#: The bytes of the key of a commit with empty names, and those of its partition, which comes last.
LEAST_COMMIT_KEY_BYTES, PARTITION_BYTES = 10, 4


@kernel
def read_key(data: Bytes, record_type: Number, start: Number, size: Number, fields: Rows, at: Number) -> None:
    """Read the key `data[start:start + size]` into column `at` of `fields`. It must begin with this record type and a group.

    Reads the whole key of a commit, and only the group of other keys.
    """
    fields[IS_READ, at] = 0
    if size < 4:
        return
    group_size = int16(data, start + 2)
    group_start = start + 4
    if group_size < 0 or group_size > size - 4 or kind_of_text(data, group_start, group_size) == NOT_EXACT:
        return
    fields[GROUP_START, at] = group_start
    fields[GROUP_SIZE, at] = group_size
    fields[TOPIC_START, at] = start
    fields[TOPIC_SIZE, at] = -1
    fields[PARTITION, at] = MISSING
    if record_type == OFFSET_COMMIT or record_type == LEGACY_OFFSET_COMMIT:
        if size - group_size < LEAST_COMMIT_KEY_BYTES:
            return
        topic_size = int16(data, group_start + group_size)
        topic_start = group_start + group_size + 2
        if (
            topic_size < 0
            or group_size + topic_size + LEAST_COMMIT_KEY_BYTES != size
            or kind_of_text(data, topic_start, topic_size) == NOT_EXACT
        ):
            return
        fields[TOPIC_START, at] = topic_start
        fields[TOPIC_SIZE, at] = topic_size
        fields[PARTITION, at] = int32(data, topic_start + topic_size)
    fields[IS_READ, at] = 1


@kernel
def read_keys(data: Bytes, records: Rows, fields: Rows) -> None:
    """Read the keys of all `records`. Each must begin with a record type and a group."""
    for at in range(records.shape[1]):
        read_key(data, records[RECORD_TYPE, at], records[KEY_START, at], records[KEY_SIZE, at], fields, at)
