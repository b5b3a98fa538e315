"""Split classic group values into the fields before the members and the bytes of each member.

The bytes of most members are the same in every generation. A reader of many records recognises a member by its bytes, and decodes it once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from exhume.codecs.layout import BYTES, INT32, STRING, Fields
from exhume.codecs.layouts.classic_group import GROUP_METADATA_VALUE, MEMBER
from exhume.codecs.wire import Reader, decode_utf8
from exhume.errors import DecodeError, Underflow, UnexpectedNull

_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class SplitGroupMetadata:
    """A group metadata value: the fields before `members`, and the bytes of each member."""

    value_version: int
    front: Fields
    members: tuple[bytes, ...]


def split_group_metadata(value: bytes) -> SplitGroupMetadata | None:
    """Split a group metadata value; return None for one to decode whole: flexible, of an unknown version, or damaged."""
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
    try:
        for _ in range(count):
            start = position
            for _, unpack_length, length_bytes, _, _ in fields:
                length = unpack_length(value, position)[0] if unpack_length else 0
                position += length_bytes + length if length > 0 else length_bytes
            members.append(value[start:position])
    except struct.error:
        return None
    return SplitGroupMetadata(version, front, tuple(members)) if position == len(value) else None


def decode_member(version: int, member: bytes) -> Fields:
    """The fields of one member of a group value of this version, as the layout has them.

    Raises:
        DecodeError: the bytes are not a member of this version.
    """
    fields: Fields = {}
    position = 0
    try:
        for name, unpack_length, length_bytes, is_text, is_nullable in _fields(version):
            if unpack_length is None:
                fields[name] = _INT32.unpack_from(member, position)[0]
                position += length_bytes
                continue
            length = unpack_length(member, position)[0]
            position += length_bytes
            if length < 0:
                if not is_nullable:
                    raise UnexpectedNull(f"{name} is null where null is not allowed", byte_position=position)
                fields[name] = None
                continue
            raw = member[position : position + length]
            fields[name] = decode_utf8(raw) if is_text else raw
            position += length
    except struct.error:
        raise Underflow(f"the member ends within {name}", byte_position=position) from None
    if position != len(member):
        raise Underflow("the member does not end with its last field", byte_position=position)
    return fields


@cache
def _fields(version: int) -> tuple[tuple[str, Callable[[bytes, int], tuple[int]] | None, int, bool, bool], ...]:
    """For each field of a member: its name, the reader of its length (None for an int32 field), the bytes of that number, True for text,
    and True if it may be null.
    """
    found = []
    for field in MEMBER.fields:
        if field.is_in(version):
            assert field.type in (STRING, BYTES, INT32)
            number = _INT16 if field.type is STRING else _INT32
            found.append(
                (field.name, None if field.type is INT32 else number.unpack_from, number.size, field.type is STRING, field.nullable)
            )
    return tuple(found)
