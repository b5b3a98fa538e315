"""Classic group values cut into their front and the bytes of each member.

A group says the same of most of its members in every generation. Who reads many of its records wants to know a member by its bytes, and
decode it once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from exhume.codecs.layout import BYTES, INT32, STRING, Message
from exhume.codecs.layouts.classic_group import GROUP_METADATA_VALUE, MEMBER
from exhume.codecs.wire import Reader
from exhume.errors import DecodeError

_MEMBER = Message("GroupMetadataValue.MemberMetadata", GROUP_METADATA_VALUE.versions, MEMBER)
#: Bytes of the length in front of a field, or of the field itself.
_LENGTH_BYTES = {STRING.name: 2, BYTES.name: 4}


@dataclass(frozen=True, slots=True)
class CutGroup:
    """A group metadata value: the fields in front of `members`, and the bytes of each member."""

    value_version: int
    front: dict[str, Any]
    members: tuple[bytes, ...]


def cut_group(value: bytes) -> CutGroup | None:
    """A group metadata value in pieces; None for one that is to be decoded whole: flexible, of no known version, or not to be read."""
    reader = Reader(value)
    try:
        version = reader.int16()
        if version not in GROUP_METADATA_VALUE.versions or GROUP_METADATA_VALUE.is_flexible(version):
            return None
        front = GROUP_METADATA_VALUE.read_front(reader, version, "members")
        count = reader.int32()
    except DecodeError:
        return None
    position, members = reader.position, []
    steps = _steps(version)
    for _ in range(count):
        start = position
        for length_bytes, fixed_bytes in steps:
            if length_bytes:
                length = int.from_bytes(value[position : position + length_bytes], "big", signed=True)
                position += max(length, 0)
            position += length_bytes + fixed_bytes
        if position > len(value):
            return None
        members.append(value[start:position])
    return CutGroup(version, front, tuple(members)) if position == len(value) else None


def decode_member(version: int, member: bytes) -> dict[str, Any]:
    """The fields of one member of a group value of this version.

    Raises:
        DecodeError: the bytes are no such member.
    """
    return _MEMBER.read(Reader(member), version)


@cache
def _steps(version: int) -> tuple[tuple[int, int], ...]:
    """For each field of a member: how many bytes its length has, and how many the field itself where it has none."""
    steps = []
    for field in MEMBER.fields:
        if field.is_in(version):
            scalar = field.type
            assert scalar in (STRING, BYTES, INT32)
            length_bytes = _LENGTH_BYTES.get(getattr(scalar, "name", ""), 0)
            steps.append((length_bytes, 0 if length_bytes else 4))
    return tuple(steps)
