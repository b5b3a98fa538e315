"""Find key and value of each record of a batch: a kernel."""

from __future__ import annotations

from exhume.codecs.kernels import inlined, scan
from exhume.codecs.kernels.primitives import NO_POSITION
from exhume.codecs.kernels.records import LEAST_BYTES, UNLIKE_ANY, read_like
from exhume.codecs.kernels.types import Bytes, Number, Rows
from exhume.replay.survivors import tables as columns
from exhume.replay.survivors.rules import BAD_RECORD, DONE, OFFSETS_GO_BACK


@inlined
def split(rows: Rows, number: Number, data: Bytes, position: Number, end: Number, records: Rows) -> Number:
    """Fill `records` with the places of key and value of each record."""
    base_offset, last_offset = rows[number, scan.BASE_OFFSET], rows[number, scan.LAST_OFFSET]
    next_offset, start = base_offset, position
    like = UNLIKE_ANY
    if rows[number, scan.RECORD_COUNT] > (end - position) // LEAST_BYTES:
        return BAD_RECORD
    for index in range(rows[number, scan.RECORD_COUNT]):
        record_end, timestamp_delta, offset_delta, key_start, key_size, value_start, value_size, like = read_like(data, position, end, like)
        if record_end == NO_POSITION:
            return BAD_RECORD
        record_offset = base_offset + offset_delta
        if record_offset < next_offset or record_offset > last_offset:
            return OFFSETS_GO_BACK
        record = records[index]
        record[columns.PLACE] = position - start
        record[columns.KEY_START] = key_start
        record[columns.KEY_SIZE] = key_size
        record[columns.VALUE_START] = value_start
        record[columns.VALUE_SIZE] = value_size
        record[columns.OFFSET] = record_offset
        record[columns.TIMESTAMP_DELTA] = timestamp_delta
        position, next_offset = record_end, record_offset + 1
    return DONE if position == end else BAD_RECORD
