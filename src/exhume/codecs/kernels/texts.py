"""Copy texts of a buffer into one column, number them, and find characters in texts: kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exhume.codecs.kernels import inlined, kernel
from exhume.codecs.kernels.primitives import copy_bytes, hash_of, is_same, word
from exhume.codecs.kernels.types import Bytes, Int32s, Int64s, Number

_ONES, HIGHEST = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_BASE64, _PADDING = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 0x3D
_SPACES = np.uint64(0x2020202020202020)
#: Characters. No other one from a space to `DELETE` is invisible.
QUOTE, BACKSLASH, COMMA, DELETE = 0x22, 0x5C, 0x2C, 0x7F


@kernel
def copy_texts(data: Bytes, starts: Int64s, sizes: Int64s, offsets: Int32s, content: Bytes) -> None:
    """Copy `data[start:start + size]` for each pair into `content`, one after the other; `offsets` gets each start, and the last end.

    A negative size is a null: nothing is copied. The texts must be within `data`, and `content` must have room for all.
    """
    place = np.int64(0)
    offsets[0] = 0
    for number in range(len(starts)):
        start, size = starts[number], sizes[number]
        copy_bytes(data, start, size, content, place)
        place += max(size, 0)
        offsets[number + 1] = place


@kernel
def write_base64(offsets: Int32s, content: Bytes, text_offsets: Int32s, texts: Bytes) -> None:
    """Write each byte string of Arrow as base64 into `texts`, one after the other; `text_offsets` gets each start, and the last end.

    `texts` must have room for all, `text_offsets` has as many entries as `offsets`.
    """
    place = np.int64(0)
    text_offsets[0] = 0
    for row in range(len(offsets) - 1):
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        while at < end:
            three = np.int64(content[np.uint64(at)]) << 16
            if end - at > 1:
                three |= np.int64(content[np.uint64(at + 1)]) << 8
            if end - at > 2:
                three |= np.int64(content[np.uint64(at + 2)])
            texts[np.uint64(place)] = _BASE64[three >> 18]
            texts[np.uint64(place + 1)] = _BASE64[three >> 12 & 0x3F]
            texts[np.uint64(place + 2)] = _BASE64[three >> 6 & 0x3F] if end - at > 1 else _PADDING
            texts[np.uint64(place + 3)] = _BASE64[three & 0x3F] if end - at > 2 else _PADDING
            at += 3
            place += 4
        text_offsets[row + 1] = place


@kernel
def number_texts(data: Bytes, starts: Int64s, sizes: Int64s, seed: Number, slots: Int32s, numbers: Int32s, firsts: Int64s) -> Number:
    """Number these texts in the order of their first occurrence; return the number of different texts.

    `numbers` gets the number of each text, `firsts` the first text with each number. No size is negative. All `slots` are -1; their count
    is a power of two, and larger than that of the texts. Each text is first compared with the one before it.
    """
    count, last_slot = np.int64(0), np.uint64(len(slots) - 1)
    for at in range(len(starts)):
        start, size = starts[at], sizes[at]
        if at > 0 and size == sizes[at - 1] and is_same(data, starts[at - 1], data, start, size):
            numbers[at] = numbers[at - 1]
            continue
        slot = hash_of(data, start, size, seed) & last_slot
        while slots[slot] >= 0:
            first = firsts[slots[slot]]
            if sizes[first] == size and is_same(data, starts[first], data, start, size):
                break
            slot = slot + np.uint64(1) & last_slot
        if slots[slot] < 0:
            slots[slot] = count
            firsts[count] = at
            count += 1
        numbers[at] = slots[slot]
    return count


class TextTable(NamedTuple):
    """Different texts, numbered.

    Attributes:
        content: The texts, one after the other.
        ends: 0, and the end of each text.
        slots: A hash table of their numbers; -1 for a free slot. Its size is a power of two.
    """

    content: Bytes
    ends: Int64s
    slots: Int32s


@kernel
def number_known_texts(known: TextTable, count: Number, seed: Number, offsets: Int32s, content: Bytes, numbers: Int32s) -> Number:
    """Write the number of each text of Arrow among `count` known ones. New texts get the next numbers; return the new count.

    There must be room for all of these texts.
    """
    last_slot = np.uint64(len(known.slots) - 1)
    for row in range(len(offsets) - 1):
        start, size = np.int64(offsets[row]), np.int64(offsets[row + 1]) - np.int64(offsets[row])
        slot = hash_of(content, start, size, seed) & last_slot
        while known.slots[slot] >= 0:
            at = known.ends[known.slots[slot]]
            if known.ends[known.slots[slot] + 1] - at == size and is_same(known.content, at, content, start, size):
                break
            slot = slot + np.uint64(1) & last_slot
        if known.slots[slot] < 0:
            copy_bytes(content, start, size, known.content, known.ends[count])
            known.ends[count + 1] = known.ends[count] + size
            known.slots[slot] = count
            count += 1
        numbers[row] = known.slots[slot]
    return count


@kernel
def enter_known_texts(known: TextTable, count: Number, seed: Number) -> None:
    """Enter the numbers of `count` texts into the hash table, which is empty."""
    last_slot = np.uint64(len(known.slots) - 1)
    for number in range(count):
        start = known.ends[number]
        slot = hash_of(known.content, start, known.ends[number + 1] - start, seed) & last_slot
        while known.slots[slot] >= 0:
            slot = slot + np.uint64(1) & last_slot
        known.slots[slot] = number


@kernel
def find_escapes(data: Bytes, starts: Int64s, sizes: Int64s, found: Int64s) -> None:
    """Set `found` to 1 for each text of `data` with a character that JSON escapes; do not change it for others and for nulls."""
    for number in range(len(starts)):
        # The place of a null may be any number, and arithmetic with it may overflow.
        if sizes[number] <= 0:
            continue
        at, end = starts[number], starts[number] + sizes[number]
        while end - at >= 8:
            if _has_escape(word(data, at)):
                found[number] = 1
            at += 8
        while at < end:
            byte = data[np.uint64(at)]
            if byte < 0x20 or byte == 0x22 or byte == 0x5C:
                found[number] = 1
            at += 1


@inlined
def _has_escape(text: np.uint64) -> Number:
    """Return True if one of eight bytes is below 0x20, a quote or a backslash."""
    return (controls_of(text) | places_of(text, QUOTE) | places_of(text, BACKSLASH)) != np.uint64(0)


@inlined
def places_of(text: np.uint64, byte: Number) -> np.uint64:
    """Return a word that is 0 if none of eight bytes is this one. Else its lowest bit that is set is the highest of the first such byte."""
    found = text ^ np.uint64(byte) * _ONES
    return (found - _ONES & ~found) & HIGHEST


@inlined
def controls_of(text: np.uint64) -> np.uint64:
    """Return the same as `places_of` for all bytes below 0x20."""
    return text - _SPACES & ~text & HIGHEST


@kernel
def are_visible(content: Bytes, start: Number, end: Number, unwanted: Number) -> Number:
    """Return True if all bytes of `content[start:end]` are visible ASCII or spaces, and none is `unwanted`."""
    at = start
    while end - at >= 8:
        text = word(content, at)
        if text & HIGHEST | controls_of(text) | places_of(text, DELETE) | places_of(text, unwanted):
            return False
        at += 8
    while at < end:
        byte = np.int64(content[np.uint64(at)])
        if byte < 0x20 or byte >= DELETE or byte == unwanted:
            return False
        at += 1
    return True


@kernel
def starts_with(offsets: Int32s, content: Bytes, first: Bytes) -> Number:
    """Return True if a text of Arrow begins with one of these bytes."""
    for row in range(len(offsets) - 1):
        if offsets[row] < offsets[row + 1]:
            byte = content[np.uint64(offsets[row])]
            for index in range(len(first)):
                if byte == first[index]:
                    return True
    return False


@kernel
def are_same(offsets: Int32s, content: Bytes) -> Number:
    """Return True if all texts of Arrow are equal."""
    size = np.int64(offsets[1]) - np.int64(offsets[0])
    for row in range(1, len(offsets) - 1):
        if np.int64(offsets[row + 1]) - np.int64(offsets[row]) != size:
            return False
        if not is_same(content, np.int64(offsets[row - 1]), content, np.int64(offsets[row]), size):
            return False
    return True
