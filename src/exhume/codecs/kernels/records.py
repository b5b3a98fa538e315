"""Records of format 2 into columns: what `records.read_records` does, for batches whose every record is whole and has no headers.

A column of the result is a record, a row one of its fields, all of them int64. Keys and values stay where they are: their places are
kept. The bytes of a batch are its own, as they lie in the file, or unfolded.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel, scan
from exhume.codecs.kernels.primitives import NO_POSITION, int16, varint, varlong, word
from exhume.codecs.kernels.types import Bytes, Number, Rows

#: `BATCH` is a number of `rows`. A size of -1 is a null, a timestamp of -1 is none. Numbers that are not there are `NOT_THERE`: the type
#: of a record of a control batch, or of one whose key is shorter than a type; the sequence in a batch that has none.
BATCH, OFFSET, TIMESTAMP, SEQUENCE, RECORD_TYPE, KEY_START, KEY_SIZE, VALUE_START, VALUE_SIZE = range(9)
COLUMNS = 9

NOT_THERE = -(1 << 40)
NO_TIMESTAMP = -1
#: Bytes of the smallest record.
LEAST_BYTES = 7

#: Records of a batch mostly differ in deltas of a byte, names and values. This is what else one has: a mask of its first eight bytes, and
#: what is left under it; which bits of the second one are of its length; where deltas and key begin, the size of the key, and where the
#: value begins.
Like = tuple[Number, Number, Number, Number, Number, Number, Number]
_WORD_BYTES = 8
UNLIKE_ANY: Like = (0, 1, 0, 0, 0, 0, _WORD_BYTES)

_MOST_SEQUENCE = 0x7FFFFFFF


@inlined
def read_fields(data: Bytes, position: Number, end: Number) -> tuple[Number, Number, Number, Number, Number, Number, Number]:
    """The record at `position`: the byte behind it, its timestamp delta and offset delta, start and size of its key, and of its value.

    `NO_POSITION` and zeros where there is no whole record with a key, a value and no header. Sizes below 0 are nulls.
    """
    none = np.int64(0)
    nothing = np.int64(NO_POSITION), none, none, none, none, none, none
    # The record: length, attributes, two deltas, key, value, headers.
    size, position = varint(data, position, end)
    if position == NO_POSITION or size < 1 or size > end - position:
        return nothing
    record_end = position + size
    timestamp_delta, position = varlong(data, position + 1, record_end)
    if position == NO_POSITION:
        return nothing
    offset_delta, position = varint(data, position, record_end)
    if position == NO_POSITION:
        return nothing
    key_size, key_start = varint(data, position, record_end)
    if key_start == NO_POSITION or key_size > record_end - key_start:
        return nothing
    value_size, value_start = varint(data, key_start + max(key_size, 0), record_end)
    if value_start == NO_POSITION or value_size > record_end - value_start:
        return nothing
    value_end = value_start + max(value_size, 0)
    if record_end - value_end != 1 or data[np.uint64(value_end)] != 0:
        return nothing
    return record_end, timestamp_delta, offset_delta, key_start, key_size, value_start, value_size


@inlined
def read_like(
    data: Bytes, position: Number, end: Number, like: Like
) -> tuple[Number, Number, Number, Number, Number, Number, Number, Like]:
    """What `read_fields` gives, and what to compare the record behind this one with. `UNLIKE_ANY` is for the first one."""
    mask, head, length_bits, deltas_at, key_at, key_size, value_at = like
    if value_at < end - position:
        first, value_head = np.int64(word(data, position)), np.int64(data[np.uint64(position + value_at - 1)])
        value_size = value_head >> 1 ^ -(value_head & 1)
        record_end = position + value_at + max(value_size, 0) + 1
        if (
            first & mask == head
            and value_head < 0x80
            and record_end == end_of(position, first, length_bits, deltas_at)
            and record_end <= end
            and data[np.uint64(record_end - 1)] == 0
        ):
            timestamp_delta = np.int64(data[np.uint64(position + deltas_at)])
            return (
                record_end,
                timestamp_delta >> 1 ^ -(timestamp_delta & 1),
                np.int64(data[np.uint64(position + deltas_at + 1)]) >> 1,
                position + key_at,
                key_size,
                position + value_at,
                value_size,
                like,
            )
    record_end, timestamp_delta, offset_delta, key_start, key_size, value_start, value_size = read_fields(data, position, end)
    like = _like(data, position, record_end, key_start, key_size, value_start)
    return record_end, timestamp_delta, offset_delta, key_start, key_size, value_start, value_size, like


@inlined
def end_of(position: Number, first: Number, length_bits: Number, deltas_at: Number) -> Number:
    """Where a record ends, by its length in the word it begins with."""
    return position + deltas_at - 1 + ((first & 0x7F | first >> 1 & length_bits) >> 1)


@inlined
def _like(data: Bytes, position: Number, record_end: Number, key_start: Number, key_size: Number, value_start: Number) -> Like:
    """What a record is compared with that comes behind this one; `UNLIKE_ANY` where a delta or the size of the value needs more than a
    byte, another size more than two, the offset delta is negative, or the key next to nothing.
    """
    value_at = value_start - position
    if record_end == NO_POSITION or value_at < _WORD_BYTES:
        return UNLIKE_ANY
    first = np.int64(word(data, position))
    length_bytes = 1 + (first >> 7 & 1)
    deltas_at = length_bytes + 1
    size_bytes = key_start - position - deltas_at - 2
    # The last byte of the length and the deltas: where all are below 0x80, each ends there. And the sign of the offset delta.
    last_bytes = np.int64(0x80) << 8 * (length_bytes - 1) | np.int64(0x8180) << 8 * deltas_at
    is_short = (size_bytes == 1 or size_bytes == 2) and value_start - key_start - max(key_size, 0) == 1
    if not is_short or first & last_bytes:
        return UNLIKE_ANY
    # The length is not negative, and has as many bytes.
    mask = np.int64(0x81) | last_bytes | ((np.int64(1) << 8 * size_bytes) - 1) << 8 * (deltas_at + 2)
    length_bits = np.int64(0x3F80) * (length_bytes - 1)
    return mask, first & mask, length_bits, deltas_at, key_start - position, key_size, value_at


@kernel
def split(rows: Rows, first: Number, last: Number, data: Bytes, bodies: Rows, records: Rows) -> tuple[Number, Number]:
    """Fill `records` with those of batches `first` to `last` of `rows`, which lie in `data` from `bodies[:, 0]` to `bodies[:, 1]`.

    Gives the number of the batch that it ended at, and how many records there are in front of it. It ends early at a batch that does not
    hold exactly the records it says, each with a key, a value and no header; `records` must have room for all that the headers count.
    """
    count = np.int64(0)
    for number in range(first, last):
        before = count
        position, end = bodies[number, 0], bodies[number, 1]
        promised = rows[number, scan.RECORD_COUNT]
        attributes = rows[number, scan.ATTRIBUTES]
        is_control = attributes & scan.CONTROL != 0
        is_stamped = attributes & scan.LOG_APPEND_TIME != 0
        base_offset, base_timestamp = rows[number, scan.BASE_OFFSET], rows[number, scan.BASE_TIMESTAMP]
        base_sequence = rows[number, scan.BASE_SEQUENCE]
        if promised < 0 or promised > records.shape[1] - count:
            return number, before
        for _ in range(promised):
            record_end, timestamp_delta, offset_delta, key_start, key_size, value_start, value_size = read_fields(data, position, end)
            if record_end == NO_POSITION:
                return number, before
            position = record_end
            records[BATCH, count] = number
            records[OFFSET, count] = base_offset + offset_delta
            records[TIMESTAMP, count] = rows[number, scan.MAX_TIMESTAMP] if is_stamped else base_timestamp + timestamp_delta
            sequence = base_sequence + offset_delta
            if sequence > _MOST_SEQUENCE:
                sequence -= _MOST_SEQUENCE + 1
            records[SEQUENCE, count] = NOT_THERE if base_sequence < 0 else sequence
            records[RECORD_TYPE, count] = NOT_THERE if is_control or key_size < 2 else int16(data, key_start)
            records[KEY_START, count] = key_start
            records[KEY_SIZE, count] = max(key_size, -1)
            records[VALUE_START, count] = value_start
            records[VALUE_SIZE, count] = max(value_size, -1)
            count += 1
        if position != end:
            return number, before
    return last, count
