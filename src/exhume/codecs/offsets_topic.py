"""Compute the offsets partition of a group: its id decides it."""

from __future__ import annotations

#: The default of `offsets.topic.num.partitions`.
DEFAULT_PARTITION_COUNT = 50


def offsets_partition_of(group: str, partition_count: int = DEFAULT_PARTITION_COUNT) -> int:
    """The offsets partition in which a coordinator searches this group: the hash of its id, modulo the count."""
    return hash_of_group(group) % partition_count


def hash_of_group(group: str) -> int:
    """Java's String.hashCode of this group id without its sign, as Kafka's Utils.abs makes it: 0 to 2³¹ - 1."""
    units = group.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    # Java cannot negate its smallest number, and Kafka uses 0 for it.
    return 0 if signed == -(1 << 31) else abs(signed)
