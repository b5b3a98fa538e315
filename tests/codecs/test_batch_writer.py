"""Batches we write, and batches of brokers written again."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.batch_format import HEADER_BYTES
from exhume.codecs.batch_writer import NewRecord, encode_batch, rewrite_batch
from exhume.codecs.batches import Batch, BatchWalk, crc_matches, read_batch_header
from exhume.codecs.compression import decompress
from exhume.codecs.records import read_records
from exhume.codecs.wire import Reader
from exhume.errors import EncodeError, EvidenceError
from tests.codecs.raw_batches import GOLDEN, T

PAIR = [NewRecord(10, T, b"a", b"1"), NewRecord(11, T + 5, b"b", b"2")]
MARKER: dict[str, Any] = {"producer_id": 1000, "producer_epoch": 3, "is_transactional": True, "is_control": True}
#: How each golden batch is written from its records: the bytes must be Kafka's own.
WRITTEN: dict[str, tuple[list[NewRecord], dict[str, Any]]] = {
    "v0-kv": ([NewRecord(0, None, b"k", b"v")], {"magic": 0, "base_offset": 0}),
    "v0-nulls": ([NewRecord(7, None, None, None)], {"magic": 0, "base_offset": 7}),
    "v1-tomb": ([NewRecord(1, T, b"k", None)], {"magic": 1, "base_offset": 1}),
    "v1-lat": ([NewRecord(1, T + 99_999, b"k", b"v")], {"magic": 1, "base_offset": 1, "timestamp_type": "LogAppendTime"}),
    "v0-lz4": (PAIR, {"magic": 0, "base_offset": 10, "codec": 3}),
    "v1-lz4": (PAIR, {"magic": 1, "base_offset": 10, "codec": 3}),
    "v1-snappy-lat": (
        PAIR,
        {"magic": 1, "base_offset": 10, "codec": 2, "timestamp_type": "LogAppendTime", "max_timestamp_ms": T + 99_999},
    ),
    "v1-gz-compacted": (
        [NewRecord(41, T + 1, b"b", b"2"), NewRecord(43, T + 3, b"d", b"4")],
        {"magic": 1, "base_offset": 41, "codec": 1},
    ),
    "v2-two": (PAIR, {"base_offset": 10}),
    "v2-headers": ([NewRecord(10, T, b"k", b"v", (("h", b"x"), ("n", None)))], {"base_offset": 10}),
    "v2-txn": (
        [NewRecord(10, T, b"k", b"v")],
        {"base_offset": 10, "producer_id": 1000, "producer_epoch": 3, "base_sequence": 0, "is_transactional": True},
    ),
    "v2-snappy": (PAIR, {"base_offset": 10, "codec": 2}),
    "v2-lz4": (PAIR, {"base_offset": 10, "codec": 3}),
    "v2-zstd": (PAIR, {"base_offset": 10, "codec": 4}),
    "v2-gzip": (PAIR, {"base_offset": 10, "codec": 1}),
    "v2-commit": ([NewRecord(12, T + 9, b"\0\0\0\1", b"\0\0\0\0\0\x2a")], {"base_offset": 12, **MARKER}),
    "v2-abort": ([NewRecord(13, T + 9, b"\0\0\0\0", b"\0\0\0\0\0\x2a")], {"base_offset": 13, **MARKER}),
    "v2-horizon": (
        [NewRecord(21, T + 1, b"b", None)],
        {"base_offset": 20, "last_offset_delta": 2, "delete_horizon_ms": 1_600_087_400_000},
    ),
    "v2-empty": (
        [],
        {
            "base_offset": 30,
            "last_offset_delta": 1,
            "max_timestamp_ms": T + 1,
            "producer_id": 1000,
            "producer_epoch": 3,
            "base_sequence": 7,
            "is_transactional": True,
        },
    ),
}


def record_section(data: bytes, batch: Batch) -> bytes:
    """What the batch holds, unfolded."""
    if batch.magic == 2:
        return decompress(batch.codec, data[batch.byte_position + HEADER_BYTES[2] : batch.end_position], magic=2)
    reader = Reader(data, batch.byte_position + HEADER_BYTES[batch.magic] - 8, batch.end_position)
    reader.nullable_blob()
    return decompress(batch.codec, reader.nullable_blob() or b"", magic=batch.magic)


def header_aside_from_size_and_checksum(data: bytes, batch: Batch) -> tuple[Batch, bytes]:
    return replace(batch, byte_position=0, size_bytes=0, crc=0), record_section(data, batch)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_batch_made_of_the_same_records_is_the_one_that_kafka_wrote(name: str) -> None:
    records, settings = WRITTEN[name]
    settings = {"partition_leader_epoch": 5, **settings}
    written, kafkas = encode_batch(records, **settings), GOLDEN[name]
    batch, kafkas_batch = read_batch_header(written, 0), read_batch_header(kafkas, 0)

    assert header_aside_from_size_and_checksum(written, batch) == header_aside_from_size_and_checksum(kafkas, kafkas_batch)
    assert crc_matches(written, batch)
    assert batch.codec != 0 or written == kafkas


@pytest.mark.parametrize("name", ["v1-snappy-lat", "v2-lz4", "v2-snappy"])
def test_the_compressed_streams_of_these_batches_are_kafkas_too(name: str) -> None:
    records, settings = WRITTEN[name]

    assert encode_batch(records, **{"partition_leader_epoch": 5, **settings}) == GOLDEN[name]


@pytest.mark.parametrize("name", GOLDEN)
def test_a_golden_batch_written_again_is_itself(name: str) -> None:
    data = GOLDEN[name]
    batch = read_batch_header(data, 0)
    again = rewrite_batch(batch, list(read_records(data, batch)), data)
    batch_again = read_batch_header(again, 0)

    assert header_aside_from_size_and_checksum(again, batch_again) == header_aside_from_size_and_checksum(data, batch)
    assert batch.codec != 0 or again == data


def test_deltas_under_log_append_time_survive_writing_again() -> None:
    data = encode_batch(PAIR, base_offset=10, timestamp_type="LogAppendTime", max_timestamp_ms=T + 500)
    batch = read_batch_header(data, 0)

    assert rewrite_batch(batch, list(read_records(data, batch)), data) == data


def test_unused_attributes_and_a_lying_count_survive_writing_again() -> None:
    data = bytearray(encode_batch(PAIR, base_offset=10))
    data[21] = 0x11
    batch = read_batch_header(data, 0)
    records = list(read_records(data, batch))

    again = read_batch_header(rewrite_batch(replace(batch, record_count=7), records, data), 0)
    assert (again.attributes, again.record_count) == (0x1100, 7)


def test_a_wrapper_keeps_its_key_when_written_again() -> None:
    inner = encode_batch([NewRecord(0, T, b"k", b"v")], base_offset=0, magic=1, codec=1)
    stream = inner[34:]
    data = encode_batch([NewRecord(0, T, b"key", stream)], base_offset=0, magic=1)
    keyed = replace(read_batch_header(data, 0), attributes=1, codec=1, base_offset=None, record_count=None)
    again = rewrite_batch(keyed, list(read_records(data, keyed)), data)

    assert Reader(again, 26).nullable_blob() == b"key"


def test_inner_offsets_of_format_1_count_from_the_base_offset() -> None:
    data = encode_batch(PAIR, base_offset=10, magic=1, codec=1)

    assert [record.stored_offset for record in read_records(data, read_batch_header(data, 0))] == [0, 1]


def test_inner_offsets_of_format_0_are_absolute() -> None:
    data = encode_batch(PAIR, base_offset=10, magic=0, codec=1)

    assert [record.stored_offset for record in read_records(data, read_batch_header(data, 0))] == [10, 11]


def test_an_uncompressed_run_of_old_messages_is_one_entry_each() -> None:
    assert [batch.last_offset for batch in BatchWalk(encode_batch(PAIR, base_offset=10, magic=1))] == [10, 11]


def test_record_timestamps_under_a_delete_horizon_stay_exact() -> None:
    data = encode_batch(PAIR, base_offset=10, delete_horizon_ms=T + 86_400_000)

    assert [record.timestamp_ms for record in read_records(data, read_batch_header(data, 0))] == [T, T + 5]


def test_an_empty_batch_has_no_codec() -> None:
    data = encode_batch([], base_offset=0, codec=3)

    assert (len(data), read_batch_header(data, 0).codec) == (61, 0)


@pytest.mark.parametrize(
    "settings",
    [
        {"magic": 3},
        {"magic": -1},
        {"magic": 1, "codec": 4},
        {"codec": 5},
        {"magic": 1, "producer_id": 1},
        {"magic": 1, "is_transactional": True},
        {"magic": 0, "is_control": True},
        {"magic": 0, "delete_horizon_ms": 1},
        {"magic": 1, "last_offset_delta": 9},
        {"base_offset": 2**63},
        {"base_sequence": 2**31},
        {"last_offset_delta": 2**31},
    ],
    ids=str,
)
def test_what_the_format_cannot_say_is_an_encode_error(settings: dict[str, Any]) -> None:
    with pytest.raises(EncodeError):
        encode_batch(PAIR, **{"base_offset": 10, **settings})


def test_old_formats_have_neither_headers_nor_empty_batches() -> None:
    with pytest.raises(EncodeError, match="headers"):
        encode_batch([NewRecord(0, T, b"k", b"v", (("h", b"x"),))], base_offset=0, magic=1)
    with pytest.raises(EncodeError, match="empty batches"):
        encode_batch([], base_offset=0, magic=1)


# --- Round trips

CONTENT = st.none() | st.binary(max_size=40)
TIMESTAMPS = st.none() | st.integers(0, 2**42)


@st.composite
def record_runs(draw: st.DrawFn, *, headers: bool = True) -> list[NewRecord]:
    offset = draw(st.integers(0, 2**40))
    records = []
    for _ in range(draw(st.integers(1, 6))):
        names = draw(st.lists(st.tuples(st.text(max_size=5), CONTENT), max_size=2)) if headers else []
        records.append(NewRecord(offset, draw(TIMESTAMPS), draw(CONTENT), draw(CONTENT), names))
        offset += draw(st.integers(1, 1000))
    return records


def as_new(data: bytes) -> list[NewRecord]:
    return [
        NewRecord(record.record_offset, record.timestamp_ms, record.key, record.value, record.headers)
        for batch in BatchWalk(data)
        for record in read_records(data, batch)
    ]


@given(
    records=record_runs(),
    codec=st.sampled_from([0, 1, 2, 3, 4]),
    has_horizon=st.booleans(),
    producer_id=st.integers(-1, 2**62),
    base_sequence=st.integers(-1, 2**31 - 1),
    removed=st.integers(0, 9),
)
def test_format_2_says_back_what_it_was_told(
    *, records: list[NewRecord], codec: int, has_horizon: bool, producer_id: int, base_sequence: int, removed: int
) -> None:
    base_offset = max(records[0].offset - removed, 0)
    data = encode_batch(
        records,
        base_offset=base_offset,
        codec=codec,
        producer_id=producer_id,
        base_sequence=base_sequence,
        last_offset_delta=records[-1].offset - base_offset + removed,
        delete_horizon_ms=T if has_horizon else None,
    )
    batch = read_batch_header(data, 0)

    assert as_new(data) == records
    assert crc_matches(data, batch)
    assert (batch.base_offset, batch.last_offset) == (base_offset, records[-1].offset + removed)
    assert (batch.producer_id, batch.base_sequence, batch.record_count) == (producer_id, base_sequence, len(records))
    assert rewrite_batch(batch, list(read_records(data, batch)), data) == data


@given(record_runs(headers=False), st.sampled_from([0, 1]), st.sampled_from([0, 1, 2, 3]))
def test_formats_0_and_1_say_back_what_they_were_told(records: list[NewRecord], magic: int, codec: int) -> None:
    data = encode_batch(records, base_offset=records[0].offset, magic=magic, codec=codec)
    expected = [replace(record, timestamp_ms=record.timestamp_ms if magic else None) for record in records]

    assert as_new(data) == expected
    assert all(crc_matches(data, batch) for batch in BatchWalk(data))
    assert b"".join(rewrite_batch(batch, list(read_records(data, batch)), data) for batch in BatchWalk(data)) == data


# --- All that real brokers wrote

CORPUS = os.environ.get("EXHUME_CORPUS")
#: Stories whose log was damaged on purpose, and what that does to a strict walk.
DAMAGED = {
    "count-wrong": "refused",
    "crc-flip": "checksum",
    "lz4-linked": "refused",
    "magic-5": "bad_magic",
    "size-up": "cut_batch",
    "tail-cut": "cut_batch",
    "tail-zero": "size_too_small",
}


def verdict(data: bytes, counts: Counter[str]) -> str:
    """What is wrong with the first batch of this log that is not whole; writes every batch again that is."""
    batches = BatchWalk(data)
    for batch in batches:
        if not crc_matches(data, batch):
            return "checksum"
        try:
            records = list(read_records(data, batch))
        except EvidenceError:
            return "refused"
        again = rewrite_batch(batch, records, data)
        if batch.codec:
            batch_again = read_batch_header(again, 0)
            assert header_aside_from_size_and_checksum(again, batch_again) == header_aside_from_size_and_checksum(data, batch)
        else:
            assert again == data[batch.byte_position : batch.end_position]
        counts["compressed" if batch.codec else "uncompressed"] += 1
        counts["records"] += len(records)
    assert batches.end is not None
    return batches.end.reason


@pytest.mark.corpus
@pytest.mark.skipif(CORPUS is None, reason="set EXHUME_CORPUS to a directory of logs that brokers wrote")
def test_every_batch_of_every_broker_is_written_again_as_it_was() -> None:
    counts: Counter[str] = Counter()
    wrong = {}
    for path in sorted(Path(CORPUS or "").rglob("*.log*")):
        story = next((name for name in DAMAGED if any(part.startswith(name) for part in path.parts)), None)
        found = verdict(path.read_bytes(), counts)
        if found != DAMAGED.get(story or "", "end"):
            wrong[str(path)] = found

    assert wrong == {}
    assert min(counts["records"], counts["compressed"], counts["uncompressed"]) > 5000
