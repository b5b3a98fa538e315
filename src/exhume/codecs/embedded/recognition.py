"""Choose the format of a payload. The protocol type decides; only if it is unknown or does not fit, the form of the bytes decides.

    consumer   a subscription or assignment; failing that, its leading fields
    connect    a config state or assignment whose URL is one
    sr         JSON
    else       JSON, then the leading fields of a consumer payload, then Connect: only if every length fits and every string is text

These functions never raise: a payload that fits no format is returned undecoded, with its bytes and the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from exhume.codecs.embedded.connect import read_connect_assignment, read_connect_config_state
from exhume.codecs.embedded.consumer import (
    CONSUMER_ASSIGNMENT,
    CONSUMER_SUBSCRIPTION,
    ConsumerPayload,
    read_consumer_payload,
    read_consumer_prefix,
)
from exhume.codecs.embedded.json_object import read_json_object, read_schema_registry
from exhume.codecs.embedded.payload import Payload, undecoded
from exhume.codecs.wire import Reader
from exhume.errors import DecodeError

# The largest values of a guess: no known writer exceeds them, and random bytes seldom stay below.
_MAX_GUESSED_CONSUMER_VERSION = 20
_MAX_GUESSED_CONNECT_VERSION = 2
_MAX_GUESSED_COUNT = 100_000


@dataclass(frozen=True, slots=True)
class _Side:
    """The readers of one of the two fields of a member."""

    consumer: ConsumerPayload
    connect: Callable[[bytes], Payload]


_SUBSCRIPTION = _Side(CONSUMER_SUBSCRIPTION, read_connect_config_state)
_ASSIGNMENT = _Side(CONSUMER_ASSIGNMENT, read_connect_assignment)


def decode_subscription(protocol_type: str | None, protocol: str | None, data: bytes) -> Payload:
    """Decode the subscription that a member sent when it joined, by its protocol type and protocol. Never raises.

    Args:
        protocol_type: the protocol type of the group, such as `consumer` or `connect`; None or "" if unknown.
        protocol: the selected one, such as `sticky`; it decides how user data is read.
        data: the subscription bytes of the member.
    """
    if not data:
        payload = Payload("empty", data)
        if protocol_type == "consumer":
            payload.mark("empty_subscription")
        return payload
    return _decode(_SUBSCRIPTION, protocol_type, protocol, data)


def decode_assignment(protocol_type: str | None, protocol: str | None, data: bytes) -> Payload:
    """Decode the assignment that the leader sent to a member; arguments as for `decode_subscription`. Never raises.

    No bytes mean that the leader left the member out: the kind is `empty`, without a mark.
    """
    if not data:
        return Payload("empty", data)
    if protocol_type == "consumer" and len(data) == 1:
        # Half a version: clients that accept it read "no partitions".
        return Payload("empty", data, marks=["truncated"])
    return _decode(_ASSIGNMENT, protocol_type, protocol, data)


def _decode(side: _Side, protocol_type: str | None, protocol: str | None, data: bytes) -> Payload:
    try:
        match protocol_type:
            case "consumer":
                return _read_consumer(side.consumer, protocol, data)
            case "connect":
                return side.connect(data)
            case "sr":
                return read_schema_registry(data)
            case _:
                reason = f"nothing is known of protocol type {protocol_type!r}, and the bytes look like no known payload"
    except DecodeError as error:
        reason = f"no {protocol_type} payload: {error}"
    return _guess(side, protocol, data) or undecoded(data, reason)


def _read_consumer(form: ConsumerPayload, protocol: str | None, data: bytes) -> Payload:
    try:
        return read_consumer_payload(form, protocol, data)
    except DecodeError as error:
        payload = read_consumer_prefix(form, protocol, data, at_least=1)
        payload.reason = payload.reason or f"only the leading fields can be read: {error}"
        return payload


def _guess(side: _Side, protocol: str | None, data: bytes) -> Payload | None:
    guesses: tuple[Callable[[], Payload], ...] = (
        lambda: read_json_object("json", data),
        lambda: _guess_consumer(side.consumer, protocol, data),
        lambda: _guess_connect(side, data),
    )
    for guess in guesses:
        try:
            payload = guess()
        except DecodeError:
            continue
        if "invalid_utf8" not in payload.marks and "null_array" not in payload.marks:
            payload.mark("guessed")
            return payload
    return None


def _guess_consumer(form: ConsumerPayload, protocol: str | None, data: bytes) -> Payload:
    reader = Reader(data)
    version, count = reader.int16(), reader.int32()
    if not (0 <= version <= _MAX_GUESSED_CONSUMER_VERSION and 0 <= count <= _MAX_GUESSED_COUNT):
        raise DecodeError("the version or the count is too large for a guess")
    try:
        return read_consumer_payload(form, protocol, data)
    except DecodeError as error:
        payload = read_consumer_prefix(form, protocol, data, at_least=2)
        payload.reason = f"only the leading fields can be read: {error}"
        return payload


def _guess_connect(side: _Side, data: bytes) -> Payload:
    if not 0 <= Reader(data).int16() <= _MAX_GUESSED_CONNECT_VERSION:
        raise DecodeError("the version is too large for a guess")
    return side.connect(data)
