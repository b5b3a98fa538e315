"""Keys of committed offsets by what they name, for kernels: each is the numbers of a group and of a topic, and a partition.

The index is one as that of `names`. Eight partitions of a topic that follow one another lie side by side in it, in one line of the
cache: whoever commits one of them mostly commits the next one, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exhume.codecs.kernels import inlined
from exhume.codecs.kernels.instructions import fetch
from exhume.codecs.kernels.primitives import BACK, HALF, MIX, TURN
from exhume.codecs.kernels.types import Int32Rows, Number, Words
from exhume.replay.survivors.names import FREE, LOWER, ONE, UPPER

#: A row of a key: what it names, and the key whose commit came behind its own the last time, -1 for none. The next one is mostly that
#: again, and found without the index.
GROUP, TOPIC, PARTITION, NEXT = range(4)
NAMED_COLUMNS, COLUMNS = 3, 4


_LINE_BITS = 3
#: Partitions of a line.
IN_LINE = 1 << _LINE_BITS
_PLACE_IN_LINE = np.uint64(IN_LINE - 1)


class Keys(NamedTuple):
    """Keys that have a number, the place of their row. `slots` finds it."""

    slots: Words
    rows: Int32Rows


@inlined
def hash_of_key(group: Number, topic: Number, partition: Number, seed: Number) -> np.uint64:
    """A hash of a key, with a seed for the reason that `primitives.hash_of` has one."""
    value = (np.uint64(seed) ^ np.uint64(group << 32 | topic)) * MIX
    value = ((value << TURN | value >> BACK) ^ np.uint64(partition >> _LINE_BITS)) * MIX
    value = (value ^ value >> HALF) * MIX
    value ^= value >> HALF
    # The upper half says where it belongs. All lines begin at another partition: a topic may have no more than one.
    return value & ~(_PLACE_IN_LINE << HALF) | ((value ^ np.uint64(partition)) & _PLACE_IN_LINE) << HALF


@inlined
def is_key(rows: Int32Rows, number: Number, group: Number, topic: Number, partition: Number) -> Number:
    """True where the key of this number is this one."""
    return rows[number, GROUP] == group and rows[number, TOPIC] == topic and rows[number, PARTITION] == partition


@inlined
def find_key(keys: Keys, group: Number, topic: Number, partition: Number, key_hash: np.uint64) -> tuple[Number, np.uint64]:
    """The number of this key, and its slot; -1 where it is new, and the slot that is free for it."""
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
    """Have the processor fetch the place where `find_key` begins to look."""
    fetch(keys.slots, np.int64(key_hash >> HALF & np.uint64(len(keys.slots) - 1)))


@inlined
def add_key(keys: Keys, number: Number, slot: np.uint64, group: Number, topic: Number, partition: Number, key_hash: np.uint64) -> None:
    """Keep a new key as this number, in the slot that `find_key` gave for it. There must be room."""
    slots, rows = keys.slots, keys.rows
    rows[number, GROUP] = group
    rows[number, TOPIC] = topic
    rows[number, PARTITION] = partition
    rows[number, NEXT] = -1
    slots[slot] = key_hash & UPPER | np.uint64(number + 1)
