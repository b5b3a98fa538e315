"""The order in which Java's hash tables return their keys.

Assignors iterate over HashMaps and HashSets. Where loads tie, this order decides which member gets a partition. It follows from the hash
codes of the keys, from the capacity of the table, and, inside a bucket, from the order of insertion. Java turns buckets of eight or more
keys into trees; this module does not.

Source: HashMap, String.hashCode and String.compareTo of the Java platform; TopicPartition and Uuid, Kafka 0.10 to 4.4.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

_SMALLEST_CAPACITY = 16


@lru_cache(maxsize=65_536)
def sort_key(text: str) -> bytes:
    """Return the sort key that orders texts as String.compareTo: by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


@lru_cache(maxsize=65_536)
def string_hash(text: str) -> int:
    """Return String.hashCode, as a signed 32-bit number."""
    utf_16 = sort_key(text)
    value = 0
    for unit in struct.unpack(f">{len(utf_16) // 2}H", utf_16):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_hash(partition: tuple[str, int]) -> int:
    """Return TopicPartition.hashCode."""
    topic, number = partition
    return 31 * (31 + number) + string_hash(topic)


@lru_cache(maxsize=65_536)
def uuid_hash(raw: bytes) -> int:
    """Return Uuid.hashCode of these 16 bytes."""
    both = int.from_bytes(raw[:8], "big") ^ int.from_bytes(raw[8:], "big")
    return (both >> 32) ^ (both & 0xFFFFFFFF)


def number_hash(number: int) -> int:
    """Return Integer.hashCode."""
    return number


def grown_capacity(count: int, start: int = _SMALLEST_CAPACITY) -> int:
    """Return the capacity of a table that began with `start` and has held `count` keys."""
    capacity = start
    while 4 * count > 3 * capacity:
        capacity *= 2
    return capacity


def computed_capacity(count: int, start: int = _SMALLEST_CAPACITY) -> int:
    """Return the capacity of a table filled by computeIfAbsent, which grows before it adds a key.

    computeIfAbsent also inserts a key before the others of its bucket: pass keys in reverse to get its order.
    """
    return grown_capacity(max(count - 1, 0), start)


def called_capacity(calls: Sequence[Hashable], start: int = _SMALLEST_CAPACITY) -> int:
    """Return the capacity of a table after these calls of computeIfAbsent, one key each.

    A call for a key that is there grows a full table as well: so the last new key counts if a call comes after it.
    """
    keys = dict.fromkeys(calls)
    is_new = bool(keys) and next(reversed(keys)) == calls[-1] and calls.count(calls[-1]) == 1
    return grown_capacity(len(keys) - is_new, start)


def capacity_for(wanted: int) -> int:
    """Return the capacity of a table made with an initial capacity: the next power of two."""
    capacity = 1
    while capacity < wanted:
        capacity *= 2
    return capacity


def copied_set_capacity(count: int) -> int:
    """Return the capacity of a HashSet made from a collection."""
    return grown_capacity(count, capacity_for(max(int(count / 0.75) + 1, _SMALLEST_CAPACITY)))


def hash_order(keys: Iterable[Key], hash_of: Callable[[Key], int], capacity: int | None = None) -> list[Key]:
    """Return these keys in the order of a table. Pass them in insertion order; default: a table that began small and grew."""
    listed: Sequence[Key] = list(dict.fromkeys(keys))
    mask = (grown_capacity(len(listed)) if capacity is None else capacity) - 1

    def bucket(key: Key) -> int:
        value = hash_of(key) & 0xFFFFFFFF
        return (value ^ (value >> 16)) & mask

    return sorted(listed, key=bucket)
