"""Records into typed tables and into the dump: nothing aborts, nothing is lost, and what is odd carries a mark."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
import pytest

from exhume.arrow_rows import batch_of
from exhume.codecs import schemas
from exhume.codecs.decoded_tables import DUMP, decode_table, dump_table
from exhume.codecs.record_types import (
    ABORT,
    COMMIT,
    MARKS,
    RECORD_TYPES,
    decode_record,
    encode_control_record,
    encode_key,
    encode_value,
)
from exhume.codecs.wire import InvalidUtf8
from exhume.fixtures.log_writer import KeyValue, group_metadata, offset_commit, tombstone

COMMITTED = offset_commit("billing", "orders", 3, 42, commit_timestamp_ms=1_700_000_000_000, metadata="m")
KEY, VALUE = COMMITTED[0] or b"", COMMITTED[1] or b""


def records(*pairs: KeyValue, is_control: bool = False) -> pa.RecordBatch:
    rows: list[dict[str, Any]] = [
        {
            "offsets_partition": 7,
            "path": "0.log",
            "byte_position": 100,
            "record_offset": offset,
            "timestamp_ms": 1_700_000_000_000,
            "is_transactional": is_control,
            "crc_status": "ok",
            "is_control": is_control,
            "key": key,
            "value": value,
            "headers": [],
        }
        for offset, (key, value) in enumerate(pairs)
    ]
    return batch_of(schemas.RECORDS, rows)


def dump_of(*pairs: KeyValue, raw: bool = False, is_control: bool = False) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = dump_table(records(*pairs, is_control=is_control), raw=raw).to_pylist()
    return rows


def typed(name: str, *pairs: KeyValue) -> list[dict[str, Any]]:
    table = decode_table(name, records(*pairs))
    assert table.schema == schemas.decoded()[name]
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


# The dump


def test_a_commit_is_decoded_to_its_last_field() -> None:
    [row] = dump_of((KEY, VALUE))

    assert (row["type"], row["record_type"], row["group"], row["topic"], row["partition"]) == ("offset_commit", 1, "billing", "orders", 3)
    assert (row["value_version"], row["is_tombstone"], row["marks"]) == (3, False, [])
    assert json.loads(row["value"]) == {
        "committed_offset": 42,
        "leader_epoch": -1,
        "metadata": "m",
        "commit_timestamp_ms": 1_700_000_000_000,
    }
    assert json.loads(row["key"]) == {"group": "billing", "topic": "orders", "partition": 3}


def test_a_tombstone_keeps_its_key_and_has_no_value() -> None:
    [row] = dump_of(tombstone((KEY, VALUE)))

    assert (row["group"], row["is_tombstone"], row["value"], row["value_version"]) == ("billing", True, None, None)


@pytest.mark.parametrize(
    ("record", "mark"),
    [
        ((b"\x00\x63later", b"\x00\x05hello"), "unknown_record_type"),
        ((b"\xff\xff", None), "unknown_record_type"),
        ((None, VALUE), "null_key"),
        ((b"", VALUE), "undecodable_key"),
        ((KEY[:-1], VALUE), "undecodable_key"),
        ((KEY + b"x", VALUE), "trailing_key_bytes"),
        ((KEY, VALUE + b"tail"), "trailing_value_bytes"),
        ((KEY, VALUE[:9]), "undecodable_value"),
        ((KEY, b""), "undecodable_value"),
        ((KEY, b"\x00\x09" + VALUE[2:]), "unknown_value_version"),
        ((KEY, b"\xff\xff" + VALUE[2:]), "unknown_value_version"),
        (offset_commit(InvalidUtf8(b"\xff"), "t", 0, 1, commit_timestamp_ms=0), "invalid_utf8"),
        ((encode_key(3, {"group": "g"}), encode_value(3, 0, {"group_epoch": 1, "unknown_tags": [(9, b"new")]})), "unknown_tags"),
    ],
)
def test_what_is_odd_gives_a_row_with_a_mark_and_the_raw_bytes(record: KeyValue, mark: str) -> None:
    before, row, after = dump_of((KEY, VALUE), record, (KEY, VALUE))

    assert mark in row["marks"]
    assert set(row["marks"]) <= set(MARKS)
    assert (row["raw_key"], row["raw_value"]) == record
    assert before["marks"] == after["marks"] == []
    assert before["raw_key"] is after["raw_value"] is None


def test_of_a_newer_value_version_the_known_fields_are_read() -> None:
    newer = b"\x00\x09" + encode_value(1, 4, {"committed_offset": 42, "metadata": "m", "commit_timestamp_ms": 5})[2:]
    [row] = dump_of((KEY, newer))

    assert row["value_version"] == 9
    assert json.loads(row["value"])["committed_offset"] == 42
    assert json.loads(row["value"])["commit_timestamp_ms"] == 5


def test_of_a_cut_value_the_fields_before_the_cut_are_read() -> None:
    [row] = dump_of((KEY, VALUE[: 2 + 8]))

    assert json.loads(row["value"]) == {"committed_offset": 42}


def test_raw_keeps_the_bytes_of_every_record() -> None:
    rows = dump_of((KEY, VALUE), (KEY, None), raw=True)

    assert [(row["raw_key"], row["raw_value"]) for row in rows] == [(KEY, VALUE), (KEY, None)]


def test_a_name_that_is_no_utf_8_is_kept_as_bytes_in_the_json() -> None:
    name = InvalidUtf8(b"caf\xe9")
    [row] = dump_of(offset_commit(name, "t", 0, 1, commit_timestamp_ms=0, metadata=name))

    assert row["group"] == "caf\ufffd"
    assert json.loads(row["key"])["group"] == {"invalid_utf8": base64.b64encode(b"caf\xe9").decode()}
    assert json.loads(row["value"])["metadata"] == {"invalid_utf8": "Y2Fm6Q=="}


def test_two_names_that_look_alike_stay_apart_in_the_json_and_in_the_raw_bytes() -> None:
    rows = dump_of(*(offset_commit(InvalidUtf8(raw), "t", 0, 1, commit_timestamp_ms=0) for raw in (b"\xfe", b"\xff")))

    assert rows[0]["group"] == rows[1]["group"]
    assert rows[0]["key"] != rows[1]["key"]
    assert rows[0]["raw_key"] != rows[1]["raw_key"]


@pytest.mark.parametrize(("outcome", "name"), [(COMMIT, "COMMIT"), (ABORT, "ABORT")])
def test_a_marker_is_no_record_of_the_type_that_shares_its_number(outcome: int, name: str) -> None:
    [row] = dump_of(encode_control_record(outcome, {"coordinator_epoch": 4}), is_control=True)

    assert (row["type"], row["record_type"], row["group"]) == ("end_txn_marker", None, None)
    assert json.loads(row["value"]) == {"control_type": name, "coordinator_epoch": 4}


def test_an_unknown_control_record_is_marked() -> None:
    [row] = dump_of((b"\x00\x00\x00\x2a", b"\x00\x00"), is_control=True)

    assert (row["type"], row["record_type"], row["marks"]) == ("control", None, ["unknown_record_type"])
    assert row["raw_key"] == b"\x00\x00\x00\x2a"


def test_what_members_put_into_their_payloads_is_decoded_with_its_bytes_beside_it() -> None:
    subscription = bytes.fromhex("0000000000010006") + b"orders" + b"\xff\xff\xff\xff"
    record = group_metadata(
        "g",
        {
            "protocol_type": "consumer",
            "protocol": "range",
            "members": [{"member_id": "m", "subscription": subscription, "assignment": b"\x00"}],
        },
    )
    [row] = dump_of(record)
    [member] = json.loads(row["value"])["members"]

    assert member["subscription"]["topics"] == ["orders"]
    assert base64.b64decode(member["subscription"]["raw"]) == subscription
    assert base64.b64decode(member["assignment"]["raw"]) == b"\x00"
    assert member["assignment"]["marks"] == ["truncated"]


@pytest.mark.parametrize("number", sorted(RECORD_TYPES))
def test_every_record_type_has_a_row_in_the_dump_and_one_in_its_own_table(number: int) -> None:
    record_type = RECORD_TYPES[number]
    key = encode_key(number, record_type.key.default_value(0))
    value = encode_value(number, record_type.message.versions.stop - 1, {})
    [row], [own] = dump_of((key, value)), typed(record_type.name, (key, value))

    assert (row["record_type"], row["type"], row["marks"]) == (number, record_type.name, [])
    assert (own["record_type"], own["is_tombstone"], own["marks"]) == (number, False, [])
    assert decode_record(key, value).value == json_to_fields(row["value"], own)


def json_to_fields(text: str, own: dict[str, Any]) -> dict[str, Any]:
    """The fields of the dump's value as the typed table has them."""
    return {name: own[name] for name in json.loads(text)}


# The typed tables


def test_a_typed_table_holds_its_type_and_nothing_else_in_order() -> None:
    rows = typed("offset_commit", (KEY, VALUE), group_metadata("g", {}), (KEY, None), (b"\x00\x63", b""), (None, None))

    assert [(row["record_offset"], row["committed_offset"], row["is_tombstone"]) for row in rows] == [(0, 42, False), (2, None, True)]


def test_the_legacy_commit_type_shares_the_table() -> None:
    legacy = encode_key(0, {"group": "g", "topic": "t", "partition": 0})
    rows = typed("offset_commit", (legacy, VALUE), (KEY, VALUE))

    assert [row["record_type"] for row in rows] == [0, 1]


def test_a_marked_row_of_a_typed_table_keeps_its_raw_bytes() -> None:
    good, odd = typed("offset_commit", (KEY, VALUE), (KEY, VALUE + b"x"))

    assert (good["raw_key"], good["raw_value"]) == (None, None)
    assert (odd["marks"], odd["raw_key"], odd["raw_value"]) == (["trailing_value_bytes"], KEY, VALUE + b"x")


def test_markers_have_a_table_of_their_own() -> None:
    batch = records(
        encode_control_record(COMMIT, {"coordinator_epoch": 3}), encode_control_record(ABORT, {"coordinator_epoch": 4}), is_control=True
    )
    table = decode_table("end_txn_markers", batch)

    assert table.schema == schemas.END_TXN_MARKERS
    assert [(row["outcome"], row["coordinator_epoch"]) for row in table.to_pylist()] == [("COMMIT", 3), ("ABORT", 4)]
    assert decode_table("offset_commit", batch).num_rows == 0


def test_the_dump_has_the_columns_of_records_and_the_decoded_ones() -> None:
    assert {field.name for field in schemas.RECORDS} - set(DUMP.names) == set()
    assert {"type", "group", "member_id", "topic", "partition", "is_tombstone", "value_version", "key", "value", "marks"} <= set(DUMP.names)
