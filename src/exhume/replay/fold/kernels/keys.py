"""Keys of committed offsets, for kernels: the numbers of a group and of a topic, and a partition.

The index is like that of `names`. Eight consecutive partitions of a topic are side by side in it, in one cache line: a group that commits
one partition mostly commits the next one too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exhume.codecs.kernels import inlined
from exhume.codecs.kernels.instructions import fetch
from exhume.codecs.kernels.primitives import BACK, HALF, MIX, TURN
from exhume.codecs.kernels.types import Int32Rows, Number, Words
from exhume.replay.fold.kernels.names import FREE, LOWER, ONE, UPPER

#: A row of a key: group, topic and partition, and the key whose commit came after its own the last time, -1 for none. Mostly the same key
#: comes next again, and is found without the index.
GROUP, TOPIC, PARTITION, NEXT = range(4)
NAMED_COLUMNS, COLUMNS = 3, 4


_LINE_BITS = 3
#: Partitions of a line.
IN_LINE = 1 << _LINE_BITS
_PLACE_IN_LINE = np.uint64(IN_LINE - 1)


class Keys(NamedTuple):
    """Keys and their numbers, which are the places of their rows; `slots` is the index."""

    slots: Words
    rows: Int32Rows


@inlined
def hash_of_key(group: Number, topic: Number, partition: Number, seed: Number) -> np.uint64:
    """Return a hash of a key. It has a seed for the same reason as `primitives.hash_of`."""
    value = (np.uint64(seed) ^ np.uint64(group << 32 | topic)) * MIX
    value = ((value << TURN | value >> BACK) ^ np.uint64(partition >> _LINE_BITS)) * MIX
    value = (value ^ value >> HALF) * MIX
    value ^= value >> HALF
    # The upper half is the place in the index. Lines begin at different partitions: many topics have one partition only.
    return value & ~(_PLACE_IN_LINE << HALF) | ((value ^ np.uint64(partition)) & _PLACE_IN_LINE) << HALF


@inlined
def is_key(rows: Int32Rows, number: Number, group: Number, topic: Number, partition: Number) -> Number:
    """True if this is the key of this number."""
    return rows[number, GROUP] == group and rows[number, TOPIC] == topic and rows[number, PARTITION] == partition


@inlined
def find_key(keys: Keys, group: Number, topic: Number, partition: Number, key_hash: np.uint64) -> tuple[Number, np.uint64]:
    """Return the number of this key and its slot; for a new key -1 and the free slot for it."""
    slots, rows = keys.slots, keys.rows
    mask = np.uint64(len(slots) - 1)
    tag = key_hash & UPPER
    at = key_hash >> HALF & mask
    while slots[at] != FREE:
        entry = slots[at]
        if entry & UPPER == tag:
            number = np.int64(entry & LOWER) - 1
            if is_key(rows, number, group, topic, partition):
                return number, at
        at = at + ONE & mask
    return np.int64(-1), at


@inlined
def fetch_slot(keys: Keys, key_hash: np.uint64) -> None:
    """Ask the processor to fetch the slot at which `find_key` begins."""
    fetch(keys.slots, np.int64(key_hash >> HALF & np.uint64(len(keys.slots) - 1)))


@inlined
def add_key(keys: Keys, number: Number, slot: np.uint64, group: Number, topic: Number, partition: Number, key_hash: np.uint64) -> None:
    """Enter a new key with this number into the slot that `find_key` returned. There must be room."""
    slots, rows = keys.slots, keys.rows
    rows[number, GROUP] = group
    rows[number, TOPIC] = topic
    rows[number, PARTITION] = partition
    rows[number, NEXT] = -1
    slots[slot] = key_hash & UPPER | np.uint64(number + 1)
