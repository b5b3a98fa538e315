"""Kafka's DumpLogSegments reads our logs: rewritten logs of real brokers, and batches of our own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.codecs.batch_writer import NewRecord, encode_batch, rewrite_batch
from exhume.codecs.batches import BatchWalk
from exhume.codecs.compression import codec_name
from exhume.codecs.record_types import (
    ABORT,
    COMMIT,
    decode_control_record,
    decode_record,
    encode_control_record,
    encode_key,
    encode_value,
)
from exhume.codecs.records import Record, read_records
from exhume.fixtures.log_writer import KeyValue, group_metadata, offset_commit, tombstone
from tests.compared import Compared
from tests.judges.corpus import BUNDLED
from tests.judges.dump_comparison import compare_dump
from tests.judges.kafka_dump import DumpedBatch, DumpedSegment

from .kafka import installed

pytestmark = pytest.mark.broker

#: Their tools read all formats and value versions of these tests. Earlier ones do not, and 1.1 fails at groups without a protocol.
#: The tools of 4.4.0 are not on Maven Central.
RELEASES = ("2.8.2", "3.9.1", "4.0.0", "4.3.0")
FORMATS_AND_CODECS = [(magic, codec) for magic in (0, 1, 2) for codec in range(5 if magic == 2 else 4)]


# Logs of real brokers, written again.


@dataclass(slots=True)
class Rewritten:
    """Rewritten segments by their paths below `tests/data`, and Kafka's reading of the originals and of the copies."""

    release: str
    segments: list[str]
    originals: dict[str, DumpedSegment]
    copies: dict[str, DumpedSegment]
    #: The origin of key and value of each record: encoded, control, or kept.
    records: Counter[str]
    #: (format, codec) of the batches.
    batches: Counter[tuple[int, int]]


def _segments(release: str) -> Iterator[Path]:
    """Return the segments of the real brokers' logs that this release can read."""
    for story in sorted(BUNDLED.glob("[0-9]*")):
        # 2.8 stops at the first record type of the Java coordinator. Up to 3.6 no broker wrote one.
        if release != "2.8.2" or story.name < "3.7":
            yield from sorted(path for path in story.glob("data*/__consumer_offsets-*/*.log") if path.stat().st_size)


@pytest.fixture(scope="module", params=RELEASES)
def rewritten(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Rewritten:
    kafka = installed(request.param)
    directory = tmp_path_factory.mktemp(f"rewritten-{kafka.release}")
    records: Counter[str] = Counter()
    batches: Counter[tuple[int, int]] = Counter()
    segments = []
    for path in _segments(kafka.release):
        segment = path.relative_to(BUNDLED)
        copy = directory / segment
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(_rewrite_segment(path.read_bytes(), records, batches))
        segments.append(str(segment))
    return Rewritten(kafka.release, segments, kafka.dump(BUNDLED, segments), kafka.dump(directory, segments), records, batches)


def _rewrite_segment(data: bytes, records: Counter[str], batches: Counter[tuple[int, int]]) -> bytes:
    """Return this segment with each batch decoded to the last field and encoded again. Bytes that are no batch stay unchanged."""
    written = b""
    batch_walk = BatchWalk(data)
    for batch in batch_walk:
        rewrite = _rewrite_control_record if batch.is_control else _rewrite_data_record
        written += rewrite_batch(batch, [rewrite(record, records) for record in read_records(data, batch)], data)
        batches[batch.magic, batch.codec] += 1
    assert batch_walk.end is not None
    return written + data[batch_walk.end.byte_position :]


def _rewrite_data_record(record: Record, counts: Counter[str]) -> Record:
    decoded = decode_record(record.key, record.value)
    # The layout that only 3.7 wrote is also known.
    if decoded.number is None or set(decoded.marks) - {"early_layout"}:
        counts["kept"] += 1
        return record
    counts["encoded"] += 1
    value = None
    if decoded.value is not None and decoded.value_version is not None:
        value = encode_value(decoded.number, decoded.value_version, decoded.value, layout=decoded.layout)
    return replace(record, key=encode_key(decoded.number, decoded.key), value=value)


def _rewrite_control_record(record: Record, counts: Counter[str]) -> Record:
    decoded = decode_control_record(record.key, record.value)
    assert decoded.number is not None
    assert decoded.value is not None
    counts["control"] += 1
    key, value = encode_control_record(decoded.number, decoded.value)
    return replace(record, key=key, value=value)


def test_kafka_reads_every_record_of_a_rewritten_log_as_it_reads_the_original(rewritten: Rewritten, compared: Compared) -> None:
    for segment in rewritten.segments:
        original, copy = rewritten.originals[segment], rewritten.copies[segment]

        assert list(_comparable_records(copy)) == list(_comparable_records(original)), segment
        compared["records, written again", f"dump of {rewritten.release}"] += len(copy.records)


def _comparable_records(dump: DumpedSegment) -> Iterator[Any]:
    """Return the records without the properties of their compressed batches."""
    for record in dump.records:
        is_compressed = record.codec not in (None, "none")
        yield replace(record, position=None, batch_size=None if is_compressed else record.batch_size)


def test_kafka_reads_every_batch_of_a_rewritten_log_as_it_reads_the_original(rewritten: Rewritten, compared: Compared) -> None:
    for segment in rewritten.segments:
        original, copy = rewritten.originals[segment], rewritten.copies[segment]

        assert list(_comparable_batches(copy)) == list(_comparable_batches(original)), segment
        compared["batches, written again", f"dump of {rewritten.release}"] += len(copy.batches)


def _comparable_batches(dump: DumpedSegment) -> Iterator[DumpedBatch]:
    """Return the batches with the bytes before each as its position, without the properties of their compressed streams."""
    end = 0
    for batch in dump.batches:
        comparable = replace(batch, position=batch.position - end)
        end = batch.position + batch.size
        yield comparable if batch.codec == "none" else replace(comparable, size=0, crc=0)


def test_kafka_finds_every_checksum_of_a_rewritten_log_right(rewritten: Rewritten) -> None:
    wrong = [segment for segment in rewritten.segments for batch in rewritten.copies[segment].batches if not batch.is_valid]

    assert wrong == [segment for segment in rewritten.segments for batch in rewritten.originals[segment].batches if not batch.is_valid]


def test_kafka_reads_bytes_that_are_no_batch_alike(rewritten: Rewritten) -> None:
    for segment in rewritten.segments:
        original, copy = rewritten.originals[segment], rewritten.copies[segment]

        assert (copy.gaps, copy.invalid_bytes, copy.stop) == (original.gaps, original.invalid_bytes, original.stop), segment


def test_every_record_of_these_logs_was_encoded_anew(rewritten: Rewritten) -> None:
    assert rewritten.records["kept"] == 0
    assert rewritten.records["encoded"] > 8000
    assert rewritten.records["control"] > 80


def test_the_rewritten_logs_have_every_format_and_codec(rewritten: Rewritten) -> None:
    assert set(rewritten.batches) == set(FORMATS_AND_CODECS)


# Batches that we make.

T = 1_700_000_000_000
_TRANSACTIONAL: dict[str, Any] = {"producer_id": 4000, "producer_epoch": 2, "is_transactional": True}


@dataclass(frozen=True, slots=True)
class NewBatch:
    """Records, and the other arguments of `encode_batch`."""

    records: list[NewRecord]
    settings: dict[str, Any] = field(default_factory=dict)

    def seen(self) -> Iterator[tuple[int, int | None, bytes | None, bytes | None]]:
        """Return the record offset, timestamp, key and value of each record."""
        append_time = self.settings["max_timestamp_ms"] if self.settings.get("timestamp_type") == "LogAppendTime" else None
        for record in self.records:
            yield record.offset, append_time or record.timestamp_ms, record.key, record.value


COMMITS = [offset_commit("billing", "orders", version, 7, commit_timestamp_ms=T, version=version, metadata="é") for version in range(4)]
#: The batch of a topic with LogAppendTime. Its records have other creation times.
APPENDED_LATER = NewBatch(
    [NewRecord(120, T + 120, *COMMITS[2]), NewRecord(121, T + 121, *tombstone(COMMITS[2]))],
    {"timestamp_type": "LogAppendTime", "max_timestamp_ms": T + 99_999},
)


def _new_batches(magic: int, codec: int, *, with_delete_horizon: bool) -> list[NewBatch]:
    """Return batches with all features of a format, at record offsets from 100 on."""

    def record(offset: int, key_value: KeyValue, **fields: Any) -> NewRecord:
        return NewRecord(offset, T + offset if magic else None, *key_value, **fields)

    group = group_metadata("billing", {"protocol_type": "consumer", "generation": 3, "current_state_timestamp_ms": T})
    new = [
        NewBatch([record(100 + index, key_value) for index, key_value in enumerate([*COMMITS, group, tombstone(group)])]),
        # Compacted: offsets are missing before, between and after the records.
        NewBatch([record(111, COMMITS[0]), record(114, COMMITS[1])], {"base_offset": 110} if magic == 2 else {}),
    ]
    if magic == 2 or (magic == 1 and not codec):
        new.append(APPENDED_LATER)
    if magic == 2:
        headers = (("origin", b"\x00\x01"), ("nothing", None))
        new += [
            NewBatch([record(130, COMMITS[3], headers=headers), record(131, COMMITS[1])], _TRANSACTIONAL | {"base_sequence": 2**31 - 1}),
            NewBatch([record(132, encode_control_record(COMMIT, {"coordinator_epoch": 9}))], _TRANSACTIONAL | {"is_control": True}),
            NewBatch([record(133, encode_control_record(ABORT, {"coordinator_epoch": 10}))], _TRANSACTIONAL | {"is_control": True}),
            NewBatch([], _TRANSACTIONAL | {"base_offset": 140, "last_offset_delta": 3, "base_sequence": 5, "max_timestamp_ms": T}),
        ]
        if with_delete_horizon:
            new.append(NewBatch([record(150, tombstone(group))], {"delete_horizon_ms": T + 86_400_000, "last_offset_delta": 2}))
    return new


def _encode(batch: NewBatch, magic: int, codec: int) -> bytes:
    first = batch.records[0].offset if batch.records else 0
    leader_epoch = {"partition_leader_epoch": 5} if magic == 2 else {}
    settings = {"base_offset": first} | leader_epoch | batch.settings
    # Control records are never compressed.
    return encode_batch(batch.records, magic=magic, codec=0 if settings.get("is_control") else codec, **settings)


def _write_segment(directory: Path, name: str, batches: bytes) -> str:
    """Write a segment that begins at record offset 100; returns its path in `directory`."""
    segment = f"{name}/__consumer_offsets-0/{100:020d}.log"
    (directory / segment).parent.mkdir(parents=True)
    (directory / segment).write_bytes(batches)
    return segment


@pytest.mark.parametrize("release", RELEASES)
def test_kafka_reads_new_batches_of_every_format_and_codec_as_we_do(release: str, tmp_path: Path, compared: Compared) -> None:
    kafka = installed(release)
    written = {}
    for magic, codec in FORMATS_AND_CODECS:
        # 2.8 shows a delete horizon as a timestamp.
        batches = _new_batches(magic, codec, with_delete_horizon=kafka.version >= (3,))
        data = b"".join(_encode(batch, magic, codec) for batch in batches)
        segment = _write_segment(tmp_path, f"format-{magic}-{codec_name(codec)}", data)
        written[segment] = [seen for batch in batches for seen in batch.seen()]

    dumps = kafka.dump(tmp_path, list(written))

    for segment, records in written.items():
        with exhume.open(tmp_path / segment) as topic:
            batch_rows, rows = topic.batches().read_all().to_pylist(), topic.records().read_all().to_pylist()
        assert [(row["record_offset"], row["timestamp_ms"], row["key"], row["value"]) for row in rows] == records, segment
        comparison = compare_dump(dumps[segment], batch_rows, rows)
        assert comparison.differences == []
        assert all(batch.is_valid for batch in dumps[segment].batches), segment
        assert comparison.decoded + comparison.control == len(records), segment
        compared["records of new batches", f"dump of {release}"] += len(records)


@pytest.mark.parametrize("release", RELEASES)
def test_kafka_gives_all_records_of_a_format_1_wrapper_the_time_of_appending(release: str, tmp_path: Path) -> None:
    segments = [_write_segment(tmp_path, codec_name(codec), _encode(APPENDED_LATER, 1, codec)) for codec in (1, 2, 3)]

    dumps = installed(release).dump(tmp_path, segments)

    for segment in segments:
        seen = [(record.offset, record.timestamp_type, record.timestamp_ms) for record in dumps[segment].records]
        assert seen == [(120, "LogAppendTime", T + 99_999), (121, "LogAppendTime", T + 99_999)], segment
        assert [batch.is_valid for batch in dumps[segment].batches] == [True]
        assert not any(record.is_valid is False for record in dumps[segment].records)
