"""The fields before the members in classic group records that a fold took; read for every group, so in a faster way than by layouts.

Source: as `layouts.classic_group`.
"""

from __future__ import annotations

from exhume.codecs.layout import Fields
from exhume.codecs.layouts.classic_group import GROUP_FLEXIBLE_SINCE, STATE_TIMESTAMP_SINCE
from exhume.codecs.wire import Reader
from exhume.replay.classic_group import GroupOutline

_LEAST_NULL = 0x8000


def read_outline(value: bytes) -> GroupOutline:
    """Return the outline of a value that passed `is_plain_group`: each length in it is right, each text exact."""
    version = value[1]
    is_compact = version >= GROUP_FLEXIBLE_SINCE
    protocol_type, at = _text(value, 2, is_compact=is_compact)
    generation = int.from_bytes(value[at : at + 4], "big", signed=True)
    protocol, at = _text(value, at + 4, is_compact=is_compact)
    leader, at = _text(value, at, is_compact=is_compact)
    front: Fields = {"protocol_type": protocol_type, "generation": generation, "protocol": protocol, "leader": leader}
    if version >= STATE_TIMESTAMP_SINCE:
        front["current_state_timestamp_ms"] = int.from_bytes(value[at : at + 8], "big", signed=True)
        at += 8
    members = Reader(value, at).unsigned_varint() - 1 if is_compact else int.from_bytes(value[at : at + 4], "big")
    return GroupOutline(version, front, members, value)


def _text(value: bytes, at: int, *, is_compact: bool) -> tuple[str | None, int]:
    """Return the text at this place, and the place after it."""
    if is_compact:
        reader = Reader(value, at)
        size, at = reader.unsigned_varint() - 1, reader.position
        is_null = size < 0
    else:
        size = value[at] << 8 | value[at + 1]
        at += 2
        is_null = size >= _LEAST_NULL
    return (None, at) if is_null else (value[at : at + size].decode(), at + size)
