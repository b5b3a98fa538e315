"""Where key and value of each record of a batch lie: a kernel."""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, scan
from exhume.codecs.kernels.primitives import NO_POSITION, Bytes, Int64s, Number, varint, varlong
from exhume.codecs.kernels.records import LEAST_BYTES
from exhume.replay.survivors import tables as columns
from exhume.replay.survivors.rules import BAD_RECORD, DONE, OFFSETS_GO_BACK


@inlined
def split(rows: Int64s, number: Number, data: Bytes, position: Number, end: Number, records: Int64s) -> Number:
    """Fill `records`: where key and value of each record lie."""
    base_offset, last_offset = rows[number, scan.BASE_OFFSET], rows[number, scan.LAST_OFFSET]
    next_offset, start = base_offset, position
    if rows[number, scan.RECORD_COUNT] > (end - position) // LEAST_BYTES:
        return BAD_RECORD
    for index in range(rows[number, scan.RECORD_COUNT]):
        # The record: length, attributes, two deltas, key, value, headers.
        record = records[index]
        record[columns.PLACE] = position - start
        size, position = varint(data, position, end)
        if position == NO_POSITION or size < 1 or size > end - position:
            return BAD_RECORD
        record_end = position + size
        record[columns.TIMESTAMP_DELTA], position = varlong(data, position + 1, record_end)
        if position == NO_POSITION:
            return BAD_RECORD
        offset_delta, position = varint(data, position, record_end)
        if position == NO_POSITION:
            return BAD_RECORD
        key_size, position = varint(data, position, record_end)
        if position == NO_POSITION or key_size > record_end - position:
            return BAD_RECORD
        record[columns.KEY_START] = position
        record[columns.KEY_SIZE] = key_size
        value_size, position = varint(data, position + max(key_size, 0), record_end)
        if position == NO_POSITION or value_size > record_end - position:
            return BAD_RECORD
        record[columns.VALUE_START] = position
        record[columns.VALUE_SIZE] = value_size
        position += max(value_size, 0)
        if record_end - position != 1 or data[np.uint64(position)] != 0:
            return BAD_RECORD
        position = record_end
        record_offset = base_offset + offset_delta
        if record_offset < next_offset or record_offset > last_offset:
            return OFFSETS_GO_BACK
        record[columns.OFFSET] = record_offset
        next_offset = record_offset + 1
    return DONE if position == end else BAD_RECORD
