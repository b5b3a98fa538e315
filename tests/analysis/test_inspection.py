"""What `inspect` says about a log, and what it says is missing."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.inspection import INSPECTION_TABLES, Inspection
from exhume.cli.demo import DEMO_LOG
from exhume.codecs.record_types import ABORT
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit, tombstone

TIME_MS = 1_700_000_000_000


def inspect(*places: Path, **options: Any) -> Inspection:
    with exhume.open(list(places), **options) as topic:
        return topic.inspect()


def rows(inspection: Inspection, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = inspection.tables()[table].to_pylist()
    return found


def codes(inspection: Inspection) -> set[str]:
    return {finding.code for finding in inspection.findings}


def commit(number: int = 0, **fields: Any) -> Any:
    return offset_commit("g", "t", number, number, commit_timestamp_ms=TIME_MS, **fields)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two segments of partition 7: offsets 0 to 4 and 10 to 12, a transaction and its marker among them."""
    with PartitionWriter(tmp_path, 7) as partition:
        partition.append([commit(0), commit(1)], timestamp_ms=TIME_MS)
        partition.append([tombstone(commit(0)), group_metadata("g", {})], timestamp_ms=TIME_MS + 5, codec=1)
        partition.append([(b"\x00\x63later", b"")], timestamp_ms=TIME_MS + 1)
        partition.roll(10)
        partition.append([commit(2, version=1, expire_timestamp_ms=-1)], producer_id=5, producer_epoch=0, is_transactional=True)
        partition.append_marker(ABORT, producer_id=5, producer_epoch=0)
        partition.append([commit(3)], timestamp_ms=TIME_MS - 9)
    return tmp_path


def checkpoint(directory: Path, name: str, entries: dict[int, int]) -> None:
    lines = [f"__consumer_offsets {partition} {offset}" for partition, offset in entries.items()]
    (directory / f"{name}-offset-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines, ""]), encoding="ascii")


def test_every_table_is_there_with_its_schema(log: Path) -> None:
    tables = inspect(log).tables()

    assert {name: table.schema for name, table in tables.items()} == dict(INSPECTION_TABLES)


def test_a_partition_is_counted_over_its_segments(log: Path) -> None:
    [partition] = rows(inspect(log), "partitions")

    assert (partition["offsets_partition"], partition["segment_count"], partition["batch_count"], partition["record_count"]) == (7, 2, 6, 8)
    assert (partition["tombstone_count"], partition["first_offset"], partition["last_offset"]) == (1, 0, 12)
    assert partition["size_bytes"] == sum(path.stat().st_size for path in log.glob("*/*.log"))
    assert (partition["min_timestamp_ms"], partition["max_timestamp_ms"]) == (0, TIME_MS + 5)
    assert (partition["missing_offsets"], partition["damaged_bytes"]) == (5, 0)


def test_a_segment_says_what_it_holds(log: Path) -> None:
    first, second = rows(inspect(log), "segments")

    assert (first["base_offset"], first["first_offset"], first["last_offset"], first["record_count"]) == (0, 0, 4, 5)
    assert (second["base_offset"], second["first_offset"], second["last_offset"], second["record_count"]) == (10, 10, 12, 3)
    assert (first["magics"], first["codecs"], second["codecs"]) == ([2], ["gzip", "none"], ["none"])
    assert first["damage"] is second["damage"] is None


@pytest.mark.parametrize("magic", [0, 1])
def test_a_segment_of_an_old_format_says_so(tmp_path: Path, magic: int) -> None:
    with PartitionWriter(tmp_path, 0) as partition:
        partition.append([commit(0), commit(1)], magic=magic, codec=3, timestamp_ms=TIME_MS)
        partition.append([commit(2)], magic=2, timestamp_ms=TIME_MS)
    [segment] = rows(inspect(tmp_path), "segments")

    assert (segment["magics"], segment["codecs"], segment["first_offset"], segment["last_offset"]) == ([magic, 2], ["lz4", "none"], 0, 2)


def test_record_types_are_counted_by_version_tombstone_and_transaction(log: Path) -> None:
    found = rows(inspect(log), "record_types")

    assert [
        (row["record_type"], row["type"], row["value_version"], row["is_tombstone"], row["is_transactional"], row["record_count"])
        for row in found
    ] == [
        (None, "end_txn_marker", 0, False, True, 1),
        (1, "offset_commit", None, True, False, 1),
        (1, "offset_commit", 1, False, True, 1),
        (1, "offset_commit", 3, False, False, 3),
        (2, "group_metadata", 3, False, False, 1),
        (99, "unknown", None, False, False, 1),
    ]
    assert {row["record_type"]: row["marked_count"] for row in found}[99] == 1


def test_a_gap_is_named_with_the_place_behind_it(log: Path) -> None:
    [gap] = rows(inspect(log), "gaps")

    assert (gap["first_missing_offset"], gap["last_missing_offset"], gap["missing_offsets"], gap["byte_position"]) == (5, 9, 5, 0)
    assert gap["path"].endswith("00000000000000000010.log")


def test_gaps_are_no_findings(log: Path) -> None:
    assert codes(inspect(log)) == {"no_checkpoints"}


def test_leftovers_are_listed_and_not_counted(log: Path) -> None:
    segment = next(log.glob("*/00000000000000000000.log"))
    shutil.copy(segment, segment.with_name(segment.name + ".deleted"))
    listed, included = inspect(log), inspect(log, include=["deleted"])

    assert [(row["origin"], row["is_read"]) for row in rows(listed, "segments")] == [("log", True), ("deleted", False), ("log", True)]
    assert [row["record_count"] for row in rows(listed, "segments")] == [5, None, 3]
    assert rows(listed, "partitions")[0]["record_count"] == 8
    assert rows(included, "partitions")[0]["record_count"] == 13
    assert not listed.findings.has_damage


def test_damage_is_summed_and_named_beside_its_segment(log: Path) -> None:
    segment = next(log.glob("*/00000000000000000000.log"))
    content = bytearray(segment.read_bytes())
    first_size = 12 + struct.unpack_from(">i", content, 8)[0]
    content[first_size - 3] ^= 1
    segment.write_bytes(content)
    inspection = inspect(log)
    [damaged, whole] = rows(inspection, "segments")

    assert (damaged["damage"], damaged["damaged_bytes"]) == ("crc_mismatch", first_size)
    assert (whole["damage"], whole["damaged_bytes"]) == (None, 0)
    assert rows(inspection, "partitions")[0]["damaged_bytes"] == first_size
    assert inspection.findings.has_damage


def test_checkpoints_stand_beside_the_partition(log: Path) -> None:
    for name, offset in (("replication", 13), ("recovery-point", 12), ("log-start", 1), ("cleaner", 4)):
        checkpoint(log, name, {7: offset, 8: 99})
    inspection = inspect(log)
    [partition] = rows(inspection, "partitions")

    assert [partition[name] for name in ("high_watermark", "recovery_point", "log_start_offset", "first_dirty_offset")] == [13, 12, 1, 4]
    assert len(rows(inspection, "checkpoints")) == 8
    assert "no_checkpoints" not in codes(inspection)


def test_a_log_that_ends_below_its_high_watermark_is_reported(log: Path) -> None:
    checkpoint(log, "replication", {7: 20})
    [finding] = [finding for finding in inspect(log).findings if finding.code == "log_ends_early"]

    assert finding.sentence == "the log ends at 13, the high watermark was 20"
    assert (finding.confidence, finding.is_damage, finding.last_record_offset) == ("likely", False, 12)


def test_a_missing_first_segment_is_reported(log: Path) -> None:
    for path in log.glob("*/00000000000000000000.*"):
        path.unlink()

    assert codes(inspect(log)) == {"no_checkpoints", "earlier_segments_missing"}


def test_a_missing_segment_whose_indexes_are_there_is_reported(log: Path) -> None:
    next(log.glob("*/00000000000000000010.log")).unlink()

    assert "orphan_index" in codes(inspect(log))


@pytest.mark.parametrize(("emptied", "severity"), [("00000000000000000010.log", "info"), ("00000000000000000000.log", "warn")])
def test_an_empty_segment_is_reported_and_is_suspicious_where_it_is_not_the_newest(log: Path, emptied: str, severity: str) -> None:
    segment = next(log.glob(f"*/{emptied}"))
    segment.write_bytes(b"")
    [finding] = [finding for finding in inspect(log).findings if finding.code == "empty_segment"]

    assert (finding.path, finding.byte_position, finding.severity, finding.is_damage) == (str(segment), 0, severity, False)
    assert finding.remedy


def test_indexes_and_epochs_are_shown(log: Path) -> None:
    inspection = inspect(log)

    assert {row["kind"] for row in rows(inspection, "indexes")} == {"index", "timeindex"}
    assert [(row["leader_epoch"], row["start_offset"]) for row in rows(inspection, "leader_epochs")] == [(0, 0)]


def test_a_real_directory_shows_its_producer_snapshots_and_its_broker() -> None:
    inspection = inspect(DEMO_LOG)
    [directory] = rows(inspection, "log_directories")

    assert (directory["broker_id"], directory["is_whole"], directory["clean_shutdown"]) == (1, True, True)
    assert len(rows(inspection, "partitions")) == 4
    assert not [finding for finding in inspection.findings if finding.severity != "info"]


def test_a_snapshot_that_cannot_be_read_is_a_finding_and_no_damage(log: Path) -> None:
    snapshot = next(log.glob("*")) / "00000000000000000010.snapshot"
    snapshot.write_bytes(b"\x00\x01garbage")
    inspection = inspect(log)
    [finding] = [finding for finding in inspection.findings if finding.code == "snapshot_unreadable"]

    assert finding.path == str(snapshot)
    assert not inspection.findings.has_damage


def test_replicas_are_told_apart(log: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other") / "copy"
    shutil.copytree(log, other)
    inspection = inspect(log, other)

    assert len({row["replica"] for row in rows(inspection, "partitions")}) == 2
    assert [row["record_count"] for row in rows(inspection, "partitions")] == [8, 8]


def test_the_order_of_the_segments_is_that_of_their_offsets(tmp_path: Path) -> None:
    def first_offsets(found: Iterable[dict[str, Any]]) -> list[int]:
        return [row["base_offset"] for row in found]

    with PartitionWriter(tmp_path, 0) as partition:
        for base_offset in (9, 100, 1000):
            partition.append([commit(0)], timestamp_ms=TIME_MS)
            partition.roll(base_offset)

    assert first_offsets(rows(inspect(tmp_path), "segments")) == [0, 9, 100, 1000]
