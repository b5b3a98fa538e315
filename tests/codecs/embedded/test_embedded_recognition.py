"""Which payload bytes are taken for: by protocol type first, by their form only where that fails, never with an exception."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.embedded import (
    MARKS,
    decode_assignment,
    decode_subscription,
    encode_connect_assignment,
    encode_connect_config_state,
    encode_subscription,
)

SUBSCRIPTION = encode_subscription(0, {"topics": ["orders"]})
CONFIG_STATE = encode_connect_config_state(1, {"url": "http://w:8083/", "config_offset": 3})

PROTOCOL_TYPES = ["consumer", "connect", "sr", "datalink", "", None]
PROTOCOLS = ["range", "sticky", "cooperative-sticky", "stream", "rack-affinity", "faust", "sessioned", None]


def test_an_unknown_protocol_type_is_guessed_by_form_and_says_so() -> None:
    for protocol_type in (None, "", "datalink"):
        for data, kind in ((SUBSCRIPTION, "consumer_subscription"), (CONFIG_STATE, "connect_config_state"), (b'{"a": 1}', "json")):
            payload = decode_subscription(protocol_type, None, data)
            assert (payload.kind, payload.marks) == (kind, ["guessed"])


def test_the_protocol_type_wins_over_the_form() -> None:
    assert decode_subscription("sr", "v0", b'{"version":1}').kind == "schema_registry"
    assert decode_subscription(None, "v0", b'{"version":1}').kind == "json"


def test_what_the_protocol_type_promises_but_the_bytes_are_not_is_guessed() -> None:
    payload = decode_subscription("sr", "v0", SUBSCRIPTION)
    assert (payload.kind, payload.value["topics"], payload.marks) == ("consumer_subscription", ["orders"], ["guessed"])


def test_a_guess_refuses_a_version_above_20() -> None:
    assert decode_subscription(None, None, b"\x00\x15" + SUBSCRIPTION[2:]).kind == "undecoded"


def test_a_guess_refuses_strings_that_are_no_utf8() -> None:
    assert decode_subscription(None, None, SUBSCRIPTION.replace(b"orders", b"order\xff")).kind == "undecoded"


def test_a_guess_refuses_null_arrays() -> None:
    assert decode_assignment(None, None, bytes.fromhex("0000 00000001 000174 ffffffff ffffffff")).kind == "undecoded"


def test_a_guess_is_content_with_the_leading_fields_of_a_consumer_payload() -> None:
    payload = decode_subscription(None, None, encode_subscription(1, {"topics": ["t"]}, body_version=0) + b"\x00\x01")
    assert (payload.kind, payload.marks) == ("consumer_subscription", ["prefix_only", "guessed"])


def test_a_config_state_without_a_url_is_no_connect_payload() -> None:
    assert decode_subscription("connect", "default", encode_connect_config_state(0, {"url": "w:8083"})).kind == "undecoded"


def test_a_connect_version_above_2_is_read_where_the_type_says_connect_and_not_guessed() -> None:
    data = b"\x00\x03" + CONFIG_STATE[2:]
    assert decode_subscription("connect", "sessioned", data).marks == ["newer_version"]
    assert decode_subscription(None, None, data).kind == "undecoded"


def test_a_connect_assignment_that_misses_its_newer_fields_takes_their_defaults() -> None:
    data = encode_connect_assignment(1, {"leader": "w", "leader_url": "http://w:8083/", "config_offset": 1, "delay_ms": 9})
    payload = decode_assignment("connect", "compatible", data[:-12])
    assert (payload.value["assigned"], payload.value["revoked"], payload.value["delay_ms"]) == (None, None, 0)
    assert payload.marks == ["truncated"]


def test_an_allocation_that_cannot_be_read_leaves_the_config_state_whole() -> None:
    data = encode_connect_config_state(1, {"url": "http://w:8083/", "config_offset": 3, "allocation": b"?"})
    payload = decode_subscription("connect", "compatible", data)
    assert (payload.value["config_offset"], payload.marks) == (3, [])
    assert payload.user_data is not None
    assert payload.user_data.kind == "undecoded"


def test_undecoded_bytes_come_back_whole_with_size_digest_and_reason() -> None:
    payload = decode_subscription("datalink", "x", b"state")
    assert (payload.kind, payload.marks, payload.raw) == ("undecoded", ["undecoded"], b"state")
    assert payload.value == {"size_bytes": 5, "sha256": hashlib.sha256(b"state").hexdigest()}
    assert payload.reason is not None
    assert "datalink" in payload.reason


def test_no_bytes_are_odd_in_a_consumer_subscription_only() -> None:
    assert decode_subscription("consumer", "range", b"").marks == ["empty_subscription"]
    for payload in (
        decode_subscription("connect", "x", b""),
        decode_subscription("", None, b""),
        decode_assignment("consumer", "range", b""),
    ):
        assert (payload.kind, payload.marks) == ("empty", [])


def test_half_a_version_is_an_assignment_of_nothing() -> None:
    payload = decode_assignment("consumer", "range", b"\x00")
    assert (payload.kind, payload.marks) == ("empty", ["truncated"])


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": "\\ud800"}',
        b'{"a": "\xff"}',
        b'{"a":' * 50_000,
        b'{"a": ' + b"9" * 5_000 + b"}",
        b"[1]",
        b"{",
    ],
    ids=["not a number", "infinite", "lone surrogate", "no utf-8", "too deep", "too long a number", "no object", "cut"],
)
def test_json_that_could_not_be_written_again_is_undecoded(text: bytes) -> None:
    assert decode_subscription("sr", "v0", text).kind == "undecoded"


def test_unknown_keys_of_a_registry_are_kept() -> None:
    payload = decode_subscription("sr", "v0", b'{"version":2,"karapace_version":"3.1"}')
    assert (payload.version, payload.value) == (2, {"version": 2, "karapace_version": "3.1"})


@given(st.sampled_from(PROTOCOL_TYPES), st.sampled_from(PROTOCOLS), st.binary(max_size=80), st.booleans())
def test_any_bytes_are_decoded_or_marked_and_never_raise(
    protocol_type: str | None, protocol: str | None, data: bytes, versioned: bool
) -> None:
    data = b"\x00\x01\x00\x00\x00\x01" + data if versioned else data
    for decode in (decode_subscription, decode_assignment):
        payload = decode(protocol_type, protocol, data)
        assert payload.raw == data
        assert set(payload.marks) <= set(MARKS)
        assert (payload.kind == "undecoded") == ("undecoded" in payload.marks)
