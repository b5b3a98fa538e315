"""The commit timestamps inside commit values: a kernel."""

from __future__ import annotations

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.primitives import NO_POSITION, int16, int64, unsigned_varint
from exhume.codecs.kernels.records import NO_TIMESTAMP, RECORD_TYPE, TIMESTAMP, VALUE_SIZE, VALUE_START
from exhume.codecs.kernels.types import Bytes, Number, Rows
from exhume.codecs.kernels.values import NEWEST_VERSION
from exhume.codecs.layouts.offsets import COMMIT_FLEXIBLE_SINCE
from exhume.codecs.record_types import OFFSET_COMMIT_TYPES


@kernel
def take_commit_times(data: Bytes, records: Rows, count: Number) -> Number:
    """Replace the record timestamp of each commit among the first `count` records by its commit timestamp; -1 if it has none.

    Returns the number of records done: fewer than `count` if a commit cannot be read.
    """
    for index in range(count):
        if records[RECORD_TYPE, index] not in OFFSET_COMMIT_TYPES or records[VALUE_SIZE, index] < 0:
            continue
        position = records[VALUE_START, index]
        end = position + records[VALUE_SIZE, index]
        if end - position < 20:
            return index
        version = int16(data, position)
        if version < 0 or version > NEWEST_VERSION:
            return index
        position += 14 if version >= 3 else 10
        if version >= COMMIT_FLEXIBLE_SINCE:
            size, position = unsigned_varint(data, position, end)
            if position == NO_POSITION:
                return index
            size -= 1
        else:
            size = int16(data, position)
            position += 2
        if size < 0 or size > end - position - 8:
            return index
        committed = int64(data, position + size)
        records[TIMESTAMP, index] = committed if committed >= 0 else NO_TIMESTAMP
    return count
