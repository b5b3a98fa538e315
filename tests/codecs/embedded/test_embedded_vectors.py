"""Payloads made by Kafka's own classes and by real clients: what they say, that they are written again byte for byte, and every cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from exhume.codecs.embedded import (
    Payload,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_connect_assignment,
    encode_connect_config_state,
    encode_cooperative_sticky_user_data,
    encode_schema_registry,
    encode_sticky_user_data,
    encode_streams_assignment_info,
    encode_streams_subscription_info,
    encode_subscription,
)
from exhume.codecs.embedded.streams import read_streams_assignment_info, read_streams_subscription_info

Decode = Callable[[str | None, str | None, bytes], Payload]


@dataclass(frozen=True)
class Sample:
    """Bytes with their origin, and what they say. `inner` is the value of the payload inside, if there is one."""

    origin: str
    decode: Decode
    protocol_type: str
    protocol: str
    data: bytes
    version: int
    value: dict[str, Any]
    inner: dict[str, Any] | None = None

    def read(self, data: bytes | None = None) -> Payload:
        return self.decode(self.protocol_type, self.protocol, self.data if data is None else data)


def _streams_subscription_info(_type: str | None, _protocol: str | None, data: bytes) -> Payload:
    return read_streams_subscription_info(data)


def _streams_assignment_info(_type: str | None, _protocol: str | None, data: bytes) -> Payload:
    return read_streams_assignment_info(data)


OWNED = [{"topic": "t", "partitions": [0, 1]}]
GENERATION_5 = bytes.fromhex("00000005")
CONNECTOR_C = [{"connector": "c", "tasks": [-1, 0]}]
STREAMS_PROCESS = "00000000-0000-0001-0000-000000000002"

KAFKA_CLASSES = [
    Sample(
        "subscription v0, user data null",
        decode_subscription,
        "consumer",
        "range",
        bytes.fromhex("000000000001000174ffffffff"),
        0,
        {"topics": ["t"], "user_data": None},
    ),
    Sample(
        "subscription v0, user data empty",
        decode_subscription,
        "consumer",
        "range",
        bytes.fromhex("00000000000100017400000000"),
        0,
        {"topics": ["t"], "user_data": b""},
    ),
    Sample(
        "subscription v1",
        decode_subscription,
        "consumer",
        "cooperative-sticky",
        bytes.fromhex("000100000002000174000175000000040000000500000001000174000000020000000000000001"),
        1,
        {"topics": ["t", "u"], "user_data": GENERATION_5, "owned_partitions": OWNED},
        {"generation": 5},
    ),
    Sample(
        "subscription v2",
        decode_subscription,
        "consumer",
        "cooperative-sticky",
        bytes.fromhex("00020000000200017400017500000004000000050000000100017400000002000000000000000100000005"),
        2,
        {"topics": ["t", "u"], "user_data": GENERATION_5, "owned_partitions": OWNED, "generation": 5},
        {"generation": 5},
    ),
    Sample(
        "subscription v3",
        decode_subscription,
        "consumer",
        "cooperative-sticky",
        bytes.fromhex("0003000000020001740001750000000400000005000000010001740000000200000000000000010000000500027231"),
        3,
        {"topics": ["t", "u"], "user_data": GENERATION_5, "owned_partitions": OWNED, "generation": 5, "rack_id": "r1"},
        {"generation": 5},
    ),
    Sample(
        "subscription v3, nothing owned",
        decode_subscription,
        "consumer",
        "range",
        bytes.fromhex("000300000001000174ffffffff00000000ffffffffffff"),
        3,
        {"topics": ["t"], "user_data": None, "owned_partitions": [], "generation": -1, "rack_id": None},
    ),
    Sample(
        "assignment v3",
        decode_assignment,
        "consumer",
        "range",
        bytes.fromhex("000300000001000174000000020000000000000001ffffffff"),
        3,
        {"assigned_partitions": OWNED, "user_data": None},
    ),
    Sample(
        "assignment v0, empty",
        decode_assignment,
        "consumer",
        "range",
        bytes.fromhex("000000000000ffffffff"),
        0,
        {"assigned_partitions": [], "user_data": None},
    ),
    Sample(
        "Connect config state v0",
        decode_subscription,
        "connect",
        "default",
        bytes.fromhex("0000000e687474703a2f2f773a383038332f0000000000000007"),
        0,
        {"url": "http://w:8083/", "config_offset": 7},
    ),
    Sample(
        "Connect config state v1",
        decode_subscription,
        "connect",
        "compatible",
        bytes.fromhex("0001000e687474703a2f2f773a383038332f0000000000000007ffffffff"),
        1,
        {"url": "http://w:8083/", "config_offset": 7, "allocation": None},
    ),
    Sample(
        "Connect assignment v0",
        decode_assignment,
        "connect",
        "default",
        bytes.fromhex("0000000000014c000e687474703a2f2f773a383038332f00000000000000070000000100016300000002ffffffff00000000"),
        0,
        {"error": 0, "leader": "L", "leader_url": "http://w:8083/", "config_offset": 7, "assigned": CONNECTOR_C},
    ),
    Sample(
        "Connect assignment v2",
        decode_assignment,
        "connect",
        "sessioned",
        bytes.fromhex(
            "0002000000014c000e687474703a2f2f773a383038332f00000000000000070000000100016300000002ffffffff00000000"
            "0000000100016400000001000000010000012c"
        ),
        2,
        {
            "error": 0,
            "leader": "L",
            "leader_url": "http://w:8083/",
            "config_offset": 7,
            "assigned": CONNECTOR_C,
            "revoked": [{"connector": "d", "tasks": [1]}],
            "delay_ms": 300,
        },
    ),
    Sample(
        "SubscriptionInfo v11",
        _streams_subscription_info,
        "",
        "",
        bytes.fromhex(
            "0000000b0000000b0000000000000001000000000000000200000003683a31000000010000000000000001fffffffffffffffeffff"
            "03000000000000000100000002617a0000000131"
        ),
        11,
        {
            "latest_supported_version": 11,
            "process_id": STREAMS_PROCESS,
            "user_endpoint": "h:1",
            "task_offset_sums": [{"subtopology": 0, "partition": 1, "offset_sum": -2, "named_topology": None}],
            "unique_field": 3,
            "error_code": 0,
            "client_tags": [{"key": "az", "value": "1"}],
        },
    ),
    Sample(
        "SubscriptionInfo v7",
        _streams_subscription_info,
        "",
        "",
        bytes.fromhex("000000070000000b0000000000000001000000000000000200000003683a3100000001000000000000000100000001fffffffffffffffe"),
        7,
        {
            "latest_supported_version": 11,
            "process_id": STREAMS_PROCESS,
            "user_endpoint": "h:1",
            "task_offset_sums": [{"subtopology": 0, "partition_to_offset_sum": [{"partition": 1, "offset_sum": -2}]}],
        },
    ),
    Sample(
        "AssignmentInfo v11",
        _streams_assignment_info,
        "",
        "",
        bytes.fromhex(
            "0000000b0000000b00000001000000000000000100000000000000000000000100000000000174000000010001680000000100000001"
            "000000000000000100000000000000007fffffffffffffff"
        ),
        11,
        {
            "commonly_supported_version": 11,
            "active_tasks": [{"subtopology": 0, "partition": 1, "named_topology": None}],
            "standby_tasks": [],
            "topics": [{"topic_index": 0, "topic": "t"}],
            "partitions_by_host": [{"host": "h", "port": 1, "partitions": [{"topic_index": 0, "partition": 1}]}],
            "standby_partitions_by_host": [],
            "error_code": 0,
            "next_rebalance_ms": 2**63 - 1,
        },
    ),
]

REPARTITION = "orders-aggregator-by-first-repartition"

REAL_CLIENTS = [
    Sample(
        "Java 0.9.0.1, range",
        decode_subscription,
        "consumer",
        "range",
        bytes.fromhex("0000000000010006636c69636b7300000000"),
        0,
        {"topics": ["clicks"], "user_data": b""},
    ),
    Sample(
        "Java 0.11.0.3, sticky: user data without a generation",
        decode_subscription,
        "consumer",
        "sticky",
        bytes.fromhex(
            "00000000000300087061796d656e74730006636c69636b7300066f72646572730000001c0000000100066f72646572730000000300000000"
            "0000000100000002"
        ),
        0,
        {
            "topics": ["payments", "clicks", "orders"],
            "user_data": bytes.fromhex("0000000100066f726465727300000003000000000000000100000002"),
        },
        {"previous_assignment": [{"topic": "orders", "partitions": [0, 1, 2]}]},
    ),
    Sample(
        "Java 2.4.1, sticky",
        decode_subscription,
        "consumer",
        "sticky",
        bytes.fromhex(
            "00010000000300087061796d656e74730006636c69636b7300066f72646572730000002c000000020006636c69636b730000000100000000"
            "00066f72646572730000000200000001000000020000000300000000"
        ),
        1,
        {
            "topics": ["payments", "clicks", "orders"],
            "user_data": bytes.fromhex("000000020006636c69636b73000000010000000000066f726465727300000002000000010000000200000003"),
            "owned_partitions": [],
        },
        {
            "previous_assignment": [{"topic": "clicks", "partitions": [0]}, {"topic": "orders", "partitions": [1, 2]}],
            "generation": 3,
        },
    ),
    Sample(
        "Java 2.4.1, cooperative-sticky: owned partitions in no order",
        decode_subscription,
        "consumer",
        "cooperative-sticky",
        bytes.fromhex(
            "0001000000030006636c69636b7300066f72646572730010696e76656e746f72792e6576656e7473ffffffff000000030006636c69636b73"
            "0000000300000002000000010000000000066f7264657273000000030000000000000001000000020010696e76656e746f72792e6576656e"
            "74730000000100000001"
        ),
        1,
        {
            "topics": ["clicks", "orders", "inventory.events"],
            "user_data": None,
            "owned_partitions": [
                {"topic": "clicks", "partitions": [2, 1, 0]},
                {"topic": "orders", "partitions": [0, 1, 2]},
                {"topic": "inventory.events", "partitions": [1]},
            ],
        },
    ),
    Sample(
        "Java 4.3.0, cooperative-sticky",
        decode_subscription,
        "consumer",
        "cooperative-sticky",
        bytes.fromhex(
            "0003000000020006696d61676573000575736572730000000400000004000000010006696d61676573000000040000000000000001000000"
            "020000000300000004ffff"
        ),
        3,
        {
            "topics": ["images", "users"],
            "user_data": bytes.fromhex("00000004"),
            "owned_partitions": [{"topic": "images", "partitions": [0, 1, 2, 3]}],
            "generation": 4,
            "rack_id": None,
        },
        {"generation": 4},
    ),
    Sample(
        "librdkafka 2.16.0, cooperative-sticky: a sticky struct",
        decode_subscription,
        "consumer",
        "cooperative-sticky",
        bytes.fromhex(
            "00030000000200066f726465727300087061796d656e7473000000200000000100066f726465727300000003000000020000000100000000"
            "000000030000000100066f726465727300000003000000000000000100000002000000030000"
        ),
        3,
        {
            "topics": ["orders", "payments"],
            "user_data": bytes.fromhex("0000000100066f72646572730000000300000002000000010000000000000003"),
            "owned_partitions": [{"topic": "orders", "partitions": [0, 1, 2]}],
            "generation": 3,
            "rack_id": "",
        },
        {"previous_assignment": [{"topic": "orders", "partitions": [2, 1, 0]}], "generation": 3},
    ),
    Sample(
        "librdkafka 2.16.0, cooperative-sticky: the user data comes back in the assignment",
        decode_assignment,
        "consumer",
        "cooperative-sticky",
        bytes.fromhex("00000000000100066f726465727300000003000000020000000100000000000000080000000000000002"),
        0,
        {
            "assigned_partitions": [{"topic": "orders", "partitions": [2, 1, 0]}],
            "user_data": bytes.fromhex("0000000000000002"),
        },
        {"previous_assignment": [], "generation": 2},
    ),
    Sample(
        "Kafka Streams 4.0.0, subscription",
        decode_subscription,
        "consumer",
        "stream",
        bytes.fromhex(
            "00030000000200066f726465727300266f72646572732d61676772656761746f722d62792d66697273742d7265706172746974696f6e0000"
            "006e0000000b0000000b84eaa611e44f4350b87eb39ab63100a3000000136170702d312e696e7465726e616c3a3730303000000002000000"
            "01000000000000000000000002ffff00000001000000010000000000000000ffff030000000000000001000000047a6f6e65000000027a31"
            "0000000000000003ffff"
        ),
        3,
        {
            "topics": ["orders", REPARTITION],
            "user_data": bytes.fromhex(
                "0000000b0000000b84eaa611e44f4350b87eb39ab63100a3000000136170702d312e696e7465726e616c3a373030300000000200000001"
                "000000000000000000000002ffff00000001000000010000000000000000ffff030000000000000001000000047a6f6e65000000027a31"
            ),
            "owned_partitions": [],
            "generation": 3,
            "rack_id": None,
        },
        {
            "latest_supported_version": 11,
            "process_id": "84eaa611-e44f-4350-b87e-b39ab63100a3",
            "user_endpoint": "app-1.internal:7000",
            "task_offset_sums": [
                {"subtopology": 1, "partition": 0, "offset_sum": 2, "named_topology": None},
                {"subtopology": 1, "partition": 1, "offset_sum": 0, "named_topology": None},
            ],
            "unique_field": 3,
            "error_code": 0,
            "client_tags": [{"key": "zone", "value": "z1"}],
        },
    ),
    Sample(
        "Kafka Streams 4.3.0, assignment",
        decode_assignment,
        "consumer",
        "stream",
        bytes.fromhex(
            "00030000000200066f726465727300000002000000010000000200266f72646572732d61676772656761746f722d62792d66697273742d72"
            "65706172746974696f6e0000000100000001000000e40000000b0000000b0000000300000000000000010000000000000000000000020000"
            "000000000001000000010000000000000000000000020000000000266f72646572732d61676772656761746f722d62792d66697273742d72"
            "65706172746974696f6e0000000100066f726465727300000001000e6170702d302e696e7465726e616c00001b5800000006000000000000"
            "0001000000000000000000000001000000000000000100000001000000010000000200000000000000020000000"
            "1000e6170702d302e696e7465726e616c00001b5800000000000000007fffffffffffffff"
        ),
        3,
        {
            "assigned_partitions": [{"topic": "orders", "partitions": [1, 2]}, {"topic": REPARTITION, "partitions": [1]}],
            "user_data": bytes.fromhex(
                "0000000b0000000b0000000300000000000000010000000000000000000000020000000000000001000000010000000000000000000000"
                "020000000000266f72646572732d61676772656761746f722d62792d66697273742d7265706172746974696f6e0000000100066f726465"
                "727300000001000e6170702d302e696e7465726e616c00001b58000000060000000000000001000000000000000000000001000000000000"
                "0001000000010000000100000002000000000000000200000001000e6170702d302e696e7465726e616c00001b58000000000000000"
                "07fffffffffffffff"
            ),
        },
        {
            "commonly_supported_version": 11,
            "active_tasks": [
                {"subtopology": 0, "partition": 1, "named_topology": None},
                {"subtopology": 0, "partition": 2, "named_topology": None},
                {"subtopology": 1, "partition": 1, "named_topology": None},
            ],
            "standby_tasks": [],
            "topics": [{"topic_index": 0, "topic": REPARTITION}, {"topic_index": 1, "topic": "orders"}],
            "partitions_by_host": [
                {
                    "host": "app-0.internal",
                    "port": 7000,
                    "partitions": [
                        {"topic_index": 0, "partition": 1},
                        {"topic_index": 0, "partition": 0},
                        {"topic_index": 1, "partition": 0},
                        {"topic_index": 1, "partition": 1},
                        {"topic_index": 1, "partition": 2},
                        {"topic_index": 0, "partition": 2},
                    ],
                }
            ],
            "standby_partitions_by_host": [{"host": "app-0.internal", "port": 7000, "partitions": []}],
            "error_code": 0,
            "next_rebalance_ms": 2**63 - 1,
        },
    ),
    Sample(
        "Connect 0.9.0.1, worker",
        decode_subscription,
        "connect",
        "default",
        bytes.fromhex("0000000f687474703a2f2f77313a383038332f0000000000000004"),
        0,
        {"url": "http://w1:8083/", "config_offset": 4},
    ),
    Sample(
        "Connect 4.3.0, worker with an allocation",
        decode_subscription,
        "connect",
        "sessioned",
        bytes.fromhex(
            "0002001f687474703a2f2f636f6e6e6563742d322e696e7465726e616c3a383038332f000000000000000e0000006800020000002d776f72"
            "6b65722d312d63643262376666622d316534392d343032312d386139362d353862326461346534306363001f687474703a2f2f636f6e6e65"
            "63742d312e696e7465726e616c3a383038332f000000000000000e000000000000000000000000"
        ),
        2,
        {
            "url": "http://connect-2.internal:8083/",
            "config_offset": 14,
            "allocation": bytes.fromhex(
                "00020000002d776f726b65722d312d63643262376666622d316534392d343032312d386139362d353862326461346534306363001f687474"
                "703a2f2f636f6e6e6563742d312e696e7465726e616c3a383038332f000000000000000e000000000000000000000000"
            ),
        },
        {
            "error": 0,
            "leader": "worker-1-cd2b7ffb-1e49-4021-8a96-58b2da4e40cc",
            "leader_url": "http://connect-1.internal:8083/",
            "config_offset": 14,
            "assigned": [],
            "revoked": [],
            "delay_ms": 0,
        },
    ),
    Sample(
        "Connect 4.3.0, assignment under a delay",
        decode_assignment,
        "connect",
        "sessioned",
        bytes.fromhex(
            "00020000002d776f726b65722d312d63643262376666622d316534392d343032312d386139362d353862326461346534306363001f687474"
            "703a2f2f636f6e6e6563742d312e696e7465726e616c3a383038332f0000000000000010000000000000000000001770"
        ),
        2,
        {
            "error": 0,
            "leader": "worker-1-cd2b7ffb-1e49-4021-8a96-58b2da4e40cc",
            "leader_url": "http://connect-1.internal:8083/",
            "config_offset": 16,
            "assigned": [],
            "revoked": [],
            "delay_ms": 6000,
        },
    ),
    Sample(
        "Schema Registry identity",
        decode_subscription,
        "sr",
        "v0",
        b'{"version":1,"host":"registry-1","port":8081,"master_eligibility":true,"scheme":"http"}',
        1,
        {"version": 1, "host": "registry-1", "port": 8081, "master_eligibility": True, "scheme": "http"},
    ),
    Sample(
        "Schema Registry assignment",
        decode_assignment,
        "sr",
        "v0",
        b'{"version":1,"error":0,"master":"odd-type-2239d8c3-4770-4940-bc02-5058a8abb6e1"}',
        1,
        {"version": 1, "error": 0, "master": "odd-type-2239d8c3-4770-4940-bc02-5058a8abb6e1"},
    ),
]

SAMPLES = KAFKA_CLASSES + REAL_CLIENTS
every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=[sample.origin for sample in SAMPLES])


def encode(payload: Payload) -> bytes:
    """The bytes that kind, version and value describe."""
    value, version = payload.value, payload.version
    match payload.kind:
        case "cooperative_sticky_user_data":
            return encode_cooperative_sticky_user_data(value)
        case "schema_registry":
            return encode_schema_registry(value)
    assert version is not None
    versioned = {
        "consumer_subscription": encode_subscription,
        "consumer_assignment": encode_assignment,
        "sticky_user_data": encode_sticky_user_data,
        "streams_subscription_info": encode_streams_subscription_info,
        "streams_assignment_info": encode_streams_assignment_info,
        "connect_config_state": encode_connect_config_state,
        "connect_assignment": encode_connect_assignment,
    }
    return versioned[payload.kind](version, value)


@every_sample
def test_decodes_to_what_its_writer_meant(sample: Sample) -> None:
    payload = sample.read()
    assert (payload.version, payload.value) == (sample.version, sample.value)


@every_sample
def test_the_payload_inside_is_decoded_by_the_name_of_the_protocol(sample: Sample) -> None:
    inner = sample.read().user_data
    assert (inner.value if inner else None) == sample.inner


@every_sample
def test_nothing_about_a_real_payload_is_odd(sample: Sample) -> None:
    payload = sample.read()
    assert payload.marks == []
    assert payload.reason is None
    assert payload.user_data is None or payload.user_data.marks == []


@every_sample
def test_is_written_again_byte_for_byte(sample: Sample) -> None:
    payload = sample.read()
    assert encode(payload) == sample.data == payload.raw
    if payload.user_data is not None:
        assert encode(payload.user_data) == payload.user_data.raw


recognised = [sample for sample in SAMPLES if sample.protocol_type]


@pytest.mark.parametrize("sample", recognised, ids=[sample.origin for sample in recognised])
def test_no_cut_raises_and_none_passes_unmarked(sample: Sample) -> None:
    for size in range(1, len(sample.data)):
        payload = sample.read(sample.data[:size])
        assert payload.raw == sample.data[:size]
        assert payload.marks, f"cut to {size} bytes"


@pytest.mark.parametrize("sample", recognised, ids=[sample.origin for sample in recognised])
def test_a_byte_behind_the_end_changes_no_value_but_is_marked(sample: Sample) -> None:
    payload = sample.read(sample.data + b"\x00")
    if sample.protocol_type == "sr":
        assert payload.kind == "undecoded"
    else:
        assert (payload.value, payload.marks) == (sample.value, ["trailing_bytes"])


consumers = [sample for sample in SAMPLES if sample.protocol_type == "consumer" and sample.inner is not None]


@pytest.mark.parametrize("sample", consumers, ids=[sample.origin for sample in consumers])
def test_no_cut_of_user_data_raises_or_touches_the_payload_around_it(sample: Sample) -> None:
    whole = sample.value["user_data"]
    for size in range(1, len(whole)):
        value = sample.value | {"user_data": whole[:size]}
        payload = sample.read(encode(Payload(sample.read().kind, b"", sample.version, value)))
        assert (payload.value, payload.marks) == (value, [])
        assert payload.user_data is not None
        assert payload.user_data.raw == whole[:size]
