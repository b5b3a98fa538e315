"""The table of record types against bytes that Kafka's own serialisers wrote, and against every record of the bundled logs."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exhume
from exhume.codecs.layout import Array, Field, Message, Scalar, Struct
from exhume.codecs.record_types import (
    ABORT,
    COMMIT,
    CONTROL_TYPES,
    RECORD_TYPES,
    ValueLayout,
    decode_control_record,
    decode_record,
    encode_control_record,
    encode_key,
    encode_value,
)
from exhume.codecs.wire import InvalidUtf8
from tests.compared import Compared
from tests.judges import corpus

#: There are many layouts: a few examples of each are many in all.
FEW = settings(max_examples=20, deadline=None)
TOPIC_ID = "AQIDBAUGBwgJCgsMDQ4PEA"
KEY = {"group": "g", "topic": "t", "partition": 3, "member_id": "A", "regular_expression": "t.*"}

#: record type, value as Kafka 4.4 writes it, what it says.
GOLDEN: list[tuple[int, str, dict[str, Any]]] = [
    (
        1,
        "000300000000000000640000000700016d0000018bcfe56800",
        {"committed_offset": 100, "leader_epoch": 7, "metadata": "m", "commit_timestamp_ms": 1700000000000},
    ),
    (
        1,
        "0004000000000000006400000007026d0000018bcfe5680000",
        {"committed_offset": 100, "leader_epoch": 7, "metadata": "m", "commit_timestamp_ms": 1700000000000, "topic_id": None},
    ),
    (
        1,
        "0004000000000000006400000007026d0000018bcfe568000100100102030405060708090a0b0c0d0e0f10",
        {"committed_offset": 100, "leader_epoch": 7, "metadata": "m", "commit_timestamp_ms": 1700000000000, "topic_id": TOPIC_ID},
    ),
    (
        2,
        "00030008636f6e73756d657200000002000572616e67650001410000018bcfe5680000000001000141ffff00016300022f68000493e00000afc800000002000000000000",
        {
            "protocol_type": "consumer",
            "generation": 2,
            "protocol": "range",
            "leader": "A",
            "current_state_timestamp_ms": 1700000000000,
            "members": [
                {
                    "member_id": "A",
                    "group_instance_id": None,
                    "client_id": "c",
                    "client_host": "/h",
                    "rebalance_timeout_ms": 300000,
                    "session_timeout_ms": 45000,
                    "subscription": b"\0\0",
                    "assignment": b"",
                }
            ],
        },
    ),
    (3, "00000000000500", {"group_epoch": 5, "metadata_hash": 0}),
    (3, "0000000000050100081122334455667788", {"group_epoch": 5, "metadata_hash": 0x1122334455667788}),
    (
        4,
        "0000020102030405060708090a0b0c0d0e0f10027400000002010000",
        {"topics": [{"topic_id": TOPIC_ID, "topic": "t", "partition_count": 2, "partition_metadata": []}]},
    ),
    (
        5,
        "00000002720263032f6802027401000493e00001000100",
        {
            "group_instance_id": None,
            "rack_id": "r",
            "client_id": "c",
            "client_host": "/h",
            "subscribed_topics": ["t"],
            "subscribed_regex": "",
            "rebalance_timeout_ms": 300000,
            "server_assignor": None,
            "classic_member_metadata": None,
        },
    ),
    (
        5,
        "00000002720263032f6802027401000493e000010010010000afc8020672616e676502010000",
        {
            "group_instance_id": None,
            "rack_id": "r",
            "client_id": "c",
            "client_host": "/h",
            "subscribed_topics": ["t"],
            "subscribed_regex": "",
            "rebalance_timeout_ms": 300000,
            "server_assignor": None,
            "classic_member_metadata": {"session_timeout_ms": 45000, "supported_protocols": [{"name": "range", "metadata": b"\1"}]},
        },
    ),
    (6, "00000000000500", {"assignment_epoch": 5, "assignment_timestamp_ms": 0}),
    (6, "0000000000050100080000018bcfe56800", {"assignment_epoch": 5, "assignment_timestamp_ms": 1700000000000}),
    (
        7,
        "0000020102030405060708090a0b0c0d0e0f100300000000000000010000",
        {"topic_partitions": [{"topic_id": TOPIC_ID, "partitions": [0, 1]}]},
    ),
    (
        8,
        "0000000000050000000401020102030405060708090a0b0c0d0e0f10030000000000000001000100",
        {
            "member_epoch": 5,
            "previous_member_epoch": 4,
            "member_state": 1,
            "assigned": [{"topic_id": TOPIC_ID, "partitions": [0, 1], "assignment_epochs": []}],
            "pending_revocation": [],
        },
    ),
    (
        8,
        "0000000000050000000401020102030405060708090a0b0c0d0e0f100300000000000000010100090300000003000000050100",
        {
            "member_epoch": 5,
            "previous_member_epoch": 4,
            "member_state": 1,
            "assigned": [{"topic_id": TOPIC_ID, "partitions": [0, 1], "assignment_epochs": [3, 5]}],
            "pending_revocation": [],
        },
    ),
    (
        16,
        "00000203743100000000000000090000018bcfe5680000",
        {"topics": ["t1"], "metadata_image_version": 9, "resolved_timestamp_ms": 1700000000000},
    ),
    (
        17,
        "000000000005000000000000000102000400000000010100",
        {
            "group_epoch": 5,
            "metadata_hash": 1,
            "validated_topology_epoch": 0,
            "last_assignment_configs": None,
            "stored_description_topology_epoch": -1,
            "failed_description_topology_epoch": -1,
        },
    ),
    (
        19,
        "000000000263032f68ffffffff000000000270ff0100",
        {
            "group_instance_id": None,
            "rack_id": None,
            "client_id": "c",
            "client_host": "/h",
            "rebalance_timeout_ms": -1,
            "topology_epoch": 0,
            "process_id": "p",
            "user_endpoint": None,
            "client_tags": [],
        },
    ),
    (
        19,
        "000000000263032f68ffffffff00000000027001026823840" + "00100",
        {
            "group_instance_id": None,
            "rack_id": None,
            "client_id": "c",
            "client_host": "/h",
            "rebalance_timeout_ms": -1,
            "topology_epoch": 0,
            "process_id": "p",
            "user_endpoint": {"host": "h", "port": 9092},
            "client_tags": [],
        },
    ),
]


@pytest.mark.parametrize(("number", "hexadecimal", "expected"), GOLDEN)
def test_what_kafka_wrote_is_read_and_written_byte_for_byte(number: int, hexadecimal: str, expected: dict[str, Any]) -> None:
    value = bytes.fromhex(hexadecimal)

    decoded = decode_record(encode_key(number, KEY), value)

    assert decoded.value == expected
    assert decoded.marks == []
    assert decoded.value_version is not None
    assert encode_value(number, decoded.value_version, expected) == value


@pytest.mark.parametrize(
    ("number", "hexadecimal"),
    [(1, "000100016700017400000003"), (5, "0005000167000141"), (16, "00100001670003742e2a")],
)
def test_keys_are_written_as_kafka_writes_them(number: int, hexadecimal: str) -> None:
    assert encode_key(number, KEY).hex() == hexadecimal


def test_an_offset_commit_of_a_real_broker_is_read() -> None:
    key = bytes.fromhex("0001000267310002743100000003")
    value = bytes.fromhex("000300000000000000670000000700076d65746122c3a900000174876e8000")

    decoded = decode_record(key, value)

    assert decoded.key == {"group": "g1", "topic": "t1", "partition": 3}
    assert decoded.value == {"committed_offset": 103, "leader_epoch": 7, "metadata": 'meta"é', "commit_timestamp_ms": 1600000000000}


def test_end_transaction_markers_are_those_of_a_real_broker() -> None:
    assert encode_control_record(COMMIT, {"coordinator_epoch": 42}) == (bytes.fromhex("00000001"), bytes.fromhex("00000000002a"))
    decoded = decode_control_record(bytes.fromhex("00000000"), bytes.fromhex("00000000002a"))
    assert (decoded.number, decoded.value) == (ABORT, {"coordinator_epoch": 42})


# --- Every type, version and layout


def _layouts() -> Iterator[tuple[int, ValueLayout, int]]:
    for row in RECORD_TYPES.values():
        for layout in row.layouts:
            for version in layout.message.versions:
                yield row.number, layout, version


def _values(message: Message, version: int) -> st.SearchStrategy[dict[str, Any]]:
    return _structs(message.struct, version)


def _structs(struct: Struct, version: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({field.name: _fields(field, version) for field in struct.fields if field.is_in(version)})


def _fields(field: Field, version: int) -> st.SearchStrategy[Any]:
    inner: st.SearchStrategy[Any]
    if isinstance(field.type, Scalar):
        inner = _scalars(field.type)
    elif isinstance(field.type, Array):
        element = field.type.element
        inner = st.lists(_structs(element, version) if isinstance(element, Struct) else _scalars(element), max_size=3)
    else:
        inner = _structs(field.type, version)
    return st.none() | inner if field.nullable else inner


def _scalars(scalar: Scalar) -> st.SearchStrategy[Any]:
    if scalar.name.startswith(("int", "uint")):
        bits = int(scalar.name.lstrip("uint"))
        low = 0 if scalar.name.startswith("u") else -(2 ** (bits - 1))
        return st.integers(low, low + 2**bits - 1)
    return {
        "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
        "bytes": st.binary(max_size=12),
        "uuid": st.none() | st.sampled_from([TOPIC_ID, "bWRkwMLhTyGiSeWTwxOMbA"]),
    }[scalar.name]


@pytest.mark.parametrize(
    ("number", "layout", "version"), [pytest.param(*row, id=f"{row[0]}-{row[1].releases}-v{row[2]}") for row in _layouts()]
)
@FEW
@given(data=st.data())
def test_every_layout_survives_a_round_trip(number: int, layout: ValueLayout, version: int, data: st.DataObject) -> None:
    value = data.draw(_values(layout.message, version))

    encoded = layout.message.encode(version, value)
    read, size_bytes = layout.message.decode(encoded, version)

    assert read == value
    assert size_bytes == len(encoded)
    assert encode_value(number, version, value, layout=layout)[2:] == encoded


@pytest.mark.parametrize(
    ("number", "layout", "version"), [pytest.param(*row, id=f"{row[0]}-{row[1].releases}-v{row[2]}") for row in _layouts()]
)
@FEW
@given(data=st.data())
def test_every_cut_of_every_value_is_marked_and_keeps_its_first_fields(
    number: int, layout: ValueLayout, version: int, data: st.DataObject
) -> None:
    value = data.draw(_values(layout.message, version))
    encoded = encode_value(number, version, value, layout=layout)
    cut = data.draw(st.integers(0, len(encoded) - 1))

    decoded = decode_record(encode_key(number, KEY), encoded[:cut])

    # Of two layouts under one version the other may fit what is left of the first.
    assert decoded.marks
    assert decoded.key["group"] == "g"


@given(st.binary(max_size=64) | st.none(), st.binary(max_size=200) | st.none())
def test_any_bytes_decode_without_an_error(key: bytes | None, value: bytes | None) -> None:
    assert decode_record(key, value).marks is not None
    assert decode_control_record(key, value).marks is not None


# --- Unknown is not fatal


def test_an_unknown_record_type_is_marked() -> None:
    decoded = decode_record(bytes.fromhex("03e7") + b"whatever", b"\0\0")

    assert (decoded.number, decoded.name, decoded.marks) == (999, "unknown", ["unknown_record_type"])


def test_a_newer_value_version_is_read_as_far_as_the_newest_layout_goes() -> None:
    value = encode_value(1, 4, {"committed_offset": 77, "metadata": "note", "commit_timestamp_ms": 5})
    newer = b"\0\x09" + value[2:] + b"more"

    decoded = decode_record(encode_key(1, KEY), newer)

    assert decoded.value is not None
    assert (decoded.value["committed_offset"], decoded.value["metadata"]) == (77, "note")
    assert decoded.value_version == 9
    assert set(decoded.marks) == {"unknown_value_version", "trailing_value_bytes"}


def test_bytes_behind_the_last_field_are_marked_and_the_fields_stay() -> None:
    value = encode_value(1, 1, {"committed_offset": 77, "commit_timestamp_ms": 5, "expire_timestamp_ms": 9})

    decoded = decode_record(encode_key(1, KEY) + b"!", value + b"tail")

    assert decoded.marks == ["trailing_key_bytes", "trailing_value_bytes"]
    assert decoded.value is not None
    assert decoded.value["expire_timestamp_ms"] == 9


def test_an_unknown_tag_stays_verbatim_and_is_written_again() -> None:
    value = encode_value(3, 0, {"group_epoch": 5, "unknown_tags": [(9, b"new")]})

    decoded = decode_record(encode_key(3, KEY), value)

    assert decoded.value is not None
    assert decoded.value["unknown_tags"] == [(9, b"new")]
    assert decoded.marks == ["unknown_tags"]
    assert encode_value(3, 0, decoded.value) == value


def test_an_absent_classic_member_tag_is_not_null() -> None:
    without = bytes.fromhex("00000000046170700a2f31302e312e322e3302076f726465727300000493e00000")

    decoded = decode_record(encode_key(5, KEY), without)

    assert decoded.value is not None
    assert decoded.value["classic_member_metadata"] == {"session_timeout_ms": 0, "supported_protocols": []}


@pytest.mark.parametrize(
    ("number", "releases", "value"),
    [
        (4, "3.7", {"group_epoch": 4, "topics": []}),
        (5, "3.7", {"client_id": "c", "client_host": "/h", "subscribed_topics": ["t"], "assignors": []}),
        (
            7,
            "3.7",
            {"topic_partitions": [{"topic_id": TOPIC_ID, "partitions": [1]}], "metadata_bytes": b""},
        ),
        (8, "3.7", {"member_epoch": 3, "previous_member_epoch": 2, "target_member_epoch": 3, "metadata_bytes": b""}),
        (11, "4.0", {"group_epoch": 3}),
    ],
)
def test_an_earlier_layout_under_the_same_version_is_recognised(number: int, releases: str, value: dict[str, Any]) -> None:
    layout = next(layout for layout in RECORD_TYPES[number].layouts if layout.releases == releases)

    decoded = decode_record(encode_key(number, KEY), encode_value(number, 0, value, layout=layout))

    assert decoded.layout == layout
    assert decoded.marks == ["early_layout"]


def test_a_name_that_is_no_valid_utf8_keeps_its_bytes() -> None:
    key = bytes.fromhex("00020003") + b"a\xff\xfe"

    decoded = decode_record(key, None)

    assert decoded.marks == ["invalid_utf8"]
    assert encode_key(2, decoded.key) == key


@pytest.mark.parametrize("row", CONTROL_TYPES.values(), ids=lambda row: row.name)
def test_every_control_record_survives_a_round_trip(row: Any) -> None:
    for version in row.message.versions:
        key, value = encode_control_record(row.number, row.message.struct.default_value(version), version=version)

        decoded = decode_control_record(key, value)

        assert (decoded.number, decoded.marks) == (row.number, [])
        assert decoded.value == row.message.struct.default_value(version)


# --- Every record of the bundled logs


@pytest.mark.slow
def test_every_record_of_real_logs_is_written_again_byte_for_byte(compared: Compared) -> None:
    again = 0
    for case in corpus.cases():
        # Logs that no broker wrote spell out tags that a broker leaves away.
        by_broker = not case.is_random and not case.is_fact
        for directory in case.data_directories.values():
            with exhume.open(directory, include={"deleted", "swap", "cleaned"}) as topic:
                for batch in topic.records():
                    for row in batch.select(["is_control", "key", "value"]).to_pylist():
                        again += _is_same_again(row["key"], row["value"], is_control=row["is_control"], by_broker=by_broker)

    assert again > 10_000
    compared["keys and values, written again", "every bundled log"] += again


def _is_same_again(key: bytes | None, value: bytes | None, *, is_control: bool, by_broker: bool) -> bool:
    """Hold the re-encoded record against the original; False for records that cannot be decoded whole (hostile ones)."""
    decoded = (decode_control_record if is_control else decode_record)(key, value)
    if set(decoded.marks) - {"early_layout", "unknown_tags", "invalid_utf8"}:
        return False
    assert decoded.number is not None
    if is_control:
        assert decoded.value is not None
        assert encode_control_record(decoded.number, decoded.value) == (key, value)
        return True
    assert encode_key(decoded.number, decoded.key) == key
    if value is not None:
        assert decoded.value is not None
        assert decoded.value_version is not None
        again = encode_value(decoded.number, decoded.value_version, decoded.value, layout=decoded.layout)
        assert again == value if by_broker else decode_record(key, again).value == decoded.value
    return True


@pytest.mark.parametrize("remade", [copy, deepcopy, lambda text: pickle.loads(pickle.dumps(text))], ids=["copy", "deepcopy", "pickle"])
def test_a_name_that_is_no_utf8_keeps_its_bytes_in_a_copy_and_in_another_process(remade: Callable[[InvalidUtf8], InvalidUtf8]) -> None:
    name = InvalidUtf8(b"caf\xe9")

    assert (remade(name), remade(name).raw) == ("caf\ufffd", b"caf\xe9")
