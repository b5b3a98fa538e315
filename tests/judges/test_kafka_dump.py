"""The reading of Kafka's dumps, on lines that the tools of eighteen releases printed."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from exhume.codecs.record_types import RECORD_TYPES, decode_record, encode_key, encode_value

from . import corpus
from .dump_comparison import compare_dump
from .kafka_dump import DumpedBatch, DumpedRecord, DumpedSegment, Stop, parse_dump
from .kafka_dump_text import (
    GroupMetadataKey,
    GroupMetadataPayload,
    MemberText,
    OffsetCommitKey,
    OffsetCommitPayload,
    UnknownKey,
)
from .kafka_json import key_to_kafka_json, to_kafka_json, to_text

HEAD = "Dumping __consumer_offsets-1/00000000000000000000.log\nStarting offset: 0\n"
LINES = {
    "0.9": "offset: 0 position: 0 isvalid: true payloadsize: 28 magic: 0 compresscodec: NoCompressionCodec crc: 2595201066 keysize: 27",
    "0.10": "offset: 0 position: 0 CreateTime: 1795232993172 isvalid: true payloadsize: 28 magic: 1 compresscodec: NONE crc: 3984639735"
    " keysize: 27",
    "0.11": "offset: 0 position: 0 CreateTime: 1795232993172 isvalid: true keysize: 27 valuesize: 28 magic: 2 compresscodec: NONE"
    " producerId: -1 producerEpoch: -1 sequence: -1 isTransactional: false headerKeys: []",
    "2.2": "| offset: 0 CreateTime: 1795232993172 keysize: 27 valuesize: 28 sequence: 0 headerKeys: []",
    "2.8": "| offset: 0 isValid: true crc: null keySize: 27 valueSize: 28 CreateTime: 1795232993172 baseOffset: 0 lastOffset: 0"
    " baseSequence: -1 lastSequence: -1 producerEpoch: -1 partitionLeaderEpoch: 0 batchSize: 462 magic: 2 compressType: NONE position: 0"
    " sequence: -1 headerKeys: []",
}
BATCH = (
    "baseOffset: 10 lastOffset: 12 count: 2 baseSequence: 4 lastSequence: 6 producerId: 7 producerEpoch: 1 partitionLeaderEpoch: 3"
    " isTransactional: true isControl: false deleteHorizonMs: OptionalLong[1700000000000] position: 462 LogAppendTime: 1795230227423"
    " size: 1236 magic: 2 compresscodec: zstd crc: 2248747328 isvalid: false"
)


def only_record(text: str) -> DumpedRecord:
    (record,) = parse_dump(HEAD + text + "\n").records
    return record


@pytest.mark.parametrize("era", LINES)
def test_every_era_prints_offset_and_value_size(era: str) -> None:
    record = only_record(LINES[era])

    assert (record.era, record.offset, record.value_size) == (era, 0, 28)


def test_only_2_8_prints_the_batch_with_the_record() -> None:
    assert only_record(LINES["2.8"]).batch_size == 462
    assert only_record(LINES["2.2"]).batch_size is None


def test_a_batch_line_is_read_to_its_last_field() -> None:
    (batch,) = parse_dump(HEAD + BATCH + "\n").batches

    assert batch == DumpedBatch(
        base_offset=10,
        last_offset=12,
        count=2,
        base_sequence=4,
        last_sequence=6,
        producer_id=7,
        producer_epoch=1,
        partition_leader_epoch=3,
        is_transactional=True,
        is_control=False,
        delete_horizon_ms=1700000000000,
        position=462,
        timestamp_type="LogAppendTime",
        timestamp_ms=1795230227423,
        size=1236,
        magic=2,
        codec="zstd",
        crc=2248747328,
        is_valid=False,
    )


def test_a_batch_of_format_1_has_no_base_offset() -> None:
    line = "offset: 54 position: 0 CreateTime: 1795233132304 size: 822 magic: 1 compresscodec: lz4 crc: 7 isvalid: true"

    (batch,) = parse_dump(HEAD + line + "\n").batches

    assert (batch.base_offset, batch.last_offset, batch.count) == (None, 54, None)


def test_the_stray_brace_of_3_x_does_not_reach_the_crc() -> None:
    assert only_record("| offset: 0 CreateTime: 5 keySize: 27 valueSize: -1 isValid: true crc: 99}").crc == 99


@pytest.mark.parametrize(
    ("text", "key", "payload"),
    [
        (" key: offset::cron-report:orders:0 payload: 300", OffsetCommitKey("cron-report", "orders", 0), OffsetCommitPayload(300, "")),
        (" key: offset::cron:report:orders:0 payload: 5:a:b", OffsetCommitKey("cron:report", "orders", 0), OffsetCommitPayload(5, "a:b")),
        (" key: offset::a payload: 1:orders:0 payload: 7", OffsetCommitKey("a payload: 1", "orders", 0), OffsetCommitPayload(7, "")),
        (
            " key: offset_commit::group=cron-report,partition=orders-0 payload: offset=-5,metadata=x,metadata=y",
            OffsetCommitKey("cron-report", "orders", 0),
            OffsetCommitPayload(-5, "x,metadata=y"),
        ),
    ],
)
def test_the_key_size_tells_where_a_text_key_ends(text: str, key: OffsetCommitKey, payload: OffsetCommitPayload) -> None:
    key_size = 10 + len(key.group) + len(key.topic)

    record = only_record(LINES["2.2"].replace("keysize: 27", f"keysize: {key_size}") + text)

    assert (record.key, record.payload) == (key, payload)


def test_a_line_feed_in_a_group_id_does_not_end_the_record() -> None:
    record = only_record(
        LINES["2.2"].replace("keysize: 27", "keysize: 19") + " key: offset_commit::group=a\nb,partition=orders-2 payload: offset=1"
    )

    assert record.key == OffsetCommitKey("a\nb", "orders", 2)


def test_line_feeds_in_metadata_stay() -> None:
    record = only_record(LINES["0.9"].replace("27", "18") + ' key: offset::g1:orders:0 payload: 106:a\t"b"\nc')

    assert record.payload == OffsetCommitPayload(106, 'a\t"b"\nc')


def test_the_text_of_0_11_tells_members_and_their_user_data() -> None:
    text = " key: metadata::etl payload: consumer:sticky:3:{c, 1=[orders-0, orders-1]:1A2B,c=2=[]}"

    record = only_record(LINES["0.11"].replace("keysize: 27", "keysize: 7") + text)

    assert record.key == GroupMetadataKey("etl")
    assert record.payload == GroupMetadataPayload(
        "consumer", "sticky", 3, {"c, 1": MemberText(("orders-0", "orders-1"), "1A2B"), "c=2": MemberText((), "")}
    )


def test_a_null_protocol_is_none_in_both_texts() -> None:
    old = only_record(LINES["0.10"].replace("27", "7") + " key: metadata::etl payload: :null:2:{}")
    new = only_record(
        LINES["0.11"] + ' key: {"metadata":"etl"} payload: {"protocolType":"consumer","protocol":null,"generationId":4,"assignment":"{}"}'
    )

    assert old.payload == GroupMetadataPayload("", None, 2, {})
    assert new.payload == GroupMetadataPayload("consumer", None, 4, {})


def test_a_tombstone_before_2_4_has_no_key() -> None:
    record = only_record(LINES["0.9"].replace("payloadsize: 28", "payloadsize: -1"))

    assert record.is_tombstone
    assert not record.is_decoded


def test_delete_is_a_tombstone_with_its_key() -> None:
    record = only_record(
        "| offset: 9 CreateTime: 5 keySize: 9 valueSize: -1 sequence: 0 headerKeys: [] key: group_metadata::group=trial payload: <DELETE>"
    )

    assert (record.key, record.payload, record.is_tombstone) == (GroupMetadataKey("trial"), None, True)


def test_types_that_3_7_does_not_know_have_a_number_only() -> None:
    record = only_record(LINES["2.2"] + " key: unknown::version=5")

    assert record.key == UnknownKey(5)
    assert not record.is_decoded


def test_a_refused_record_keeps_the_words_of_the_tool() -> None:
    record = only_record(
        LINES["2.2"] + " key: Error at offset 0, skipping. Could not read record with version 0 from value's buffer due to: null."
    )

    assert record.refusal == "Error at offset 0, skipping. Could not read record with version 0 from value's buffer due to: null."


def test_an_end_transaction_marker_is_told_with_its_epoch() -> None:
    record = only_record(LINES["2.2"] + " endTxnMarker: ABORT coordinatorEpoch: 12")

    assert (record.control, record.coordinator_epoch, record.key) == ("ABORT", 12, None)


def test_the_tools_own_exception_ends_the_dump_at_its_record() -> None:
    trace = 'Exception in thread "main" java.lang.NullPointerException\n\tat org.apache.kafka.common.utils.Utils.toArray(Utils.java:212)\n'
    first = LINES["0.11"] + " key: offset::cron-report:orders:0 payload: 300\n"

    dump = parse_dump(HEAD + first + LINES["0.11"].replace("offset: 0", "offset: 74") + trace)

    assert dump.stop == Stop(74, "java.lang.NullPointerException")
    assert [record.offset for record in dump.records] == [0]


def test_gaps_and_cut_bytes_are_told_apart_from_records() -> None:
    notes = "Non-consecutive offsets in 0.log\n  -1 is followed by 36\n  36 is followed by 38\nFound 12 invalid bytes at the end of 0.log\n"

    dump = parse_dump(HEAD + LINES["2.2"] + " key: unknown::version=5\n" + notes)

    assert dump.gaps == [(-1, 36), (36, 38)]
    assert dump.invalid_bytes == 12
    assert dump.records[0].key == UnknownKey(5)


def test_a_shape_that_no_release_prints_is_an_error() -> None:
    with pytest.raises(ValueError, match="no key that any release prints"):
        parse_dump(HEAD + LINES["2.2"] + " key: surprise payload: 1\n")


# What our values look like in Kafka's JSON. Keys, values and texts are of a log that a real broker wrote and 4.3.0 dumped.


def as_kafka_json(key: str, value: str) -> Mapping[str, Any]:
    decoded = decode_record(bytes.fromhex(key), bytes.fromhex(value))
    assert decoded.record_type is not None
    assert decoded.value is not None
    assert decoded.value_version is not None
    assert decoded.layout is not None
    return to_kafka_json(decoded.record_type, decoded.value_version, decoded.value, decoded.layout)


def test_fields_that_a_version_lacks_are_not_printed() -> None:
    number, key = 1, {"group": "g", "topic": "t", "partition": 3}
    value = {"committed_offset": 103, "leader_epoch": 7, "metadata": "m", "commit_timestamp_ms": 1600000000000}

    printed = as_kafka_json(encode_key(number, key).hex(), encode_value(number, 2, value).hex())

    assert json.dumps(printed) == '{"version": "2", "data": {"offset": 103, "metadata": "m", "commitTimestamp": 1600000000000}}'


def test_the_topic_id_tag_is_printed_only_where_it_is_set() -> None:
    key = encode_key(1, {"group": "g", "topic": "t", "partition": 3}).hex()
    value = {"committed_offset": 1, "metadata": "", "commit_timestamp_ms": 5}
    topic_id = "AQIDBAUGBwgJCgsMDQ4PEA"

    assert "topicId" not in as_kafka_json(key, encode_value(1, 4, value).hex())["data"]
    assert as_kafka_json(key, encode_value(1, 4, value | {"topic_id": topic_id}).hex())["data"]["topicId"] == topic_id


def test_a_zero_topic_id_is_printed_as_zeros() -> None:
    value = encode_value(7, 0, {"topic_partitions": [{"topic_id": None, "partitions": [0]}]})

    printed = as_kafka_json(encode_key(7, {"group": "g", "member_id": "A"}).hex(), value.hex())

    assert printed["data"] == {"topicPartitions": [{"topicId": "AAAAAAAAAAAAAAAAAAAAAA", "partitions": [0]}]}


def test_an_explicit_null_in_a_tag_is_printed() -> None:
    member = {"client_id": "app", "client_host": "/h", "classic_member_metadata": None}

    printed = as_kafka_json(encode_key(5, {"group": "g", "member_id": "A"}).hex(), encode_value(5, 0, member).hex())

    assert printed["data"]["classicMemberMetadata"] is None


def group_value(protocol_type: str, subscription: bytes, assignment: bytes) -> str:
    member = {
        "member_id": "A",
        "client_id": "c",
        "client_host": "/h",
        "session_timeout_ms": 9,
        "subscription": subscription,
        "assignment": assignment,
    }
    return encode_value(
        2, 3, {"protocol_type": protocol_type, "generation": 1, "protocol": "range", "leader": "A", "members": [member]}
    ).hex()


SUBSCRIPTION_1 = bytes.fromhex("00010000000100066f7264657273ffffffff00000000")
ASSIGNMENT_1 = bytes.fromhex("00010000000100066f726465727300000003000000000000000100000002ffffffff")
GROUP_KEY = encode_key(2, {"group": "g"}).hex()


def test_members_of_a_consumer_group_are_printed_decoded() -> None:
    (member,) = as_kafka_json(GROUP_KEY, group_value("consumer", SUBSCRIPTION_1, ASSIGNMENT_1))["data"]["members"]

    assert member["subscription"] == {"topics": ["orders"], "userData": None, "ownedPartitions": []}
    assert member["assignment"] == {"assignedPartitions": [{"topic": "orders", "partitions": [0, 1, 2]}], "userData": None}


@pytest.mark.parametrize(("protocol_type", "subscription"), [("connect", SUBSCRIPTION_1), ("consumer", SUBSCRIPTION_1[:9])])
def test_what_is_no_consumer_payload_stays_base64(protocol_type: str, subscription: bytes) -> None:
    (member,) = as_kafka_json(GROUP_KEY, group_value(protocol_type, subscription, b""))["data"]["members"]

    assert base64.b64decode(member["subscription"]) == subscription


def test_the_key_of_an_old_commit_is_printed_with_its_own_type() -> None:
    assert key_to_kafka_json(RECORD_TYPES[0], {"group": "g", "topic": "t", "partition": 0})["type"] == "0"


def test_the_text_before_3_8_has_partitions_in_the_order_of_the_wire() -> None:
    decoded = decode_record(bytes.fromhex(GROUP_KEY), bytes.fromhex(group_value("consumer", SUBSCRIPTION_1, ASSIGNMENT_1)))

    _, payload = to_text(decoded, knows_modern_types=False)

    assert payload == GroupMetadataPayload("consumer", "range", 1, {"A": MemberText(("orders-0", "orders-1", "orders-2"), "")})


# The comparison itself.

SEGMENT = (
    HEAD
    + BATCH.replace("lastOffset: 12 count: 2", "lastOffset: 10 count: 1").replace("lastSequence: 6", "lastSequence: 4")
    + (
        "\n| offset: 10 LogAppendTime: 1795230227423 keySize: 14 valueSize: 22 sequence: 4 headerKeys: []"
        ' key: {"type":"1","data":{"group":"g1","topic":"t1","partition":3}}'
        ' payload: {"version":"2","data":{"offset":103,"metadata":"ok","commitTimestamp":1600000000000}}\n'
    )
)
BATCH_ROW: dict[str, Any] = {
    "byte_position": 462,
    "size_bytes": 1236,
    "base_offset": 10,
    "last_offset": 10,
    "magic": 2,
    "codec": "zstd",
    "timestamp_type": "LogAppendTime",
    "max_timestamp_ms": 1795230227423,
    "partition_leader_epoch": 3,
    "producer_id": 7,
    "producer_epoch": 1,
    "base_sequence": 4,
    "is_transactional": True,
    "is_control": False,
    "delete_horizon_ms": 1700000000000,
    "record_count": 1,
    "crc": 2248747328,
    "crc_status": "mismatch",
}
RECORD_ROW: dict[str, Any] = {
    "byte_position": 462,
    "record_offset": 10,
    "timestamp_type": "LogAppendTime",
    "timestamp_ms": 1795230227423,
    "sequence": 4,
    "is_control": False,
    "magic": 2,
    "key": encode_key(1, {"group": "g1", "topic": "t1", "partition": 3}),
    "value": encode_value(1, 2, {"committed_offset": 103, "metadata": "ok", "commit_timestamp_ms": 1600000000000}),
    "headers": [],
}


def test_equal_rows_have_no_difference_and_are_counted() -> None:
    comparison = compare_dump(parse_dump(SEGMENT), [BATCH_ROW], [RECORD_ROW])

    assert comparison.differences == []
    assert (comparison.decoded, comparison.compared["payload"], comparison.compared["batch crc"]) == (1, 1, 1)


@pytest.mark.parametrize("column", [name for name in BATCH_ROW if name != "byte_position"])
def test_no_column_of_a_batch_can_change_unseen(column: str) -> None:
    value = BATCH_ROW[column]
    changed = not value if isinstance(value, bool) else "ok" if column == "crc_status" else value + 1 if isinstance(value, int) else "none"

    assert compare_dump(parse_dump(SEGMENT), [BATCH_ROW | {column: changed}], [RECORD_ROW]).differences


@pytest.mark.parametrize(
    ("column", "changed"),
    [
        ("record_offset", 11),
        ("timestamp_type", "CreateTime"),
        ("timestamp_ms", 0),
        ("sequence", None),
        ("key", encode_key(1, {"group": "g2", "topic": "t1", "partition": 3})),
        ("value", encode_value(1, 2, {"committed_offset": 103, "metadata": "KO", "commit_timestamp_ms": 1600000000000})),
        ("value", None),
        ("headers", [{"key": "h", "value": b""}]),
    ],
)
def test_no_column_of_a_record_can_change_unseen(column: str, changed: object) -> None:
    assert compare_dump(parse_dump(SEGMENT), [BATCH_ROW], [RECORD_ROW | {column: changed}]).differences


def test_a_record_too_few_is_a_difference() -> None:
    assert compare_dump(parse_dump(SEGMENT), [BATCH_ROW], []).differences


OLD_SEGMENT = HEAD + (
    "offset: 0 position: 0 NoTimestampType: -1 size: 81 magic: 0 compresscodec: none crc: 2595201066 isvalid: true\n"
    "| offset: 0 NoTimestampType: -1 keySize: 27 valueSize: 28 isValid: true crc: 2595201066"
    ' key: {"type":"1","data":{"group":"cron-report","topic":"orders","partition":0}} payload: {"version":"1","data":'
    '{"offset":300,"metadata":"","commitTimestamp":1795232842294,"expireTimestamp":1795232844794}}\n'
)
OLD = {"byte_position": 0, "magic": 0, "timestamp_type": "NoTimestampType", "producer_id": None, "producer_epoch": None}
OLD_BATCH_ROW = BATCH_ROW | OLD | {"size_bytes": 81, "base_offset": 0, "last_offset": 0, "codec": "none", "max_timestamp_ms": None}
OLD_BATCH_ROW |= {"base_sequence": None, "delete_horizon_ms": None, "crc": 2595201066, "crc_status": "ok"}
OLD_RECORD_ROW = RECORD_ROW | OLD | {"record_offset": 0, "timestamp_ms": None, "sequence": None}
OLD_RECORD_ROW |= {"key": bytes.fromhex("0001000b63726f6e2d7265706f727400066f726465727300000000")}
OLD_RECORD_ROW |= {"value": bytes.fromhex("0001000000000000012c0000000001a1fc374236000001a1fc374bfa")}


def test_the_crc_of_an_old_message_is_that_of_the_bytes_read() -> None:
    comparison = compare_dump(parse_dump(OLD_SEGMENT), [OLD_BATCH_ROW], [OLD_RECORD_ROW])

    assert comparison.differences == []
    assert comparison.compared["record crc"] == 1


def test_a_magic_that_is_wrong_shows_in_the_crc_of_an_old_message() -> None:
    comparison = compare_dump(parse_dump(OLD_SEGMENT), [OLD_BATCH_ROW], [OLD_RECORD_ROW | {"magic": 1, "timestamp_ms": 0}])

    assert any("record crc" in difference for difference in comparison.differences)


# Every bundled text.

DUMPS = list(corpus.dump_files())


def test_there_are_dumps_by_the_tools_of_fifteen_releases() -> None:
    assert len(DUMPS) == 350
    assert len({file.release for file in DUMPS}) == 15


def test_every_dump_is_of_a_segment_that_is_here() -> None:
    assert [file.id for file in DUMPS if not file.segment.is_file()] == []


@pytest.fixture(scope="module")
def dumps() -> list[tuple[corpus.DumpFile, DumpedSegment]]:
    return [(file, file.read()) for file in DUMPS]


Dumps = list[tuple[corpus.DumpFile, DumpedSegment]]


def test_every_line_of_every_dump_is_understood(dumps: Dumps) -> None:
    assert sum(len(dump.records) for _, dump in dumps) == 23631
    assert sum(len(dump.batches) for _, dump in dumps) == 8247


def test_the_tool_died_only_in_old_releases(dumps: Dumps) -> None:
    died = [file.release for file, dump in dumps if dump.stop]

    assert sorted(died) == ["0.9.0.1"] * 2 + ["1.1.1"] * 6


def test_only_old_tombstones_have_neither_a_key_nor_a_reason(dumps: Dumps) -> None:
    silent = [record for _, dump in dumps for record in dump.records if not (record.key or record.control or record.refusal)]

    assert len(silent) == 64
    assert all(record.is_tombstone and record.era in ("0.9", "0.10", "0.11") for record in silent)


def test_kafka_refuses_only_what_was_laid_out_otherwise_in_3_7(dumps: Dumps) -> None:
    refused = [(file.case.name, file.release) for file, dump in dumps for record in dump.records if record.refusal]

    assert refused == [("3.7.2-consumer-groups", "4.3.0")] * 77
