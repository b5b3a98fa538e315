"""Classic group values cut into their front and the bytes of each member.

A group says the same of most of its members in every generation. Who reads many of its records wants to know a member by its bytes, and
decode it once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from exhume.codecs.layout import BYTES, INT32, STRING
from exhume.codecs.layouts.classic_group import GROUP_METADATA_VALUE, MEMBER
from exhume.codecs.wire import Reader, decode_utf8
from exhume.errors import DecodeError, Underflow, UnexpectedNull

#: Bytes of the length in front of a field.
_LENGTH_BYTES = {STRING.name: 2, BYTES.name: 4}
_INT32_BYTES = 4


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
    fields = _fields(version)
    for _ in range(count):
        start = position
        for _, length_bytes, _ in fields:
            if length_bytes:
                length = int.from_bytes(value[position : position + length_bytes], "big", signed=True)
                position += length_bytes + (max(0, length))
            else:
                position += _INT32_BYTES
        if position > len(value):
            return None
        members.append(value[start:position])
    return CutGroup(version, front, tuple(members)) if position == len(value) else None


def decode_member(version: int, member: bytes) -> dict[str, Any]:
    """The fields of one member of a group value of this version, as the layout has them.

    Raises:
        DecodeError: the bytes are no such member.
    """
    fields: dict[str, Any] = {}
    position = 0
    for name, length_bytes, is_nullable in _fields(version):
        if not length_bytes:
            fields[name] = int.from_bytes(member[position : position + _INT32_BYTES], "big", signed=True)
            position += _INT32_BYTES
            continue
        length = int.from_bytes(member[position : position + length_bytes], "big", signed=True)
        position += length_bytes
        if length < 0 and not is_nullable:
            raise UnexpectedNull(f"{name} is null where null is not allowed", byte_position=position)
        raw = member[position : position + max(length, 0)]
        fields[name] = None if length < 0 else decode_utf8(raw) if length_bytes == _LENGTH_BYTES[STRING.name] else raw
        position += len(raw)
    if position != len(member):
        raise Underflow("the member does not end with its last field", byte_position=position)
    return fields


@cache
def _fields(version: int) -> tuple[tuple[str, int, bool], ...]:
    """Of each field of a member its name, how many bytes its length has, 0 for an int32, and whether it may be null."""
    found = []
    for field in MEMBER.fields:
        if field.is_in(version):
            assert field.type in (STRING, BYTES, INT32)
            found.append((field.name, _LENGTH_BYTES.get(getattr(field.type, "name", ""), 0), field.nullable))
    return tuple(found)
