"""SubscriptionInfo and AssignmentInfo of every version."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.embedded.streams import (
    ASSIGNMENT_INFO,
    SUBSCRIPTION_INFO,
    decode_java_utf,
    encode_java_utf,
    encode_streams_assignment_info,
    encode_streams_subscription_info,
    read_streams_assignment_info,
    read_streams_subscription_info,
)
from exhume.codecs.layout import Array, Message, Scalar, Struct
from exhume.codecs.wire import InvalidUtf8
from exhume.errors import DecodeError, EncodeError, UnknownVersion

PROCESS = "00000000-0000-0001-0000-000000000002"
PROCESS_HEX = "00000000000000010000000000000002"
ALL_VERSIONS = range(1, 12)

SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "int8": st.integers(-128, 127),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uuid": st.uuids().map(str),
    "utf": st.text(max_size=6),
    "string": st.none() | st.text(max_size=6),
    "utf16": st.none() | st.text(min_size=1, max_size=6),
}


def values(part: Struct | Array | Scalar, version: int, name: str = "") -> st.SearchStrategy[Any]:
    if isinstance(part, Array):
        return st.lists(values(part.element, version), max_size=3)
    if isinstance(part, Struct):
        return st.fixed_dictionaries({f.name: values(f.type, version, f.name) for f in part.fields if f.is_in(version)})
    if part.name == "bytes":
        return st.none() | st.text(min_size=1, max_size=6) if name == "user_endpoint" else st.text(max_size=6)
    return SCALARS[part.name]


@st.composite
def versioned(draw: st.DrawFn, message: Message) -> tuple[int, dict[str, Any]]:
    version = draw(st.sampled_from(list(message.versions)))
    return version, draw(values(message.struct, version))


@given(versioned(SUBSCRIPTION_INFO))
def test_every_subscription_info_is_read_as_written(info: tuple[int, dict[str, Any]]) -> None:
    payload = read_streams_subscription_info(encode_streams_subscription_info(*info))
    assert (payload.version, payload.value, payload.marks) == (*info, [])


@given(versioned(ASSIGNMENT_INFO))
def test_every_assignment_info_is_read_as_written(info: tuple[int, dict[str, Any]]) -> None:
    payload = read_streams_assignment_info(encode_streams_assignment_info(*info))
    assert (payload.version, payload.value, payload.marks) == (*info, [])


TASK_0_1 = {"subtopology": 0, "partition": 1}


@pytest.mark.parametrize(
    ("data", "version", "value"),
    [
        pytest.param(
            f"00000001 {PROCESS_HEX} 00000001 00000000 00000001 00000000",
            1,
            {"process_id": PROCESS, "previous_tasks": [TASK_0_1], "standby_tasks": []},
            id="version 1 has tasks only",
        ),
        pytest.param(
            f"00000002 {PROCESS_HEX} 00000000 00000001 00000000 00000001 00000003 683a31",
            2,
            {"process_id": PROCESS, "previous_tasks": [], "standby_tasks": [TASK_0_1], "user_endpoint": "h:1"},
            id="version 2 adds the endpoint",
        ),
        pytest.param(
            f"00000003 0000000b {PROCESS_HEX} 00000000 00000000 00000000",
            3,
            {
                "latest_supported_version": 11,
                "process_id": PROCESS,
                "previous_tasks": [],
                "standby_tasks": [],
                "user_endpoint": None,
            },
            id="version 3 adds the latest supported version",
        ),
        pytest.param(
            f"00000009 0000000b {PROCESS_HEX} 00000000 00000001 00000000 00000001 00000001 fffffffffffffffd 05 00000004",
            9,
            {
                "latest_supported_version": 11,
                "process_id": PROCESS,
                "user_endpoint": None,
                "task_offset_sums": [{"subtopology": 0, "partition_to_offset_sum": [{"partition": 1, "offset_sum": -3}]}],
                "unique_field": 5,
                "error_code": 4,
            },
            id="version 9 adds the error code",
        ),
        pytest.param(
            f"0000000a 0000000b {PROCESS_HEX} 00000000 00000001 00000000 00000001 0000000000000007 0001 61 05 00000000",
            10,
            {
                "latest_supported_version": 11,
                "process_id": PROCESS,
                "user_endpoint": None,
                "task_offset_sums": [{**TASK_0_1, "offset_sum": 7, "named_topology": "a"}],
                "unique_field": 5,
                "error_code": 0,
            },
            id="version 10 flattens the offset sums",
        ),
    ],
)
def test_subscription_info_grows_by_version(data: str, version: int, value: dict[str, Any]) -> None:
    payload = read_streams_subscription_info(bytes.fromhex(data))
    assert (payload.version, payload.value, payload.marks) == (version, value, [])


@pytest.mark.parametrize(
    ("data", "version", "value"),
    [
        pytest.param(
            "00000001 00000001 00000000 00000001 00000001 00000000 00000001 00000001 0001 74 00000001",
            1,
            {"active_tasks": [TASK_0_1], "standby_tasks": [{**TASK_0_1, "partitions": [{"topic": "t", "partition": 1}]}]},
            id="version 1 has tasks only",
        ),
        pytest.param(
            "00000004 0000000b 00000000 00000000 00000001 0001 68 00000001 00000001 0001 74 00000001 00000002",
            4,
            {
                "commonly_supported_version": 11,
                "active_tasks": [],
                "standby_tasks": [],
                "partitions_by_host": [{"host": "h", "port": 1, "partitions": [{"topic": "t", "partition": 1}]}],
                "error_code": 2,
            },
            id="version 4 names the topics of hosts and adds the error code",
        ),
        pytest.param(
            "00000005 0000000b 00000000 00000000 00000001 00000009 0001 74 00000001 0001 68 00000001 00000001 00000009 00000001 00000000",
            5,
            {
                "commonly_supported_version": 11,
                "active_tasks": [],
                "standby_tasks": [],
                "topics": [{"topic_index": 9, "topic": "t"}],
                "partitions_by_host": [{"host": "h", "port": 1, "partitions": [{"topic_index": 9, "partition": 1}]}],
                "error_code": 0,
            },
            id="version 5 numbers the topics of hosts",
        ),
        pytest.param(
            "0000000a 0000000b 00000001 00000000 00000001 00000002 00610062 00000000 00000000 00000000 00000000 00000000 0000000000000000",
            10,
            {
                "commonly_supported_version": 11,
                "active_tasks": [{**TASK_0_1, "named_topology": "ab"}],
                "standby_tasks": [],
                "topics": [],
                "partitions_by_host": [],
                "standby_partitions_by_host": [],
                "error_code": 0,
                "next_rebalance_ms": 0,
            },
            id="version 10 adds named topologies to tasks",
        ),
    ],
)
def test_assignment_info_grows_by_version(data: str, version: int, value: dict[str, Any]) -> None:
    payload = read_streams_assignment_info(bytes.fromhex(data))
    assert (payload.version, payload.value, payload.marks) == (version, value, [])


def test_of_a_newer_version_only_the_supported_version_is_read() -> None:
    data = bytes.fromhex("0000000c 0000000c 01")
    subscription, assignment = read_streams_subscription_info(data), read_streams_assignment_info(data)
    assert (subscription.version, subscription.value, subscription.marks) == (12, {"latest_supported_version": 12}, ["newer_version"])
    assert (assignment.version, assignment.value, assignment.marks) == (12, {"commonly_supported_version": 12}, ["newer_version"])


def test_version_0_is_refused() -> None:
    for read in (read_streams_subscription_info, read_streams_assignment_info):
        with pytest.raises(UnknownVersion):
            read(bytes(40))


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_every_cut_of_the_empty_info_is_a_decode_error(version: int) -> None:
    for encode, read in (
        (encode_streams_subscription_info, read_streams_subscription_info),
        (encode_streams_assignment_info, read_streams_assignment_info),
    ):
        data = encode(version, {})
        for size in range(len(data)):
            with pytest.raises(DecodeError):
                read(data[:size])


def test_a_named_topology_of_negative_size_is_refused() -> None:
    with pytest.raises(DecodeError):
        read_streams_assignment_info(bytes.fromhex("0000000a 0000000b 00000001 00000000 00000001 ffffffff") + bytes(40))


def test_java_writes_nul_in_two_bytes_and_high_characters_as_surrogates() -> None:
    assert encode_java_utf("a\x00\U0001f600") == bytes.fromhex("61 c080 eda0bdedb880")
    assert decode_java_utf(bytes.fromhex("61 c080 eda0bdedb880")) == "a\x00\U0001f600"


@given(st.binary(max_size=12))
def test_bytes_that_java_would_not_write_are_kept(raw: bytes) -> None:
    assert encode_java_utf(decode_java_utf(raw)) == raw


def test_four_byte_utf8_is_not_what_java_writes() -> None:
    assert isinstance(decode_java_utf("\U0001f600".encode()), InvalidUtf8)


def test_a_process_id_that_is_no_uuid_cannot_be_written() -> None:
    with pytest.raises(EncodeError):
        encode_streams_subscription_info(11, {"process_id": "me"})
