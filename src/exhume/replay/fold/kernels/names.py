"""Names by their hash, for kernels: each byte string is kept once and has a number.

The index has open addressing. An entry is 0, or the upper half of the hash with the number plus one in the lower half. The place of an
entry depends only on the upper half, so an index can grow without the names.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exhume.codecs.kernels import inlined, kernel
from exhume.codecs.kernels.primitives import HALF, hash_of_number, is_same
from exhume.codecs.kernels.types import Bytes, Int64s, Number, Rows, Words

START, SIZE = 0, 1
NAME_COLUMNS = 2

UPPER = np.uint64(0xFFFFFFFF00000000)
LOWER = np.uint64(0xFFFFFFFF)
ONE = np.uint64(1)
FREE = np.uint64(0)


class Names(NamedTuple):
    """Byte strings, each kept once. `slots` finds the row of `places` with START and SIZE of a name in `content`."""

    slots: Words
    places: Rows
    content: Bytes


def texts_of(names: Names, count: int) -> list[str]:
    """Return the first `count` names, in the order of their numbers; all are exact UTF-8."""
    content = names.content
    return [content[start : start + size].tobytes().decode() for start, size in names.places[:count].tolist()]


@inlined
def find_name(names: Names, buffer: Bytes, start: Number, size: Number, name_hash: np.uint64) -> Number:
    """Return the number of the name `buffer[start:start + size]`; -1 for a new name."""
    index, places, content = names.slots, names.places, names.content
    mask = np.uint64(len(index) - 1)
    tag = name_hash & UPPER
    at = name_hash >> HALF & mask
    while index[at] != FREE:
        entry = index[at]
        if entry & UPPER == tag:
            number = np.int64(entry & LOWER) - 1
            if places[number, SIZE] == size and is_same(content, places[number, START], buffer, start, size):
                return number
        at = at + ONE & mask
    return np.int64(-1)


@kernel
def add_name(names: Names, number: Number, content_start: Number, buffer: Bytes, start: Number, size: Number, name_hash: np.uint64) -> None:
    """Enter a new name with this number; its bytes go to `content_start`. There must be room."""
    index, places, content = names.slots, names.places, names.content
    for offset in range(size):
        content[content_start + offset] = buffer[start + offset]
    places[number, START] = content_start
    places[number, SIZE] = size
    _enter(index, name_hash & UPPER | np.uint64(number + 1))


@kernel
def _enter(index: Words, entry: np.uint64) -> None:
    mask = np.uint64(len(index) - 1)
    at = entry >> HALF & mask
    while index[at] != FREE:
        at = at + ONE & mask
    index[at] = entry


@kernel
def move_entries(old: Words, new: Words) -> None:
    """Enter all entries of one index into another."""
    for place in range(len(old)):
        if old[place] != FREE:
            _enter(new, old[place])


@inlined
def find_producer(producers: Rows, index: Int64s, producer_id: Number, seed: Number) -> Number:
    """Return the row of this producer, whose first column is its id; -1 for a new producer."""
    mask = np.uint64(len(index) - 1)
    at = hash_of_number(producer_id, seed) & mask
    while index[at] != 0:
        if producers[index[at] - 1, 0] == producer_id:
            return index[at] - 1
        at = at + ONE & mask
    return np.int64(-1)


@kernel
def index_producers(producers: Rows, count: Number, index: Int64s, seed: Number) -> None:
    """Enter the first `count` producers into an empty index."""
    for number in range(count):
        enter_producer(producers, number, index, seed)


@kernel
def enter_producer(producers: Rows, number: Number, index: Int64s, seed: Number) -> None:
    """Enter the producer of this row."""
    mask = np.uint64(len(index) - 1)
    at = hash_of_number(producers[number, 0], seed) & mask
    while index[at] != 0:
        at = at + ONE & mask
    index[at] = number + 1
