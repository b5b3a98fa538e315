"""Write messages of formats 0 and 1 as records of format 2, so that no other kernel has to read messages."""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel, scan
from exhume.codecs.kernels.primitives import copy_bytes, int32
from exhume.codecs.kernels.types import Bytes, Int64s, Number, Rows

_HEADER_BYTES, _STAMPED_HEADER_BYTES = 18, 26
_LENGTH_BYTES = 4
_ATTRIBUTES, _TIMESTAMP_DELTA, _OFFSET_DELTA, _HEADERS = 0, 0, 0, 0


@kernel
def write_records(rows: Rows, first: Number, last: Number, content: Bytes, target: Bytes, bodies: Rows) -> None:
    """Write the messages `first` to `last` of `rows`, in `content`, into `target`; `bodies` gets the start and end of each record.

    The records take no more room than the messages. A message that its key and its value do not fill gets no bytes.
    """
    place = np.int64(0)
    for number in range(first, last):
        bodies[number, 0] = place
        place = _write_record(rows, number, content, target, place)
        bodies[number, 1] = place


def as_records(content: Bytes, rows: Int64s, first: int, last: int, bodies: Int64s) -> Bytes:
    """Return the bytes that `write_records` makes of these messages; `bodies` gets the start and end of each record."""
    target = np.empty(int(rows[first:last, scan.SIZE].sum()), np.uint8)
    write_records(rows, first, last, content, target, bodies)
    return target


@inlined
def _write_record(rows: Rows, number: Number, content: Bytes, target: Bytes, place: Number) -> Number:
    position = rows[number, scan.POSITION]
    end = position + rows[number, scan.SIZE]
    position += _HEADER_BYTES if rows[number, scan.MAGIC] == 0 else _STAMPED_HEADER_BYTES
    key_size, key_start = int32(content, position), position + _LENGTH_BYTES
    key_bytes = max(key_size, 0)
    if key_size < -1 or key_bytes > end - key_start - _LENGTH_BYTES:
        return place
    value_size, value_start = int32(content, key_start + key_bytes), key_start + key_bytes + _LENGTH_BYTES
    value_bytes = max(value_size, 0)
    if value_size < -1 or value_bytes != end - value_start:
        return place
    size = 4 + _varint_bytes(key_size) + key_bytes + _varint_bytes(value_size) + value_bytes
    place = _put_varint(target, place, size)
    target[np.uint64(place)] = _ATTRIBUTES
    target[np.uint64(place + 1)] = _TIMESTAMP_DELTA
    target[np.uint64(place + 2)] = _OFFSET_DELTA
    place = _put_varint(target, place + 3, key_size)
    copy_bytes(content, key_start, key_bytes, target, place)
    place = _put_varint(target, place + key_bytes, value_size)
    copy_bytes(content, value_start, value_bytes, target, place)
    place += value_bytes
    target[np.uint64(place)] = _HEADERS
    return place + 1


@inlined
def _varint_bytes(value: Number) -> Number:
    """Return the number of bytes of a zigzag varint."""
    left = value << 1 ^ value >> 63
    count = np.int64(1)
    while left >= 0x80:
        left >>= 7
        count += 1
    return count


@inlined
def _put_varint(target: Bytes, place: Number, value: Number) -> Number:
    """Write a zigzag varint; return the place after it."""
    left = value << 1 ^ value >> 63
    while left >= 0x80:
        target[np.uint64(place)] = left & 0x7F | 0x80
        left >>= 7
        place += 1
    target[np.uint64(place)] = left
    return place + 1
