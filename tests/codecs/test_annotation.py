"""The byte-by-byte reading: every byte has one field, and every position is true of the file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import exhume
from exhume.cli.demo import DEMO_LOG
from exhume.codecs.annotation import ANNOTATION, AnnotationRow, annotate
from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.batches import BatchWalk
from exhume.codecs.record_types import COMMIT, encode_key, encode_value
from exhume.codecs.records import read_records
from exhume.codecs.wire import InvalidUtf8
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit, tombstone
from tests.judges import corpus
from tests.strategies import examples

DATA = corpus.BUNDLED

Row = AnnotationRow

COMMITTED = offset_commit("billing", "orders", 3, 42, commit_timestamp_ms=1_700_000_000_000, metadata="m")


def log_of(directory: Path, *batches: Iterable[KeyValue], **batch_fields: Any) -> Path:
    with PartitionWriter(directory, 0) as partition:
        for records in batches:
            partition.append(records, timestamp_ms=1_700_000_000_000, **batch_fields)
    return next(partition.directory.glob("*.log"))


def rows_of(place: Path, **conditions: Any) -> list[Row]:
    from exhume.codecs.record_filter import RecordFilter

    with exhume.open(place) as topic:
        rows: list[Row] = topic.annotate(RecordFilter(**conditions)).read_all().to_pylist()
    return rows


def parts_of(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    """The rows of each part of each record, in order."""
    return [(key[2], list(part)) for key, part in groupby(rows, key=lambda row: (row["path"], row["record_offset"], row["part"]))]


def assert_no_byte_is_left_out_or_taken_twice(rows: list[Row]) -> None:
    for part, fields in parts_of(rows):
        position = 0
        for field in fields:
            assert field["position"] == position, (part, field)
            position += len(field["bytes"]) // 2


def assert_the_file_says_the_same(rows: list[Row]) -> int:
    """How many rows were compared with the file."""
    files: dict[str, bytes] = {}
    compared = 0
    for row in rows:
        at = row["byte_position"]
        if at is not None:
            content = files.setdefault(row["path"], Path(row["path"]).read_bytes())
            assert content[at : at + len(row["bytes"]) // 2].hex() == row["bytes"], row
            compared += 1
    return compared


REAL_LOGS = [
    DEMO_LOG,
    *(DATA / name / "data" for name in ("2.8.2-upgrade", "2.8.2-compression", "3.7.2-consumer-groups", "4.1.1-share-groups")),
    *(DATA / name / "data" for name in ("0.9.0.1-compression", "4.3.0-streams-groups", "4.3.0-transactions")),
]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("place", REAL_LOGS, ids=lambda place: place.parent.name)
def test_of_real_logs_every_byte_of_key_and_value_has_one_field_at_its_place_in_the_file(place: Path) -> None:
    rows = rows_of(place)
    with exhume.open(place) as topic:
        records = topic.records().read_all().to_pylist()

    assert_no_byte_is_left_out_or_taken_twice(rows)
    assert assert_the_file_says_the_same(rows) > 0
    said = {(row["path"], row["record_offset"], part): b"" for row in records for part in ("key", "value") if row[part]}
    assert said
    for row in rows:
        key = (row["path"], row["record_offset"], row["part"])
        if key in said:
            said[key] += bytes.fromhex(row["bytes"])
    for record in records:
        for part in ("key", "value"):
            if record[part]:
                assert said[record["path"], record["record_offset"], part] == record[part]


def test_the_fields_of_a_commit_are_named_in_their_order(tmp_path: Path) -> None:
    rows = rows_of(log_of(tmp_path, [COMMITTED]))

    assert [(row["field"], row["bytes"], json.loads(row["value"])) for row in rows if row["part"] in ("key", "value")] == [
        ("record_type", "0001", 1),
        ("group", "000762696c6c696e67", "billing"),
        ("topic", "00066f7264657273", "orders"),
        ("partition", "00000003", 3),
        ("value_version", "0003", 3),
        ("committed_offset", "000000000000002a", 42),
        ("leader_epoch", "ffffffff", -1),
        ("metadata", "00016d", "m"),
        ("commit_timestamp_ms", "0000018bcfe56800", 1_700_000_000_000),
    ]


def test_batch_header_and_record_frame_fill_the_whole_file_of_one_record(tmp_path: Path) -> None:
    log = log_of(tmp_path, [COMMITTED])
    parts = dict(parts_of(rows_of(log)))

    assert "".join(row["bytes"] for row in (*parts["batch"], *parts["record"])) == log.read_bytes().hex()


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_of_the_old_formats_is_read_to_its_last_byte(tmp_path: Path, magic: int) -> None:
    log = log_of(tmp_path, [COMMITTED], magic=magic)
    rows = rows_of(log)
    frame = dict(parts_of(rows))["record"]

    assert "".join(row["bytes"] for row in frame) == log.read_bytes().hex()
    assert ("timestamp" in {row["field"] for row in frame}) is (magic == 1)
    assert_the_file_says_the_same(rows)


@pytest.mark.parametrize("magic", [1, 2])
def test_inside_a_compressed_batch_bytes_are_shown_without_a_place_in_the_file(tmp_path: Path, magic: int) -> None:
    rows = rows_of(log_of(tmp_path, [COMMITTED, COMMITTED], codec=1, magic=magic), from_offset=1)
    parts = dict(parts_of(rows))

    assert all(row["byte_position"] is not None for row in parts["batch"])
    assert {row["byte_position"] for part in ("record", "key", "value") for row in parts[part]} == {None}
    assert bytes.fromhex("".join(row["bytes"] for row in parts["key"])) == COMMITTED[0]
    assert {row["field"]: row["bytes"] for row in parts["record"]}["key"] == (COMMITTED[0] or b"").hex()


def test_headers_of_a_record_are_part_of_its_frame(tmp_path: Path) -> None:
    record = NewRecord(0, 0, *COMMITTED, headers=[("trace", b"\x01"), ("none", None)])
    with PartitionWriter(tmp_path, 0) as partition:
        partition.append_bytes(encode_batch([record], base_offset=0), 0, 0)
    log = next(partition.directory.glob("*.log"))
    frame = dict(parts_of(rows_of(log)))["record"]

    assert [(row["field"], row["bytes"]) for row in frame][-9:] == [
        ("header_count", "04"),
        ("headers[0].key_length", "0a"),
        ("headers[0].key", b"trace".hex()),
        ("headers[0].value_length", "02"),
        ("headers[0].value", "01"),
        ("headers[1].key_length", "08"),
        ("headers[1].key", b"none".hex()),
        ("headers[1].value_length", "01"),
        ("headers[1].value", ""),
    ]
    assert frame[-1]["value"] == "null"


def test_the_null_value_of_a_tombstone_is_null_and_takes_no_bytes(tmp_path: Path) -> None:
    parts = dict(parts_of(rows_of(log_of(tmp_path, [tombstone(COMMITTED)]))))
    fields = {row["field"]: row for row in parts["record"]}

    assert (fields["value_length"]["value"], fields["value"]["bytes"], fields["value"]["value"]) == ("-1", "", "null")
    assert "value" not in parts


def test_a_marker_is_read_as_a_control_record(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as partition:
        partition.append_marker(COMMIT, producer_id=7, producer_epoch=1, coordinator_epoch=5)
    parts = dict(parts_of(rows_of(partition.directory)))

    assert [(row["field"], row["value"]) for row in (*parts["key"], *parts["value"])] == [
        ("version", "0"),
        ("control_type", "1"),
        ("value_version", "0"),
        ("coordinator_epoch", "5"),
    ]


@pytest.mark.parametrize(
    ("record", "part", "rest"),
    [
        ((b"\x00\x63later", b"\x00\x05hello"), "key", b"later"),
        ((b"\x00\x63later", b"\x00\x05hello"), "value", b"hello"),
        ((COMMITTED[0], (COMMITTED[1] or b"") + b"tail"), "value", b"tail"),
        (((COMMITTED[0] or b"") + b"more", COMMITTED[1]), "key", b"more"),
        ((COMMITTED[0], b"\x00\x03\x00\x00\x01"), "value", b"\x00\x00\x01"),
        ((COMMITTED[0], b"\x00"), "value", b"\x00"),
        ((b"\x01", COMMITTED[1]), "key", b"\x01"),
    ],
)
def test_what_no_field_takes_is_shown_as_not_decoded(tmp_path: Path, record: KeyValue, part: str, rest: bytes) -> None:
    rows = rows_of(log_of(tmp_path, [record]))
    last = dict(parts_of(rows))[part][-1]

    assert (last["field"], last["bytes"]) == ("(not decoded)", rest.hex())
    assert_no_byte_is_left_out_or_taken_twice(rows)
    assert_the_file_says_the_same(rows)


def test_the_value_of_a_null_key_is_shown_undecoded(tmp_path: Path) -> None:
    rows = rows_of(log_of(tmp_path, [(None, b"\x00\x03secret")]))
    parts = dict(parts_of(rows))

    assert "key" not in parts
    assert [(row["field"], row["bytes"]) for row in parts["value"]] == [("(not decoded)", b"\x00\x03secret".hex())]


def test_tagged_fields_and_unknown_tags_have_rows_of_their_own(tmp_path: Path) -> None:
    value = encode_value(3, 0, {"group_epoch": 7, "metadata_hash": 1, "unknown_tags": [(9, b"new")]})
    rows = rows_of(log_of(tmp_path, [(encode_key(3, {"group": "g"}), value)]))

    assert [(row["field"], row["bytes"]) for row in dict(parts_of(rows))["value"]][-3:] == [
        ("tag", "09"),
        ("tag size", "03"),
        ("unknown tag 9", b"new".hex()),
    ]
    assert_no_byte_is_left_out_or_taken_twice(rows)


def test_a_name_that_is_no_utf_8_keeps_its_bytes(tmp_path: Path) -> None:
    name = InvalidUtf8(b"caf\xe9")
    rows = rows_of(log_of(tmp_path, [offset_commit(name, "t", 0, 1, commit_timestamp_ms=0)]))
    [group] = [row for row in rows if row["field"] == "group"]

    assert (group["bytes"], json.loads(group["value"])) == ("0004636166e9", {"invalid_utf8": "Y2Fm6Q=="})


def test_a_group_record_names_the_fields_of_each_member(tmp_path: Path) -> None:
    members = [{"member_id": name, "subscription": b"\x01", "assignment": b""} for name in ("a", "b")]
    rows = rows_of(log_of(tmp_path, [group_metadata("g", {"protocol_type": "consumer", "members": members})]))
    values = {row["field"]: row["value"] for row in rows if row["part"] == "value"}

    assert (values["members count"], values["members[0].member_id"], values["members[1].member_id"]) == ("2", '"a"', '"b"')


def test_every_row_says_where_it_comes_from(tmp_path: Path) -> None:
    log = log_of(tmp_path, [COMMITTED])
    rows = rows_of(log)

    assert set(rows[0]) == set(ANNOTATION.names)
    assert {(row["offsets_partition"], row["path"], row["record_offset"]) for row in rows} == {(0, str(log), 0)}


def test_batches_whose_records_no_kernel_splits_are_annotated_too(tmp_path: Path) -> None:
    records = [NewRecord(number, 5, *COMMITTED, headers=[("h", b"1")] if number % 2 else []) for number in range(4)]
    log = log_of(tmp_path, [COMMITTED])
    log.write_bytes(b"".join(encode_batch([record], base_offset=record.offset) for record in records))

    assert {row["record_offset"] for row in rows_of(log)} == {0, 1, 2, 3}


@examples(60)
@given(key=st.none() | st.binary(max_size=40), value=st.none() | st.binary(max_size=60), magic=st.sampled_from([0, 1, 2]))
def test_any_key_and_any_value_are_covered(key: bytes | None, value: bytes | None, magic: int) -> None:
    data = encode_batch([NewRecord(5, 0, key, value)], base_offset=5, magic=magic)
    [batch] = BatchWalk(data)
    [record] = read_records(data, batch)
    rows = list(annotate({"replica": None, "offsets_partition": None, "path": ""}, data, batch, record))

    assert_no_byte_is_left_out_or_taken_twice(rows)
    shown = {part: bytes.fromhex("".join(row["bytes"] for row in fields)) for part, fields in parts_of(rows)}
    assert (shown.get("key", b""), shown.get("value", b"")) == (key or b"", value or b"")
