"""Key and payload of one dumped record: JSON from 3.8 on, before that texts of three shapes.

    releases   offset commit                                    group metadata
    0.9-0.11   offset::G:T:P / O[:M]                            metadata::G / type:protocol:generation:{members}
    1.0-2.3    the same                                         {"metadata":"G"} / {"protocolType":…,"assignment":"{members}"}
    2.4-3.7    offset_commit::group=G,partition=T-P /           group_metadata::group=G / the same
               offset=O[,metadata=M]

`members` is `{A=[t-0, t-1][:USER DATA],B=[]}` for protocol type consumer, else `{A=ASSIGNMENT}`. Names stand in the text as they are,
whatever they contain: the size of the key on disk tells where it ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class OffsetCommitKey:
    """`offset::G:T:P`, from 2.4 `offset_commit::group=G,partition=T-P`."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class GroupMetadataKey:
    """`metadata::G`, from 1.0 `{"metadata":"G"}`, from 2.4 `group_metadata::group=G`."""

    group: str


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """`unknown::version=N`: a record type that 3.4 to 3.7 do not decode."""

    record_type: int


@dataclass(frozen=True, slots=True)
class OffsetCommitPayload:
    """`O[:M]`, from 2.4 `offset=O[,metadata=M]`. An empty metadata is not printed."""

    committed_offset: int
    metadata: str


@dataclass(frozen=True, slots=True)
class MemberText:
    """What the text says of one member: for protocol type consumer its partitions and user data, else its assignment.

    Bytes are printed as one number, in upper-case hexadecimal: leading zero bits are lost. Empty and null bytes are not printed.
    """

    partitions: tuple[str, ...] | None
    hexadecimal: str


@dataclass(frozen=True, slots=True)
class GroupMetadataPayload:
    """`type:protocol:generation:{members}`, from 1.0 the same as JSON. A null protocol is None in both."""

    protocol_type: str
    protocol: str | None
    generation: int
    members: Mapping[str, MemberText]


TextKey = OffsetCommitKey | GroupMetadataKey | UnknownKey
TextPayload = OffsetCommitPayload | GroupMetadataPayload


def read_key_and_payload(text: str, key_size: int) -> dict[str, Any]:
    """What ` key: K payload: P` says, as the last fields of `DumpedRecord`."""
    if control := re.fullmatch(r" endTxnMarker: (\w+) coordinatorEpoch: (-?\d+)", text):
        return {"control": control[1], "coordinator_epoch": int(control[2])}
    if control := re.fullmatch(r" controlType: (\w+)\(-?\d+\)", text):
        return {"control": control[1]}
    if not text:
        # Tombstones before 2.4.
        return {}
    if not text.startswith(" key: "):
        raise ValueError(f"neither a key nor a control text: {text!r}")
    text = text.removeprefix(" key: ")
    if text.startswith(("Error at offset ", "Unknown record type ")):
        return {"refusal": text}
    key, rest = _json_key(text) if text.startswith("{") else _text_key(text, key_size)
    if not rest:
        return {"key": key}
    if not rest.startswith(" payload: "):
        raise ValueError(f"no payload behind the key: {rest!r}")
    return {"key": key, "payload": _payload(key, rest.removeprefix(" payload: "))}


def _payload(key: TextKey | dict[str, Any], text: str) -> TextPayload | dict[str, Any] | None:
    if text == "<DELETE>":
        return None
    if isinstance(key, OffsetCommitKey):
        match = re.fullmatch(r"(?s)(?:offset=)?(-?\d+)(?:(?::|,metadata=)(.*))?", text)
        if match is None:
            raise ValueError(f"no offset commit: {text!r}")
        return OffsetCommitPayload(int(match[1]), match[2] or "")
    if isinstance(key, GroupMetadataKey):
        return _group_payload(text)
    value: dict[str, Any] = json.loads(text)
    return value


def _json_key(text: str) -> tuple[TextKey | dict[str, Any], str]:
    value, end = json.JSONDecoder().raw_decode(text)
    return (GroupMetadataKey(value["metadata"]) if "metadata" in value else value), text[end:]


def _text_key(text: str, key_size: int) -> tuple[TextKey, str]:
    if match := re.match(r"unknown::version=(-?\d+)", text):
        return UnknownKey(int(match[1])), text[match.end() :]
    raw = text.encode("utf-8")
    for prefix in (b"metadata::", b"group_metadata::group="):
        if raw.startswith(prefix):
            # On disk: record type and length, two bytes each, and the group id.
            end = len(prefix) + key_size - 4
            return GroupMetadataKey(raw[len(prefix) : end].decode()), raw[end:].decode()
    for prefix, middle, last in ((b"offset::", b":", b":"), (b"offset_commit::group=", b",partition=", b"-")):
        if raw.startswith(prefix):
            # On disk: record type and two lengths, two bytes each, group id, topic, and a partition of four bytes.
            names_end = len(prefix) + key_size - 10 + len(middle)
            number = re.compile(last + rb"(-?\d+)").match(raw, names_end)
            if number is None:
                break
            group, _, topic = raw[len(prefix) : names_end].decode().rpartition(middle.decode())
            return OffsetCommitKey(group, topic, int(number[1])), raw[number.end() :].decode()
    raise ValueError(f"no key that any release prints: {text!r}")


#: `member=[t-0, t-1]` with the user data behind it, or `member=ASSIGNMENT`; topic names hold neither commas nor brackets.
_MEMBER = re.compile(r"(?s)(.*?)=(?:\[([\w., -]*)\](?::([0-9A-F]+))?|([0-9A-F]*))(?:,|\Z)")


def _group_payload(text: str) -> GroupMetadataPayload:
    if text.startswith('{"protocolType"'):
        value = json.loads(text)
        protocol_type, protocol, generation, members = (value[name] for name in ("protocolType", "protocol", "generationId", "assignment"))
    else:
        head, _, members = text.partition(":{")
        members = "{" + members
        protocol_type, protocol, generation = head.rsplit(":", 2)
        protocol = None if protocol == "null" else protocol
    return GroupMetadataPayload(protocol_type, protocol, int(generation), dict(_members(members[1:-1])))


def _members(text: str) -> Iterator[tuple[str, MemberText]]:
    position = 0
    while position < len(text):
        match = _MEMBER.match(text, position)
        if match is None:
            raise ValueError(f"no member: {text[position:]!r}")
        partitions = None if match[2] is None else tuple(filter(None, match[2].split(", ")))
        yield match[1], MemberText(partitions, match[3] or match[4] or "")
        position = match.end()
