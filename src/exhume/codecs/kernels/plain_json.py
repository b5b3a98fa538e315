"""Find the JSON texts that a JSON writer would write again byte for byte: a kernel.

Such a text is compact and visible ASCII. Its numbers are integers, it escapes only what JSON must escape, and no object repeats a name.
The kernel does not look for repeated names.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel
from exhume.codecs.kernels.instructions import first_byte
from exhume.codecs.kernels.primitives import NO_POSITION, word
from exhume.codecs.kernels.texts import BACKSLASH, COMMA, DELETE, HIGHEST, QUOTE, controls_of, places_of
from exhume.codecs.kernels.types import Bytes, Int32s, Number

_VALUE, _VALUE_OR_END, _NAME, _NAME_OR_END, _MORE = range(5)
_MOST_DEPTH = 60
#: Python may refuse longer numbers.
_MOST_DIGITS = 600

_COLON, _MINUS, _ZERO, _NINE = b":-09"
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = b"[]{}"
_ESCAPED = b'"\\bfnrt'
_TRUE, _FALSE, _NULL = b"true", b"false", b"null"


@kernel
def find_other_json(offsets: Int32s, content: Bytes, found: Bytes) -> Number:
    """Set `found` to 1 for each text of Arrow that is not plain JSON, to 0 for the others; return the number of those set to 1."""
    count = np.int64(0)
    for row in range(len(found)):
        is_other = not _is_plain(content, np.int64(offsets[row]), np.int64(offsets[row + 1]))
        found[row] = is_other
        count += is_other
    return count


@kernel
def _is_plain(text: Bytes, at: Number, end: Number) -> Number:
    expected, depth = _VALUE, np.int64(0)
    # A bit for each level: 1 in an object, 0 in a list; the innermost is the lowest.
    levels = np.int64(0)
    while at < end:
        byte = np.int64(text[np.uint64(at)])
        if expected == _MORE:
            if depth == 0:
                return False
            if byte == COMMA:
                expected = _NAME if levels & 1 else _VALUE
                at += 1
                continue
            expected = _NAME_OR_END if levels & 1 else _VALUE_OR_END
            if byte != _CLOSE_OBJECT and byte != _CLOSE_LIST:
                return False
        if (byte == _CLOSE_OBJECT and expected == _NAME_OR_END) or (byte == _CLOSE_LIST and expected == _VALUE_OR_END):
            levels >>= 1
            depth -= 1
            at += 1
            expected = _MORE
        elif expected == _NAME or expected == _NAME_OR_END:
            at = _after_text(text, at, end)
            if at == NO_POSITION or at == end or text[np.uint64(at)] != _COLON:
                return False
            at += 1
            expected = _VALUE
        elif byte == _OPEN_OBJECT or byte == _OPEN_LIST:
            if depth == _MOST_DEPTH:
                return False
            levels = levels << 1 | np.int64(byte == _OPEN_OBJECT)
            depth += 1
            at += 1
            expected = _NAME_OR_END if byte == _OPEN_OBJECT else _VALUE_OR_END
        else:
            at = _after_text(text, at, end) if byte == QUOTE else _after_word(text, at, end)
            if at == NO_POSITION:
                return False
            expected = _MORE
    return expected == _MORE and depth == 0


@inlined
def _after_text(text: Bytes, at: Number, end: Number) -> Number:
    """Return the position after a text in quotes; `NO_POSITION` if there is no plain one."""
    if text[np.uint64(at)] != QUOTE:
        return NO_POSITION
    at += 1
    while at < end:
        if end - at >= 8:
            eight = word(text, at)
            found = eight & HIGHEST | controls_of(eight) | places_of(eight, DELETE)
            found |= places_of(eight, QUOTE) | places_of(eight, BACKSLASH)
            if not found:
                at += 8
                continue
            at += first_byte(found)
        byte = np.int64(text[np.uint64(at)])
        at += 1
        if byte == QUOTE:
            return at
        if byte < 0x20 or byte >= DELETE:
            return NO_POSITION
        if byte == BACKSLASH:
            if at == end or not _is_escaped(np.int64(text[np.uint64(at)])):
                return NO_POSITION
            at += 1
    return NO_POSITION


@inlined
def _is_escaped(byte: Number) -> Number:
    for index in range(len(_ESCAPED)):
        if byte == _ESCAPED[index]:
            return True
    return False


@inlined
def _after_word(text: Bytes, at: Number, end: Number) -> Number:
    """Return the position after a number, `true`, `false` or `null`; `NO_POSITION` if there is none."""
    byte = np.int64(text[np.uint64(at)])
    if byte == _MINUS or _ZERO <= byte <= _NINE:
        return _after_number(text, at, end)
    if end - at >= 4 and byte == _TRUE[0]:
        for index in range(4):
            if text[np.uint64(at + index)] != _TRUE[index]:
                return NO_POSITION
        return at + 4
    if end - at >= 4 and byte == _NULL[0]:
        for index in range(4):
            if text[np.uint64(at + index)] != _NULL[index]:
                return NO_POSITION
        return at + 4
    if end - at >= 5 and byte == _FALSE[0]:
        for index in range(5):
            if text[np.uint64(at + index)] != _FALSE[index]:
                return NO_POSITION
        return at + 5
    return NO_POSITION


@inlined
def _after_number(text: Bytes, at: Number, end: Number) -> Number:
    is_negative = text[np.uint64(at)] == _MINUS
    first = at + 1 if is_negative else at
    at = first
    while at < end and _ZERO <= text[np.uint64(at)] <= _NINE:
        at += 1
    digits = at - first
    if digits == 0 or digits > _MOST_DIGITS:
        return NO_POSITION
    # Neither `-0` nor `01`.
    if text[np.uint64(first)] == _ZERO and (digits > 1 or is_negative):
        return NO_POSITION
    return at
