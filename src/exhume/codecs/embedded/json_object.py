"""Payloads that are one JSON object in UTF-8.

Schema Registry (protocol type `sr`) writes, compact and with null fields left out:

    subscription   version, host, port, master_eligibility, scheme, newer: leader; Karapace adds karapace_version
    assignment     version, error (0 none, 1 two members with one URL), master (member id), master_identity (as a subscription)

Unknown keys are kept. The elected master is not the leader of the group.

Source: Schema Registry's SchemaRegistryIdentity and SchemaRegistryProtocol; Karapace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from exhume.codecs.embedded.payload import Kind, Payload
from exhume.errors import DecodeError, EncodeError


def read_schema_registry(data: bytes) -> Payload:
    """A Schema Registry payload; `value` is the object as written. Raises DecodeError if the bytes are no JSON object."""
    return read_json_object("schema_registry", data)


def encode_schema_registry(value: Mapping[str, Any], *, spaced: bool = False) -> bytes:
    """This object as JSON, keys in the order given; compact as the Java registry writes it, or with a space after each separator."""
    return write_json_object(value, spaced=spaced)


def read_json_object(kind: Kind, data: bytes) -> Payload:
    """The payload for one JSON object; `version` is its key of that name if that is an integer.

    Raises:
        DecodeError: no JSON object, or one that could not be written again (infinite numbers, lone surrogates).
    """
    if data[:1] != b"{":
        raise DecodeError("not a JSON object: the first byte is not an opening brace", byte_position=0)
    try:
        value = json.loads(data.decode("utf-8"))
        # Python reads NaN, 1e999 and lone surrogates, which cannot be written again as JSON in UTF-8.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"not valid JSON: {error}") from error
    version = value.get("version")
    return Payload(kind, data, version if type(version) is int else None, value)


def write_json_object(value: Mapping[str, Any], *, spaced: bool = False) -> bytes:
    """This object as UTF-8 JSON. Raises EncodeError if JSON cannot represent it."""
    separators = (", ", ": ") if spaced else (",", ":")
    try:
        return json.dumps(dict(value), ensure_ascii=False, allow_nan=False, separators=separators).encode("utf-8")
    except (TypeError, ValueError) as error:
        raise EncodeError(f"JSON cannot represent this value: {error}") from error
