"""Read fields and texts in kernels, as `wire.Reader` does, from an array of uint8.

These kernels do not check the end of the array: the caller checks it, or gives the end. Positions are int64, like all numbers of kernels.
`kernel_build/kernels.h` has the machine code for numbers of fixed size: compilers do not always make one load of a number that code reads
byte by byte.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel, native
from exhume.codecs.kernels.instructions import RUN_BYTES, are_equal, copy_run, is_ascii
from exhume.codecs.kernels.types import Bytes, Number

#: The position that `varint` and `varlong` return if the number is cut or too long.
NO_POSITION = -1
#: Kinds of text, the most common first.
ASCII, UTF8, NOT_EXACT = 0, 1, 2

#: The constants of hashes: the factor, and the bits of rotations and shifts.
MIX = np.uint64(0x9E3779B97F4A7C15)
TURN, BACK = np.uint64(29), np.uint64(35)
HALF = np.uint64(32)
_NO_ASCII = np.uint64(0x8080808080808080)


@native
def word(buffer: Bytes, position: Number) -> np.uint64:
    """Read eight bytes, the lowest first."""
    return np.uint64(int.from_bytes(buffer[position : position + 8].tobytes(), "little"))


@native
def put_word(buffer: Bytes, position: Number, value: np.uint64) -> None:
    """Write eight bytes, the lowest first."""
    buffer[position : position + 8] = np.frombuffer(int(value).to_bytes(8, "little"), np.uint8)


@native
def int64(buffer: Bytes, position: Number) -> Number:
    """Read a big-endian int64."""
    return np.int64(int.from_bytes(buffer[position : position + 8].tobytes(), "big", signed=True))


@native
def int32(buffer: Bytes, position: Number) -> Number:
    """Read a big-endian int32."""
    return np.int64(int.from_bytes(buffer[position : position + 4].tobytes(), "big", signed=True))


@native
def int16(buffer: Bytes, position: Number) -> Number:
    """Read a big-endian int16."""
    return np.int64(int.from_bytes(buffer[position : position + 2].tobytes(), "big", signed=True))


@inlined
def copy_bytes(source: Bytes, start: Number, size: Number, target: Bytes, place: Number) -> None:
    """Copy `source[start:start + size]` to `place` in `target`, which must be another array."""
    if size < 8:
        for index in range(size):
            target[np.uint64(place + index)] = source[np.uint64(start + index)]
        return
    if size >= RUN_BYTES:
        last = size - RUN_BYTES
        for index in range(0, last, RUN_BYTES):
            copy_run(source, start + index, target, place + index)
        copy_run(source, start + last, target, place + last)
        return
    last = size - 8
    for index in range(0, last, 8):
        put_word(target, place + index, word(source, start + index))
    put_word(target, place + last, word(source, start + last))


@inlined
def unsigned_varint(buffer: Bytes, position: Number, end: Number) -> tuple[Number, Number]:
    """Read an unsigned varint of at most 5 bytes, cut to 32 bits as Kafka does; return it and the position after it, or `NO_POSITION`."""
    if end - position >= 2:
        first, second = np.int64(buffer[np.uint64(position)]), np.int64(buffer[np.uint64(position + 1)])
        if first < 0x80:
            return first, position + 1
        if second < 0x80:
            return first & 0x7F | second << 7, position + 2
    return _long_unsigned_varint(buffer, position, end)


@kernel
def _long_unsigned_varint(buffer: Bytes, position: Number, end: Number) -> tuple[Number, Number]:
    value = np.int64(0)
    shift = np.int64(0)
    while position < end and shift <= 28:
        byte = np.int64(buffer[np.uint64(position)])
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, position
        shift += 7
    return np.int64(0), np.int64(NO_POSITION)


@inlined
def varint(buffer: Bytes, position: Number, end: Number) -> tuple[Number, Number]:
    """Read a zigzag varint; return it and the position after it, or `NO_POSITION`."""
    value, after = unsigned_varint(buffer, position, end)
    return value >> 1 ^ -(value & 1), after


@inlined
def varlong(buffer: Bytes, position: Number, end: Number) -> tuple[Number, Number]:
    """Read a zigzag varlong of at most 10 bytes; return it and the position after it, or `NO_POSITION`."""
    if position < end and buffer[np.uint64(position)] < 0x80:
        first = np.int64(buffer[np.uint64(position)])
        return first >> 1 ^ -(first & 1), position + 1
    return _long_varlong(buffer, position, end)


@kernel
def _long_varlong(buffer: Bytes, position: Number, end: Number) -> tuple[Number, Number]:
    value = np.uint64(0)
    shift = np.uint64(0)
    while position < end and shift <= np.uint64(63):
        byte = np.uint64(buffer[np.uint64(position)])
        position += 1
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), position
        shift += np.uint64(7)
    return np.int64(0), np.int64(NO_POSITION)


@inlined
def is_same(left: Bytes, left_at: Number, right: Bytes, right_at: Number, size: Number) -> Number:
    """Return True if both runs of `size` bytes are equal."""
    if size < 8:
        for index in range(size):
            if left[np.uint64(left_at + index)] != right[np.uint64(right_at + index)]:
                return False
        return True
    if size < RUN_BYTES:
        last = size - 8
        for index in range(0, last, 8):
            if word(left, left_at + index) != word(right, right_at + index):
                return False
        return word(left, left_at + last) == word(right, right_at + last)
    last = size - RUN_BYTES
    for index in range(0, last, RUN_BYTES):
        if not are_equal(left, left_at + index, right, right_at + index):
            return False
    return are_equal(left, left_at + last, right, right_at + last)


@inlined
def hash_of(buffer: Bytes, position: Number, size: Number, seed: Number) -> np.uint64:
    """Return a hash of `size` bytes. With a random seed, no writer of a log can choose keys with equal hashes."""
    value = (np.uint64(seed) ^ np.uint64(size)) * MIX
    if size < 8:
        for index in range(size):
            value = _mixed(value, np.uint64(buffer[np.uint64(position + index)]))
    else:
        # Two words at a time, each in its own value: neither waits for the other.
        other, last = _turned(value), size - 8
        for index in range(0, last - 8, 16):
            value = _mixed(value, word(buffer, position + index))
            other = _mixed(other, word(buffer, position + index + 8))
        value = _mixed(value, word(buffer, position + max(last - 8, 0)))
        value ^= _turned(_mixed(other, word(buffer, position + last)))
    value ^= value >> HALF
    value *= MIX
    return value ^ value >> HALF


@inlined
def hash_of_number(number: Number, seed: Number) -> np.uint64:
    """Return a hash of a number. It has a seed for the same reason as `hash_of`."""
    value = (np.uint64(number) ^ np.uint64(seed)) * MIX
    value = (value ^ value >> HALF) * MIX
    return value ^ value >> HALF


@inlined
def _mixed(value: np.uint64, text: np.uint64) -> np.uint64:
    return (_turned(value) ^ text) * MIX


@inlined
def _turned(value: np.uint64) -> np.uint64:
    return value << TURN | value >> BACK


@inlined
def kind_of_text(buffer: Bytes, position: Number, size: Number) -> Number:
    """Return `ASCII`, `UTF8` or `NOT_EXACT`: invalid UTF-8, or text with U+FFFD, which is also the decoded form of invalid UTF-8."""
    at, end = position, position + size
    if size >= RUN_BYTES:
        while end - at > RUN_BYTES:
            if not is_ascii(buffer, at):
                return _kind_of_other_text(buffer, at, end)
            at += RUN_BYTES
        return ASCII if is_ascii(buffer, end - RUN_BYTES) else _kind_of_other_text(buffer, at, end)
    if size >= 8:
        while end - at > 8:
            if word(buffer, at) & _NO_ASCII:
                return _kind_of_other_text(buffer, at, end)
            at += 8
        return _kind_of_other_text(buffer, at, end) if word(buffer, end - 8) & _NO_ASCII else ASCII
    while at < end:
        if buffer[np.uint64(at)] >= 0x80:
            return _kind_of_other_text(buffer, at, end)
        at += 1
    return ASCII


@kernel
def _kind_of_other_text(buffer: Bytes, at: Number, end: Number) -> Number:
    while at < end:
        first = np.int64(buffer[np.uint64(at)])
        if first < 0x80:
            at += 1
            continue
        if first < 0xC2 or first > 0xF4:
            return NOT_EXACT
        more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
        if end - at <= more:
            return NOT_EXACT
        point = first & 0x3F >> more
        for index in range(1, more + 1):
            byte = np.int64(buffer[np.uint64(at + index)])
            if byte & 0xC0 != 0x80:
                return NOT_EXACT
            point = point << 6 | byte & 0x3F
        is_overlong = (more == 2 and point < 0x800) or (more == 3 and point < 0x10000)
        if is_overlong or 0xD800 <= point <= 0xDFFF or point > 0x10FFFF or point == 0xFFFD:
            return NOT_EXACT
        at += more + 1
    return UTF8
