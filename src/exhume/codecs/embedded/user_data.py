"""The user data of client-side assignors in `consumer` subscriptions and assignments, except Kafka Streams.

    sticky               previous_assignment [topic string, partitions [int32]], since version 1 also generation int32.
                         No version is written: the layout that fits decides.
    cooperative-sticky   generation int32, nothing else, from Java; a sticky struct of version 1 from librdkafka and franz-go
    rack-affinity        the name of a rack in UTF-8 (kafka-go)
    faust                one JSON object; in assignments compressed by zlib

Source: StickyAssignor and CooperativeStickyAssignor, Kafka 0.11 to 4.3; librdkafka, kafka-go, faust.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from exhume.codecs.embedded.json_object import read_json_object, write_json_object
from exhume.codecs.embedded.payload import Payload, mark_invalid_utf8
from exhume.codecs.layout import INT32, STRING, Array, Field, Message, Struct
from exhume.codecs.wire import decode_utf8, encode_utf8
from exhume.errors import DecodeError

STICKY_USER_DATA = Message(
    "StickyAssignorUserData",
    range(2),
    Struct(
        (
            Field(
                "previous_assignment",
                Array(Struct((Field("topic", STRING, "topic"), Field("partitions", Array(INT32), "partitions")))),
                "previous_assignment",
            ),
            Field("generation", INT32, "generation", since=1, default=-1),
        )
    ),
)
COOPERATIVE_STICKY_USER_DATA = Message(
    "CooperativeStickyAssignorUserData", range(1), Struct((Field("generation", INT32, "generation", default=-1),))
)

_MAX_UNFOLDED_BYTES = 16 * 1024 * 1024


def read_sticky_user_data(data: bytes) -> Payload:
    """The user data of `sticky`: previous_assignment, and generation if version 1 fits; raises DecodeError if neither version fits."""
    try:
        return _read_sticky(data, 1)
    except DecodeError:
        return _read_sticky(data, 0)


def _read_sticky(data: bytes, version: int) -> Payload:
    value, size_bytes = STICKY_USER_DATA.decode(data, version)
    payload = Payload("sticky_user_data", data, version, value)
    if size_bytes < len(data):
        payload.mark("trailing_bytes")
    mark_invalid_utf8(payload)
    return payload


def read_cooperative_sticky_user_data(data: bytes) -> Payload:
    """The user data of `cooperative-sticky`: generation (-1 before the first assignment), or a sticky struct of version 1."""
    if len(data) != 4:
        return _read_sticky(data, 1)
    value, _ = COOPERATIVE_STICKY_USER_DATA.decode(data, 0)
    return Payload("cooperative_sticky_user_data", data, None, value)


def read_rack(data: bytes) -> Payload:
    """The user data of `rack-affinity`: rack_id."""
    payload = Payload("rack", data, None, {"rack_id": decode_utf8(data)})
    mark_invalid_utf8(payload)
    return payload


def read_faust_user_data(data: bytes) -> Payload:
    """The user data of `faust`: the JSON object as written, unfolded if zlib compressed it; raises DecodeError otherwise."""
    if data[:1] == b"{":
        return read_json_object("faust_user_data", data)
    unfolding = zlib.decompressobj()
    try:
        plain = unfolding.decompress(data, _MAX_UNFOLDED_BYTES)
    except zlib.error as error:
        raise DecodeError(f"neither JSON nor a zlib stream: {error}") from error
    if not unfolding.eof:
        raise DecodeError(f"a zlib stream that is cut, or unfolds to more than {_MAX_UNFOLDED_BYTES} bytes")
    payload = read_json_object("faust_user_data", plain)
    payload.raw = data
    if unfolding.unused_data:
        payload.mark("trailing_bytes")
    return payload


def encode_sticky_user_data(version: int, value: Mapping[str, Any]) -> bytes:
    """The user data of `sticky`, version 0 or 1; librdkafka and franz-go write version 1 for `cooperative-sticky` too."""
    return STICKY_USER_DATA.encode(version, value)


def encode_cooperative_sticky_user_data(value: Mapping[str, Any]) -> bytes:
    """The user data of Java's `cooperative-sticky`: the generation."""
    return COOPERATIVE_STICKY_USER_DATA.encode(0, value)


def encode_rack(value: Mapping[str, Any]) -> bytes:
    """The user data of `rack-affinity`: rack_id as text."""
    return encode_utf8(value["rack_id"])


def encode_faust_user_data(value: Mapping[str, Any], *, compressed: bool) -> bytes:
    """The user data of `faust`: plain in subscriptions, compressed in assignments."""
    plain = write_json_object(value)
    return zlib.compress(plain) if compressed else plain
