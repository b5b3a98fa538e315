"""A decoder as one writes it in an afternoon: aiokafka's record reader, `struct` for keys and values, a dict of what was last."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_OFFSET_AND_EPOCH = struct.Struct(">qi")
_TIMESTAMP = struct.Struct(">q")


class Decoded(NamedTuple):
    """All records met, commits and groups decoded; the last committed offset by group, topic, partition; members by group."""

    records: int
    offsets: dict[tuple[str, str, int], int]
    groups: dict[str, int]


def decode_partition(partition: Path) -> Decoded:
    """Decode every offset commit (version 3) and group record (versions 0 to 3) of this directory, uncompressed and not transactional."""
    from aiokafka.record import MemoryRecords

    records = 0
    offsets: dict[tuple[str, str, int], int] = {}
    groups: dict[str, int] = {}
    for segment in sorted(partition.glob("*.log")):
        memory = MemoryRecords(segment.read_bytes())
        while memory.has_next():
            batch: Any = memory.next_batch()
            if not batch.validate_crc():
                raise ValueError(f"{segment}: a damaged batch")
            for record in batch:
                records += 1
                kind = _INT16.unpack_from(record.key)[0]
                if kind == 1:
                    key = _commit_key(record.key)
                    if record.value is None:
                        offsets.pop(key, None)
                    else:
                        offsets[key] = _commit_value(record.value)[0]
                elif kind == 2:
                    group = _string(record.key, 2)[0]
                    if record.value is None:
                        groups.pop(group, None)
                    else:
                        groups[group] = sum(1 for _ in _members(record.value))
    return Decoded(records, offsets, groups)


def _string(data: bytes, position: int) -> tuple[str, int]:
    """The string at this position ("" for null), and the position behind it."""
    start = position + 2
    end = start + max(_INT16.unpack_from(data, position)[0], 0)
    return data[start:end].decode(), end


def _blob(data: bytes, position: int) -> tuple[bytes, int]:
    start = position + 4
    end = start + max(_INT32.unpack_from(data, position)[0], 0)
    return data[start:end], end


def _commit_key(key: bytes) -> tuple[str, str, int]:
    group, position = _string(key, 2)
    topic, position = _string(key, position)
    return group, topic, _INT32.unpack_from(key, position)[0]


def _commit_value(value: bytes) -> tuple[int, int, str, int]:
    """Committed offset, leader epoch, metadata, timestamp."""
    committed_offset, leader_epoch = _OFFSET_AND_EPOCH.unpack_from(value, 2)
    metadata, position = _string(value, 14)
    return committed_offset, leader_epoch, metadata, _TIMESTAMP.unpack_from(value, position)[0]


def _members(value: bytes) -> Iterator[tuple[str, str, str, bytes, bytes]]:
    version = _INT16.unpack_from(value)[0]
    _, position = _string(value, 2)
    _, position = _string(value, position + 4)
    _, position = _string(value, position)
    position += 8 * (version >= 2)
    count = _INT32.unpack_from(value, position)[0]
    position += 4
    for _ in range(count):
        member_id, position = _string(value, position)
        if version >= 3:
            _, position = _string(value, position)
        client_id, position = _string(value, position)
        client_host, position = _string(value, position)
        position += 4 + 4 * (version >= 1)
        subscription, position = _blob(value, position)
        assignment, position = _blob(value, position)
        yield member_id, client_id, client_host, subscription, assignment
