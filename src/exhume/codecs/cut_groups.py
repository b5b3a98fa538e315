"""Classic group values cut into their front and the bytes of each member.

A group says the same of most of its members in every generation. Who reads many of its records wants to know a member by its bytes, and
decode it once.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from exhume.codecs.layouts.classic_group import GROUP_METADATA_VALUE
from exhume.codecs.wire import Reader, decode_utf8
from exhume.errors import DecodeError, Underflow, UnexpectedNull

#: Written out field by field for speed; the layout of record type 2 says what they are, and the tests compare.
_NAMES = ("member_id", "client_id", "client_host")
_NAMES_SINCE_3 = ("member_id", "group_instance_id", "client_id", "client_host")
_TIMEOUTS = ("rebalance_timeout_ms", "session_timeout_ms")
_INSTANCE_IDS_SINCE, _REBALANCE_TIMEOUTS_SINCE, _TIMEOUT_BYTES = 3, 1, 4
#: Whether each text of a member may be null.
_TEXTS, _TEXTS_SINCE_3 = (False, False, False), (False, True, False, False)
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class CutGroup:
    """A group metadata value: the fields in front of `members`, and the bytes of each member by id; of two with one id the second."""

    value_version: int
    front: dict[str, Any]
    members: dict[str, bytes]


def cut_group(value: bytes) -> CutGroup | None:
    """A group metadata value in pieces; None for one that is to be decoded whole: flexible, of no known version, or not to be read."""
    reader = Reader(value)
    try:
        version = reader.int16()
        if version not in GROUP_METADATA_VALUE.versions or GROUP_METADATA_VALUE.is_flexible(version):
            return None
        front = GROUP_METADATA_VALUE.read_front(reader, version, "members")
        count = reader.int32()
        position, members = reader.position, {}
        for _ in range(count):
            end = _end_of_member(value, position, version)
            id_start = position + 2
            members[decode_utf8(value[id_start : id_start + _INT16.unpack_from(value, position)[0]])] = value[position:end]
            position = end
    except (DecodeError, struct.error):
        return None
    return CutGroup(version, front, members) if position == len(value) else None


def _end_of_member(data: bytes, position: int, version: int) -> int:
    """Where the member ends that begins at this position.

    Raises:
        DecodeError, struct.error: no member fits there.
    """
    for is_nullable in _TEXTS_SINCE_3 if version >= _INSTANCE_IDS_SINCE else _TEXTS:
        size = _INT16.unpack_from(data, position)[0]
        if size < 0:
            if not is_nullable:
                raise UnexpectedNull("a text of a member is null", byte_position=position)
            size = 0
        position += 2 + size
    position += _TIMEOUT_BYTES * (1 if version < _REBALANCE_TIMEOUTS_SINCE else 2)
    for _ in ("subscription", "assignment"):
        size = _INT32.unpack_from(data, position)[0]
        if size < 0:
            raise UnexpectedNull("bytes of a member are null", byte_position=position)
        position += 4 + size
    if position > len(data):
        raise Underflow("the value ends inside a member", byte_position=position)
    return position


def decode_member(version: int, member: bytes) -> dict[str, Any]:
    """The fields of one member that `cut_group` cut from a group value of this version."""
    fields: dict[str, Any] = {}
    position = 0
    for name in _NAMES_SINCE_3 if version >= _INSTANCE_IDS_SINCE else _NAMES:
        size = _INT16.unpack_from(member, position)[0]
        position += 2
        fields[name] = None if size < 0 else decode_utf8(member[position : position + size])
        position += max(size, 0)
    for name in _TIMEOUTS[version < _REBALANCE_TIMEOUTS_SINCE :]:
        fields[name] = _INT32.unpack_from(member, position)[0]
        position += _TIMEOUT_BYTES
    for name in ("subscription", "assignment"):
        size = _INT32.unpack_from(member, position)[0]
        position += 4
        fields[name] = member[position : position + size]
        position += size
    return fields
