"""Write the fields of records as JSON texts into one column: a kernel.

Each row chooses a list of steps, which write its text. A step appends

    LITERAL   the same characters for all rows: `literals[start:start + size]`
    TEXT      a text of `data` in quotes, or null: two rows of `fields` have its start and its size. It escapes no character
    READY     characters of `ready`, in the same way as `TEXT`, but without quotes
    NUMBER    a row of `fields`, in decimal digits
    UUID      16 bytes of `data` as Kafka prints a UUID, in quotes; null if all are 0, or if the place in `fields` is negative
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel
from exhume.codecs.kernels.primitives import copy_bytes, put_word, word
from exhume.codecs.kernels.texts import QUOTE
from exhume.codecs.kernels.types import Bytes, Int32s, Int64s, Number, Rows

LITERAL, TEXT, READY, NUMBER, UUID = range(5)
#: A row of `steps`: its kind; then the start and the size of a literal, or the first of its rows of `fields`.
KIND, FIRST, SIZE = range(3)
#: The choice of a row that is null.
NULL_ROW = -1

#: The most bytes that a step writes besides those that it copies: the digits of an int64 in words, or a UUID in quotes.
MOST_BYTES = 32

_MINUS, _ZERO = 0x2D, 0x30
_UUID_BYTES = 16
_EIGHT_DIGITS = np.uint64(10**8)
_ZEROS = np.uint64(0x3030303030303030)


@kernel
def write_texts(
    choices: Int64s,
    lists: Rows,
    steps: Rows,
    literals: Bytes,
    fields: Rows,
    data: Bytes,
    ready: Bytes,
    offsets: Int32s,
    content: Bytes,
) -> Number:
    """Write a text for each row into `content`, one after the other; return the number of bytes, or -1 if `content` is too small.

    The steps `lists[choice, 0]` to `lists[choice, 1]` write the text. `offsets` gets the start of each text, and the end of the last one.
    `fields` has a column for each row; its texts must be within `data` and `ready`.
    """
    place = np.int64(0)
    offsets[0] = 0
    for row in range(len(choices)):
        choice = choices[row]
        if choice != NULL_ROW:
            for number in range(lists[choice, 0], lists[choice, 1]):
                kind, first = steps[number, KIND], steps[number, FIRST]
                if kind == LITERAL:
                    size = steps[number, SIZE]
                    if size > len(content) - place:
                        return -1
                    copy_bytes(literals, first, size, content, place)
                    place += size
                    continue
                size = max(fields[first + 1, row], 0) if kind in (TEXT, READY) else np.int64(0)
                if size + MOST_BYTES > len(content) - place:
                    return -1
                if kind == NUMBER:
                    place = write_number(fields[first, row], content, place)
                elif kind == UUID:
                    place = _write_uuid(data, fields[first, row], content, place)
                elif fields[first + 1, row] < 0:
                    place = _write_null(content, place)
                elif kind == READY:
                    copy_bytes(ready, fields[first, row], size, content, place)
                    place += size
                else:
                    content[np.uint64(place)] = QUOTE
                    copy_bytes(data, fields[first, row], size, content, place + 1)
                    content[np.uint64(place + size + 1)] = QUOTE
                    place += size + 2
        offsets[row + 1] = place
    return place


@inlined
def _write_null(content: Bytes, place: Number) -> Number:
    content[np.uint64(place)] = 0x6E
    content[np.uint64(place + 1)] = 0x75
    content[np.uint64(place + 2)] = 0x6C
    content[np.uint64(place + 3)] = 0x6C
    return place + 4


@inlined
def write_number(value: Number, content: Bytes, place: Number) -> Number:
    """Write a number in decimal digits; return the place after it. It may write up to `MOST_BYTES`."""
    # Only an unsigned number can hold the least int64 without its sign.
    left = np.uint64(value)
    if value < 0:
        content[np.uint64(place)] = _MINUS
        place += 1
        left = np.uint64(0) - left
    if left < _EIGHT_DIGITS:
        return _write_first_digits(left, content, place)
    high = left // _EIGHT_DIGITS
    if high < _EIGHT_DIGITS:
        place = _write_first_digits(high, content, place)
    else:
        highest = high // _EIGHT_DIGITS
        place = _write_first_digits(highest, content, place)
        put_word(content, place, _digits(high - highest * _EIGHT_DIGITS) | _ZEROS)
        place += 8
    put_word(content, place, _digits(left - high * _EIGHT_DIGITS) | _ZEROS)
    return place + 8


@inlined
def _write_first_digits(value: np.uint64, content: Bytes, place: Number) -> Number:
    """Write up to eight digits, without zeros before them."""
    digits = _digits(value)
    count = np.int64(8)
    while count > 1 and digits & np.uint64(0xFF) == np.uint64(0):
        digits >>= np.uint64(8)
        count -= 1
    put_word(content, place, digits | _ZEROS)
    return place + count


@inlined
def _digits(value: np.uint64) -> np.uint64:
    """Return the eight digits of a number in eight bytes, the first digit in the lowest byte."""
    # Divide all groups of digits at once: by 10,000, then by 100, then by 10. A product and a shift replace each of the last two divisions.
    high = value // np.uint64(10_000)
    fours = high | value - high * np.uint64(10_000) << np.uint64(32)
    high = fours * np.uint64(10_486) >> np.uint64(20) & np.uint64(0x0000007F0000007F)
    pairs = high | fours - high * np.uint64(100) << np.uint64(16)
    high = pairs * np.uint64(103) >> np.uint64(10) & np.uint64(0x000F000F000F000F)
    return high | pairs - high * np.uint64(10) << np.uint64(8)


@kernel
def _write_uuid(data: Bytes, start: Number, content: Bytes, place: Number) -> Number:
    if start < 0 or word(data, start) | word(data, start + 8) == np.uint64(0):
        return _write_null(content, place)
    content[np.uint64(place)] = QUOTE
    place += 1
    bits, count = np.int64(0), np.int64(0)
    for index in range(_UUID_BYTES):
        bits = bits << 8 | np.int64(data[np.uint64(start + index)])
        count += 8
        while count >= 6:
            count -= 6
            content[np.uint64(place)] = _letter(bits >> count & 0x3F)
            place += 1
        bits &= (1 << count) - 1
    content[np.uint64(place)] = _letter(bits << (6 - count) & 0x3F)
    content[np.uint64(place + 1)] = QUOTE
    return place + 2


@inlined
def _letter(value: Number) -> Number:
    """Return a digit of URL-safe base64."""
    if value < 26:
        return value + 0x41
    if value < 52:
        return value - 26 + 0x61
    if value < 62:
        return value - 52 + _ZERO
    return _MINUS if value == 62 else 0x5F
