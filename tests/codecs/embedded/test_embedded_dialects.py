"""Where real clients leave the published layouts, and what is kept of payloads that are newer or damaged."""

from __future__ import annotations

import zlib

from exhume.codecs.embedded import (
    assigned_partitions,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_faust_user_data,
    encode_rack,
    encode_subscription,
    subscribed_topics,
)
from exhume.codecs.wire import InvalidUtf8

KAFKA_GO = bytes.fromhex("0001 00000001 000174 ffffffff")


def test_version_1_without_owned_partitions_is_truncated_and_owns_nothing() -> None:
    payload = decode_subscription("consumer", "range", KAFKA_GO)
    assert payload.value == {"topics": ["t"], "user_data": None, "owned_partitions": []}
    assert payload.marks == ["truncated"]


def test_body_version_writes_what_kafka_go_writes() -> None:
    assert encode_subscription(1, {"topics": ["t"]}, body_version=0) == KAFKA_GO


def test_version_3_that_ends_behind_its_owned_partitions_has_no_generation_and_no_rack() -> None:
    data = encode_subscription(3, {"topics": ["t"], "owned_partitions": [{"topic": "t", "partitions": [4]}]}, body_version=1)
    payload = decode_subscription("consumer", "range", data)
    assert payload.value["owned_partitions"] == [{"topic": "t", "partitions": [4]}]
    assert (payload.value["generation"], payload.value["rack_id"]) == (-1, None)
    assert payload.marks == ["truncated"]


def test_faust_writes_version_4_over_a_body_of_version_0() -> None:
    identity = {"assignment": {"actives": {}, "standbys": {}}, "url": "http://w:6066", "changelog_distribution": {}}
    user_data = encode_faust_user_data(identity, compressed=False)
    payload = decode_subscription("consumer", "faust", encode_subscription(4, {"topics": ["t"], "user_data": user_data}, body_version=0))
    assert payload.marks == ["newer_version", "truncated"]
    assert payload.user_data is not None
    assert (payload.user_data.kind, payload.user_data.value) == ("faust_user_data", identity)


def test_faust_compresses_the_user_data_of_assignments() -> None:
    user_data = encode_faust_user_data({"url": "http://w:6066"}, compressed=True)
    payload = decode_assignment("consumer", "faust", encode_assignment(4, {"user_data": user_data}, body_version=0))
    assert payload.user_data is not None
    assert (payload.user_data.value, payload.user_data.raw) == ({"url": "http://w:6066"}, user_data)


def test_faust_user_data_that_unfolds_beyond_the_cap_stays_undecoded() -> None:
    bomb = zlib.compress(b'{"a":"' + b" " * (17 * 1024 * 1024) + b'"}')
    payload = decode_assignment("consumer", "faust", encode_assignment(0, {"user_data": bomb}))
    assert payload.user_data is not None
    assert payload.user_data.kind == "undecoded"


def test_rack_affinity_user_data_is_the_name_of_a_rack() -> None:
    data = encode_subscription(1, {"topics": ["t"], "user_data": encode_rack({"rack_id": "eu-1a"})}, body_version=0)
    payload = decode_subscription("consumer", "rack-affinity", data)
    assert payload.user_data is not None
    assert (payload.user_data.kind, payload.user_data.value) == ("rack", {"rack_id": "eu-1a"})


def test_counts_of_minus_one_read_as_empty_and_are_marked() -> None:
    data = bytes.fromhex("0001 ffffffff ffffffff 00000001 000174 ffffffff")
    payload = decode_subscription("consumer", "range", data)
    assert payload.value == {"topics": [], "user_data": None, "owned_partitions": [{"topic": "t", "partitions": []}]}
    assert payload.marks == ["null_array"]
    assert encode_subscription(1, {"topics": None, "owned_partitions": [{"topic": "t", "partitions": None}]}) == data


def test_a_newer_version_is_read_by_the_newest_layout_and_its_new_fields_are_no_oddity() -> None:
    data = b"\x00\x07" + encode_subscription(3, {"topics": ["t"], "rack_id": "r"})[2:] + b"new field"
    payload = decode_subscription("consumer", "range", data)
    assert (payload.version, payload.value["rack_id"], payload.marks) == (7, "r", ["newer_version"])


def test_of_a_subscription_that_breaks_in_its_tail_topics_and_user_data_are_kept() -> None:
    data = bytes.fromhex("0001 00000001 000174 00000001 61 00000001 0006 74")
    payload = decode_subscription("consumer", "range", data)
    assert (payload.value, payload.marks) == ({"topics": ["t"], "user_data": b"a"}, ["prefix_only"])
    assert payload.reason is not None


def test_of_a_subscription_that_breaks_in_its_user_data_the_topics_are_kept() -> None:
    payload = decode_subscription("consumer", "range", bytes.fromhex("0003 00000001 000174 000000ff 61"))
    assert (payload.value, payload.marks) == ({"topics": ["t"]}, ["prefix_only"])
    assert subscribed_topics(payload) == ["t"]


def test_a_negative_version_is_undecoded() -> None:
    assert decode_subscription("consumer", "range", b"\xff\xff" + KAFKA_GO[2:]).kind == "undecoded"


def test_user_data_of_no_length_is_none() -> None:
    for user_data in (None, b""):
        data = encode_subscription(0, {"topics": ["t"], "user_data": user_data})
        assert decode_subscription("consumer", "sticky", data).user_data is None


def test_user_data_of_a_protocol_that_defines_none_stays_bytes() -> None:
    payload = decode_subscription("consumer", "range", encode_subscription(0, {"topics": ["t"], "user_data": b"{}"}))
    assert (payload.user_data, payload.value["user_data"]) == (None, b"{}")


def test_user_data_that_cannot_be_read_leaves_the_subscription_whole() -> None:
    payload = decode_subscription("consumer", "stream", encode_subscription(0, {"topics": ["t"], "user_data": b"\x00"}))
    assert (payload.kind, payload.marks) == ("consumer_subscription", [])
    assert payload.user_data is not None
    assert (payload.user_data.kind, payload.user_data.raw) == ("undecoded", b"\x00")


def test_four_bytes_of_cooperative_sticky_are_a_generation_even_if_a_sticky_struct_fits() -> None:
    payload = decode_subscription("consumer", "cooperative-sticky", encode_subscription(0, {"user_data": bytes(4)}))
    assert payload.user_data is not None
    assert payload.user_data.value == {"generation": 0}


def test_a_topic_that_is_no_utf8_keeps_its_bytes_and_is_marked() -> None:
    data = bytes.fromhex("0000 00000001 0002 ff61 ffffffff")
    payload = decode_subscription("consumer", "range", data)
    topic = payload.value["topics"][0]
    assert isinstance(topic, InvalidUtf8)
    assert (topic.raw, payload.marks) == (b"\xffa", ["invalid_utf8"])
    assert encode_subscription(0, payload.value) == data


def test_a_topic_written_twice_gives_each_partition_once() -> None:
    entries = [{"topic": "t", "partitions": [2, 0]}, {"topic": "u", "partitions": [1]}, {"topic": "t", "partitions": [0, 1]}]
    payload = decode_assignment("consumer", "range", encode_assignment(1, {"assigned_partitions": entries}))
    assert assigned_partitions(payload) == [("t", 2), ("t", 0), ("u", 1), ("t", 1)]


def test_only_consumer_payloads_have_topics_and_partitions() -> None:
    data = b'{"version":1}'
    assert subscribed_topics(decode_subscription("sr", "v0", data)) is None
    assert assigned_partitions(decode_assignment("sr", "v0", data)) == []
    assert assigned_partitions(decode_assignment("consumer", "range", b"")) == []
