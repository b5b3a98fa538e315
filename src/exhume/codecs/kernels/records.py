"""Read records of format 2 into columns, as `records.read_records` does, from batches in which each record is whole and has no headers.

A column of the result is a record, a row is one of its fields, and all numbers are int64. The kernels do not copy keys and values: they
keep their places. The bytes of a batch are those of the file, or unfolded.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel, scan
from exhume.codecs.kernels.primitives import NO_POSITION, int16, varint, varlong, word
from exhume.codecs.kernels.types import Bytes, Number, Rows

#: `BATCH` is the number of a row of `rows`. A size of -1 is a null, a timestamp of -1 is none. `MISSING` is the record type in a control
#: batch and for a key that is too short for a type, and the sequence in a batch without sequences.
BATCH, OFFSET, TIMESTAMP, SEQUENCE, RECORD_TYPE, KEY_START, KEY_SIZE, VALUE_START, VALUE_SIZE = range(9)
COLUMNS = 9

MISSING = -(1 << 40)
NO_TIMESTAMP = -1
#: The bytes of the smallest record.
LEAST_BYTES = 7

#: The parts in which a record mostly equals the next one of its batch: they differ only in deltas of one byte, in names and in values. A
#: mask of the first eight bytes, and these bytes under the mask; the bits of the second byte that belong to the length; the start of the
#: deltas and of the key, the size of the key, and the start of the value.
Like = tuple[Number, Number, Number, Number, Number, Number, Number]
_WORD_BYTES = 8
UNLIKE_ANY: Like = (0, 1, 0, 0, 0, 0, _WORD_BYTES)

_MOST_SEQUENCE = 0x7FFFFFFF


@inlined
def read_fields(data: Bytes, position: Number, end: Number) -> tuple[Number, Number, Number, Number, Number, Number, Number]:
    """Read a record: return the position after it, its timestamp delta and offset delta, start and size of its key, and of its value.

    Returns `NO_POSITION` and zeros if it is not a whole record with a key, a value and no header. Sizes below 0 are nulls.
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
    """Return the same as `read_fields`, and the `Like` to compare the next record with. Use `UNLIKE_ANY` for the first record."""
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
    """Return the end of a record, from the length in its first word."""
    return position + deltas_at - 1 + ((first & 0x7F | first >> 1 & length_bits) >> 1)


@inlined
def _like(data: Bytes, position: Number, record_end: Number, key_start: Number, key_size: Number, value_start: Number) -> Like:
    """Return the `Like` of a record, to compare the next one with.

    Returns `UNLIKE_ANY` if a delta or the size of the value has more than one byte, the size of the record or of the key more than two, the
    offset delta is negative, or the value begins in the first eight bytes.
    """
    value_at = value_start - position
    if record_end == NO_POSITION or value_at < _WORD_BYTES:
        return UNLIKE_ANY
    first = np.int64(word(data, position))
    length_bytes = 1 + (first >> 7 & 1)
    deltas_at = length_bytes + 1
    size_bytes = key_start - position - deltas_at - 2
    # The highest bits of the last byte of the length and of both deltas: 0 if each ends there. And the sign of the offset delta.
    last_bytes = np.int64(0x80) << 8 * (length_bytes - 1) | np.int64(0x8180) << 8 * deltas_at
    is_short = (size_bytes == 1 or size_bytes == 2) and value_start - key_start - max(key_size, 0) == 1
    if not is_short or first & last_bytes:
        return UNLIKE_ANY
    # A length that is not negative and has the same number of bytes.
    mask = np.int64(0x81) | last_bytes | ((np.int64(1) << 8 * size_bytes) - 1) << 8 * (deltas_at + 2)
    length_bits = np.int64(0x3F80) * (length_bytes - 1)
    return mask, first & mask, length_bits, deltas_at, key_start - position, key_size, value_at


@kernel
def split(rows: Rows, first: Number, last: Number, data: Bytes, bodies: Rows, records: Rows) -> tuple[Number, Number]:
    """Fill `records` with the records of the batches `first` to `last` of `rows`; return the batch at which it ends, and their number.

    The records of each batch are in `data` from `bodies[:, 0]` to `bodies[:, 1]`. It ends before a batch that does not hold exactly the
    records that its header counts, each with a key, a value and no header. `records` must have room for all that the headers count.
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
            records[SEQUENCE, count] = MISSING if base_sequence < 0 else sequence
            records[RECORD_TYPE, count] = MISSING if is_control or key_size < 2 else int16(data, key_start)
            records[KEY_START, count] = key_start
            records[KEY_SIZE, count] = max(key_size, -1)
            records[VALUE_START, count] = value_start
            records[VALUE_SIZE, count] = max(value_size, -1)
            count += 1
        if position != end:
            return number, before
    return last, count
