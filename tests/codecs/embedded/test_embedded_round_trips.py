"""What is encoded is decoded again, for every kind and version."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.embedded import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_connect_assignment,
    encode_connect_config_state,
    encode_schema_registry,
    encode_sticky_user_data,
    encode_subscription,
)
from exhume.codecs.embedded.user_data import read_sticky_user_data

names = st.text(max_size=12)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
urls = st.from_regex(r"https?://[a-z0-9.-]{1,12}:[0-9]{1,5}/", fullmatch=True)
user_data = st.none() | st.binary(max_size=12)
topic_partitions = st.lists(st.fixed_dictionaries({"topic": names, "partitions": st.lists(int32, max_size=4)}), max_size=4)
connectors = st.lists(st.fixed_dictionaries({"connector": names, "tasks": st.lists(int32, max_size=4)}), max_size=3)

SUBSCRIPTION_FIELDS = {
    "topics": st.lists(names, max_size=4),
    "user_data": user_data,
    "owned_partitions": topic_partitions,
    "generation": int32,
    "rack_id": st.none() | names,
}
FIELDS_PER_VERSION = [2, 3, 4, 5]


@st.composite
def subscriptions(draw: st.DrawFn) -> tuple[int, dict[str, Any]]:
    version = draw(st.integers(0, 3))
    fields = list(SUBSCRIPTION_FIELDS.items())[: FIELDS_PER_VERSION[version]]
    return version, draw(st.fixed_dictionaries(dict(fields)))


@given(subscriptions())
def test_consumer_subscriptions(subscription: tuple[int, dict[str, Any]]) -> None:
    payload = decode_subscription("consumer", "range", encode_subscription(*subscription))
    assert (payload.version, payload.value, payload.marks) == (*subscription, [])


@given(st.integers(0, 3), st.fixed_dictionaries({"assigned_partitions": topic_partitions, "user_data": user_data}))
def test_consumer_assignments(version: int, value: dict[str, Any]) -> None:
    payload = decode_assignment("consumer", "range", encode_assignment(version, value))
    assert (payload.version, payload.value, payload.marks) == (version, value, [])


@given(st.fixed_dictionaries({"previous_assignment": topic_partitions, "generation": int32}))
def test_sticky_user_data_with_a_generation(value: dict[str, Any]) -> None:
    payload = read_sticky_user_data(encode_sticky_user_data(1, value))
    assert (payload.version, payload.value, payload.marks) == (1, value, [])


@given(st.fixed_dictionaries({"previous_assignment": topic_partitions}))
def test_sticky_user_data_without_a_generation(value: dict[str, Any]) -> None:
    payload = read_sticky_user_data(encode_sticky_user_data(0, value))
    assert (payload.version, payload.value, payload.marks) == (0, value, [])


@given(st.integers(1, 2), st.fixed_dictionaries({"url": urls, "config_offset": int64, "allocation": st.none() | st.binary(max_size=20)}))
def test_connect_config_states(version: int, value: dict[str, Any]) -> None:
    payload = decode_subscription("connect", "compatible", encode_connect_config_state(version, value))
    assert (payload.version, payload.value, payload.marks) == (version, value, [])


@given(
    st.integers(1, 2),
    st.fixed_dictionaries(
        {
            "error": st.integers(0, 1),
            "leader": names,
            "leader_url": urls,
            "config_offset": int64,
            "assigned": st.none() | connectors,
            "revoked": st.none() | connectors,
            "delay_ms": int32,
        }
    ),
)
def test_connect_assignments(version: int, value: dict[str, Any]) -> None:
    payload = decode_assignment("connect", "compatible", encode_connect_assignment(version, value))
    assert (payload.version, payload.value, payload.marks) == (version, value, [])


@given(st.dictionaries(names, st.none() | st.booleans() | int64 | names), st.booleans())
def test_schema_registry_objects(value: dict[str, Any], spaced: bool) -> None:
    payload = decode_subscription("sr", "v0", encode_schema_registry(value, spaced=spaced))
    assert (payload.kind, payload.value, payload.marks) == ("schema_registry", value, [])
