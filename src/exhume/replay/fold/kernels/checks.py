"""Check that a batch is sound and needs no finding, and find key and value of each of its records: kernels."""

from __future__ import annotations

from exhume.codecs.batch_format import NO_PRODUCER_ID
from exhume.codecs.kernels import inlined, kernel, scan
from exhume.codecs.kernels.primitives import NO_POSITION
from exhume.codecs.kernels.records import LEAST_BYTES, UNLIKE_ANY, read_like
from exhume.codecs.kernels.types import Bytes, Int64s, Number, Rows
from exhume.replay.fold import tables as columns
from exhume.replay.fold.rules import (
    BAD_RECORD,
    BEYOND_OFFSET,
    DONE,
    IS_PART,
    LOWEST_OFFSET,
    MARKER_DECIDES,
    MOST_BATCH_BYTES,
    NOT_PLAIN_BATCH,
    NOT_SOUND,
    OFFSETS_GO_BACK,
    REFUSED_CODECS,
    TRANSACTIONAL,
)


@kernel
def checked(rows: Rows, number: Number, rules: Int64s, counts: Int64s) -> Number:
    """Return `DONE` for a batch that is sound and needs no finding; else the reason."""
    if not rows[number, scan.IS_SOUND]:
        return NOT_SOUND
    base_offset, last_offset = rows[number, scan.BASE_OFFSET], rows[number, scan.LAST_OFFSET]
    if base_offset < counts[columns.NEXT_OFFSET] or last_offset < base_offset:
        return OFFSETS_GO_BACK
    if base_offset < rules[LOWEST_OFFSET] or last_offset >= rules[BEYOND_OFFSET]:
        return OFFSETS_GO_BACK
    if rows[number, scan.LEADER_EPOCH] < counts[columns.LEADER_EPOCH_SEEN]:
        return OFFSETS_GO_BACK
    counts[columns.LEADER_EPOCH_SEEN] = scan.least_epoch_after(rows[number, scan.LEADER_EPOCH])
    if rows[number, scan.RECORD_COUNT] < 0:
        return BAD_RECORD
    attributes = rows[number, scan.ATTRIBUTES]
    if rules[REFUSED_CODECS] >> (attributes & scan.CODEC) & 1 or rows[number, scan.SIZE] > rules[MOST_BATCH_BYTES]:
        return NOT_PLAIN_BATCH
    # The Scala coordinator reads the transactional bit, the Java coordinator the producer id.
    is_transactional = attributes & scan.TRANSACTIONAL != 0
    if rules[IS_PART] and rules[MARKER_DECIDES] and (is_transactional or attributes & scan.CONTROL):
        # A marker also overrides commits after the commits that it ends: that needs all records in their order.
        return TRANSACTIONAL
    return DONE if is_transactional == (rows[number, scan.PRODUCER_ID] != NO_PRODUCER_ID) else NOT_PLAIN_BATCH


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
