"""The result of decoding a payload, and the reader that all versioned payloads use.

    version int16, then the fields of that version, classic forms only (no compact form, no tagged fields)

Many projects write these payloads, and they differ. Reading is lenient, and `marks` lists each deviation: a version above the newest
known one is read by the newest known layout, and fields that a version added may be missing at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from exhume.codecs.layout import Fields, Message, Struct
from exhume.codecs.wire import Reader, Writer, has_invalid_utf8
from exhume.errors import DecodeError, UnknownVersion

Kind = Literal[
    "consumer_subscription",
    "consumer_assignment",
    "sticky_user_data",
    "cooperative_sticky_user_data",
    "streams_subscription_info",
    "streams_assignment_info",
    "rack",
    "faust_user_data",
    "connect_config_state",
    "connect_assignment",
    "schema_registry",
    "json",
    "empty",
    "undecoded",
]

#: The marks of a payload that deviates from its format.
MARKS = {
    "guessed": "recognised by its form: the protocol type is unknown, or the bytes are not what it promises",
    "newer_version": "a version above the newest known one, read by the newest known layout",
    "truncated": "the bytes end between two fields; the missing ones took their defaults",
    "prefix_only": "only the leading fields could be read; `reason` says what stopped the reader",
    "trailing_bytes": "bytes after the last field of a known version",
    "null_array": "an array is null where the format wants a count; read as empty",
    "invalid_utf8": "a string that is no valid UTF-8",
    "empty_subscription": "no bytes where a consumer always writes a subscription",
    "undecoded": "nothing known fits these bytes; `reason` says why",
}


@dataclass(slots=True)
class Payload:
    """A decoded payload.

    `value` holds the fields of its version under our names; fields that the version lacks are absent. Bytes inside it stay as written. If
    they are a payload themselves, `user_data` is that payload, decoded: user data by the name of the protocol (None if the protocol
    defines none or the member wrote none), or the allocation of a Connect worker.
    `version` is the one that the bytes state (sticky user data: the one whose layout fits), None if they state none.
    An undecoded payload has `size_bytes` and `sha256` in `value`, and the reason in `reason`.
    """

    kind: Kind
    raw: bytes
    version: int | None = None
    value: Fields = field(default_factory=dict)
    user_data: Payload | None = None
    marks: list[str] = field(default_factory=list)
    reason: str | None = None

    def mark(self, name: str) -> None:
        if name not in self.marks:
            self.marks.append(name)


def undecoded(data: bytes, reason: str) -> Payload:
    """Return the payload for bytes that fit no known format."""
    from hashlib import sha256

    value = {"size_bytes": len(data), "sha256": sha256(data).hexdigest()}
    return Payload("undecoded", data, value=value, marks=["undecoded"], reason=reason)


def read_versioned(kind: Kind, message: Message, data: bytes) -> Payload:
    """Read a payload that states its version in an int16.

    Raises:
        UnknownVersion: the version is below the first one.
        DecodeError: the bytes do not fit the version, even if fields are missing at the end.
    """
    reader = Reader(data)
    version = reader.int16()
    if version < message.versions.start:
        raise UnknownVersion(f"{message.name} has no version {version}")
    payload = Payload(kind, data, version)
    known_version = min(version, message.versions.stop - 1)
    if version != known_version:
        payload.mark("newer_version")
    rest = _read_body(payload, message, reader, known_version)
    if rest and version == known_version:
        payload.mark("trailing_bytes")
    mark_invalid_utf8(payload)
    return payload


def _read_body(payload: Payload, message: Message, reader: Reader, version: int) -> int:
    """Read all fields, or fewer if the bytes end exactly between two; return the number of bytes left.

    Only fields that a later version added may be missing: some clients write a new version number over an old body.
    """
    fields = [field for field in message.struct.fields if field.is_in(version)]
    start, failure = reader.position, None
    for count in range(len(fields), 0, -1):
        reader.position = start
        try:
            value = leading_fields(message, version, count).read(reader, version)
        except DecodeError as error:
            failure = failure or error
            if fields[count - 1].since == 0:
                break
            continue
        missing = fields[count:]
        if missing and reader.remaining:
            break
        if missing:
            payload.mark("truncated")
        payload.value = value | {field.name: field.default_value(version) for field in missing}
        return reader.remaining
    assert failure is not None
    raise failure


def leading_fields(message: Message, version: int, count: int) -> Message:
    """Return the message with only its first `count` fields of this version."""
    fields = tuple(field for field in message.struct.fields if field.is_in(version))
    return Message(message.name, message.versions, Struct(fields[:count]))


def write_versioned(message: Message, version: int, value: Mapping[str, Any], body_version: int | None) -> bytes:
    """The bytes of a payload that states this version, over a body of `body_version` (default: the same)."""
    writer = Writer()
    writer.int16(version)
    message.write(writer, version if body_version is None else body_version, value)
    return writer.to_bytes()


def mark_invalid_utf8(payload: Payload) -> None:
    """Mark the payload if one of its strings is no valid UTF-8."""
    if has_invalid_utf8(payload.value):
        payload.mark("invalid_utf8")
