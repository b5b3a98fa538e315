"""Write the rows of a table as lines of JSON or CSV: a kernel.

A line is a list of steps. Each step appends a literal, then the cell of one column:

    END        no cell: the literal is the end of the line
    NUMBER     a row of `numbers`, in decimal digits
    FLAG       a row of `numbers`: `false` for 0, `true` for 1
    READY      a text, unchanged
    JSON_TEXT  a text in quotes, with a backslash before each quote and backslash
    CSV_TEXT   a text; in quotes, with its quotes doubled, if it has a quote, a comma or the end of a line
    CSV_ALONE  the same for the only cell of a line; an empty text stands in quotes

A row of `offsets` and an array of `buffers` hold a column of texts, as in Arrow. Another array of `buffers` may be the bitmap of a column:
where its bit is 0, the cell is a literal.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel
from exhume.codecs.kernels.instructions import first_byte
from exhume.codecs.kernels.json_texts import MOST_BYTES, write_number
from exhume.codecs.kernels.primitives import copy_bytes, put_word, word
from exhume.codecs.kernels.texts import BACKSLASH, COMMA, QUOTE, places_of
from exhume.codecs.kernels.types import ByteArrays, Bytes, Int32Rows, Number, Rows

END, NUMBER, FLAG, READY, JSON_TEXT, CSV_TEXT, CSV_ALONE = range(7)

#: A row of `steps`: its kind; start and size of its literal; the row of `numbers` or `offsets`; the arrays of `buffers` with the texts and
#: the bitmap, -1 for none; the bit of the first row; start and size of the literal for a null.
KIND, LITERAL, LITERAL_SIZE, COLUMN, TEXTS, BITMAP, FIRST_BIT, NULL, NULL_SIZE = range(9)

_FLAGS = b"falsetrue"
_LINE_FEED, _CARRIAGE_RETURN = 0x0A, 0x0D


@kernel
def write_lines(
    first: Number, last: Number, steps: Rows, literals: Bytes, numbers: Rows, offsets: Int32Rows, buffers: ByteArrays, target: Bytes
) -> tuple[Number, Number]:
    """Write the rows `first` to `last` into `target`; return the first row without room, or `last`, and the number of bytes."""
    place = np.int64(0)
    for row in range(first, last):
        line = place
        for step in range(steps.shape[0]):
            kind, column = steps[step, KIND], steps[step, COLUMN]
            start, size = np.int64(0), np.int64(0)
            if kind >= READY:
                start = np.int64(offsets[column, row])
                size = np.int64(offsets[column, row + 1]) - start
            if steps[step, LITERAL_SIZE] + steps[step, NULL_SIZE] + 2 * size + MOST_BYTES > len(target) - place:
                return row, line
            copy_bytes(literals, steps[step, LITERAL], steps[step, LITERAL_SIZE], target, place)
            place += steps[step, LITERAL_SIZE]
            if steps[step, BITMAP] >= 0:
                bit = row + steps[step, FIRST_BIT]
                if np.int64(buffers[steps[step, BITMAP]][np.uint64(bit >> 3)]) >> (bit & 7) & 1 == 0:
                    copy_bytes(literals, steps[step, NULL], steps[step, NULL_SIZE], target, place)
                    place += steps[step, NULL_SIZE]
                    continue
            if kind == NUMBER:
                place = write_number(numbers[column, row], target, place)
            elif kind == FLAG:
                place = _write_flag(numbers[column, row], target, place)
            elif kind == READY:
                copy_bytes(buffers[steps[step, TEXTS]], start, size, target, place)
                place += size
            elif kind == JSON_TEXT:
                place = _write_quoted(buffers[steps[step, TEXTS]], start, start + size, BACKSLASH, target, place)
            elif kind != END:
                place = _write_cell(buffers[steps[step, TEXTS]], start, start + size, kind == CSV_ALONE, target, place)
    return last, place


@inlined
def _write_flag(value: Number, target: Bytes, place: Number) -> Number:
    first = 5 if value else 0
    size = 4 if value else 5
    for index in range(size):
        target[np.uint64(place + index)] = _FLAGS[first + index]
    return place + size


@kernel
def _write_cell(texts: Bytes, at: Number, end: Number, is_alone: Number, target: Bytes, place: Number) -> Number:
    """Write a cell of CSV."""
    if at == end and is_alone:
        return _write_quoted(texts, at, end, QUOTE, target, place)
    start, first = at, place
    while end - at >= 8:
        text = word(texts, at)
        if places_of(text, QUOTE) | places_of(text, COMMA) | places_of(text, _LINE_FEED) | places_of(text, _CARRIAGE_RETURN):
            return _write_quoted(texts, start, end, QUOTE, target, first)
        put_word(target, place, text)
        at += 8
        place += 8
    while at < end:
        byte = texts[np.uint64(at)]
        if byte == QUOTE or byte == COMMA or byte == _LINE_FEED or byte == _CARRIAGE_RETURN:
            return _write_quoted(texts, start, end, QUOTE, target, first)
        target[np.uint64(place)] = byte
        at += 1
        place += 1
    return place


@kernel
def _write_quoted(texts: Bytes, at: Number, end: Number, mark: Number, target: Bytes, place: Number) -> Number:
    """Write a text in quotes, with `mark` before each quote and each byte that is `mark`."""
    target[np.uint64(place)] = QUOTE
    place += 1
    while end - at >= 8:
        text = word(texts, at)
        found = places_of(text, QUOTE) | places_of(text, mark)
        put_word(target, place, text)
        if not found:
            at += 8
            place += 8
            continue
        # The next word replaces what is after the mark.
        count = first_byte(found)
        at += count
        place += count
        target[np.uint64(place)] = mark
        target[np.uint64(place + 1)] = texts[np.uint64(at)]
        at += 1
        place += 2
    while at < end:
        byte = np.int64(texts[np.uint64(at)])
        if byte == QUOTE or byte == mark:
            target[np.uint64(place)] = mark
            place += 1
        target[np.uint64(place)] = byte
        at += 1
        place += 1
    target[np.uint64(place)] = QUOTE
    return place + 1
