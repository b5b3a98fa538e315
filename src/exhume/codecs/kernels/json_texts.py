"""JSON texts of the fields of records, written straight into one column: a kernel.

How a text is made is a list of steps, of which a row chooses one list. A step appends

    LITERAL   characters that are the same for all: `literals[start:start + size]`
    TEXT      a text of `data` in quotes, or null: its start and its size stand in two rows of `fields`. Nothing is escaped
    READY     characters of `ready`, just as `TEXT`, without quotes
    NUMBER    a row of `fields`, in decimal digits
    UUID      16 bytes of `data` as Kafka prints a UUID, in quotes; null where they are all 0, or where `fields` has a negative place
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel
from exhume.codecs.kernels.primitives import copy_bytes, word
from exhume.codecs.kernels.types import Bytes, Int32s, Int64s, Number, Rows

LITERAL, TEXT, READY, NUMBER, UUID = range(5)
#: A row of `steps`: its kind; where a literal begins and how long it is, or the row of `fields` where its numbers begin.
KIND, FIRST, SIZE = range(3)
#: What `choices` holds for a row that is null.
NULL_ROW = -1

#: What a step writes at most, besides what `LITERAL`, `TEXT` and `READY` copy: the digits of an int64, or a UUID in quotes.
MOST_BYTES = 24

_QUOTE, _MINUS, _ZERO = 0x22, 0x2D, 0x30
_UUID_BYTES = 16
_TEN = np.uint64(10)


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
    """A text for each row, by the steps `lists[choice, 0]` to `lists[choice, 1]`, one behind the other in `content`: how many bytes.

    `offsets` says where each begins, and the end. `fields` has a column for each row, and its texts lie within `data` and `ready`. Ends
    with -1 where `content` is too small.
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
                    place = _write_number(fields[first, row], content, place)
                elif kind == UUID:
                    place = _write_uuid(data, fields[first, row], content, place)
                elif fields[first + 1, row] < 0:
                    place = _write_null(content, place)
                elif kind == READY:
                    copy_bytes(ready, fields[first, row], size, content, place)
                    place += size
                else:
                    content[np.uint64(place)] = _QUOTE
                    copy_bytes(data, fields[first, row], size, content, place + 1)
                    content[np.uint64(place + size + 1)] = _QUOTE
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
def _write_number(value: Number, content: Bytes, place: Number) -> Number:
    # The least int64 has no positive counterpart but as an unsigned number.
    left = np.uint64(value)
    if value < 0:
        content[np.uint64(place)] = _MINUS
        place += 1
        left = np.uint64(0) - left
    digits = np.int64(1)
    bound = _TEN
    while digits < 20 and left >= bound:
        digits += 1
        # Ten to the twentieth is too much for 64 bits: but then the loop has ended.
        bound *= _TEN
    for index in range(digits):
        content[np.uint64(place + digits - 1 - index)] = np.uint8(left % _TEN + np.uint64(_ZERO))
        left = left // _TEN
    return place + digits


@kernel
def _write_uuid(data: Bytes, start: Number, content: Bytes, place: Number) -> Number:
    if start < 0 or word(data, start) | word(data, start + 8) == np.uint64(0):
        return _write_null(content, place)
    content[np.uint64(place)] = _QUOTE
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
    content[np.uint64(place + 1)] = _QUOTE
    return place + 2


@inlined
def _letter(value: Number) -> Number:
    """A digit of URL-safe base64."""
    if value < 26:
        return value + 0x41
    if value < 52:
        return value - 26 + 0x61
    if value < 62:
        return value - 52 + _ZERO
    return _MINUS if value == 62 else 0x5F
