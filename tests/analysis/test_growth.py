"""What fills the topic, against a count record by record, and what compaction frees, against a cleaner."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.growth import COMPACTION, GROWTH, Growth, GrowthBy, growth_sentence
from exhume.cli.app import run
from exhume.codecs.log_directory import discover
from exhume.codecs.record_types import decode_record
from exhume.codecs.segment_reader import ReadOptions
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit, tombstone, write_checkpoint
from exhume.fixtures.partition_log import MessageForm, PartitionLog
from exhume.topic import OffsetsTopic
from tests.judges import corpus
from tests.twins import COMPILED, PLAIN, reading

T0_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
TRANSACTION = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0, "is_transactional": True}
LABELS: tuple[GrowthBy, ...] = ("group", "topic", "type", "hour")
BY_RECORD, BY_KERNELS = PLAIN, COMPILED


def commit(offset: int, partition: int = 0, *, group: str = "pay", **fields: Any) -> KeyValue:
    return offset_commit(group, "orders", partition, offset, commit_timestamp_ms=T0_MS, **fields)


def growth(directory: Path, by: GrowthBy = "group", *, least_bytes: int = BY_RECORD, **options: Any) -> Growth:
    with reading(least_bytes), OffsetsTopic(discover([str(directory)]), ReadOptions(least_compiled_bytes=least_bytes)) as topic:
        return topic.growth(by, **options)


def counted(directory: Path, by: GrowthBy) -> dict[tuple[Any, ...], dict[str, int]]:
    """Records, live ones and tombstones by label, record by record."""
    columns = ["replica", "offsets_partition", "record_offset", "timestamp_ms", "is_control", "key", "value"]
    with exhume.open(directory) as topic:
        records = topic.records().read_all().select(columns).to_pylist()
    last = {(row["replica"], row["offsets_partition"], row["key"]): row["record_offset"] for row in records if not row["is_control"]}
    found: defaultdict[tuple[Any, ...], dict[str, int]] = defaultdict(
        lambda: dict.fromkeys(("records", "live_records", "tombstone_records"), 0)
    )
    for row in records:
        place = (row["replica"], row["offsets_partition"])
        if row["is_control"]:
            continue
        decoded = decode_record(row["key"], None)
        hour = None if row["timestamp_ms"] is None else row["timestamp_ms"] // HOUR_MS * HOUR_MS
        label = {"type": decoded.name, "hour": hour}.get(by, decoded.key.get(by))
        counts = found[(*place, label)]
        is_live = last[(*place, row["key"])] == row["record_offset"]
        counts["records"] += 1
        counts["live_records"] += is_live
        counts["tombstone_records"] += is_live and row["value"] is None
    return dict(found)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("least_bytes", [BY_RECORD, BY_KERNELS], ids=["by record", "by kernels"])
@pytest.mark.parametrize("by", LABELS)
@pytest.mark.parametrize("name", ["2.8.2-compaction", "4.3.0-transactions", "4.3.0-consumer-groups", "0.10.2.2-compression"])
def test_every_measure_is_what_a_count_record_by_record_gives(name: str, by: GrowthBy, least_bytes: int) -> None:
    directory = next(iter(next(case for case in corpus.cases() if case.name == name).data_directories.values()))

    made = growth(directory, by, least_bytes=least_bytes)

    assert (made.table.schema, made.partitions.schema) == (GROWTH, COMPACTION)
    label = "hour_at_ms" if by == "hour" else by
    rows = [row for row in made.table.to_pylist() if row["type"] != "end_txn_marker"]
    ours = {
        (row["replica"], row["offsets_partition"], row[label]): {
            name: row[name] for name in ("records", "live_records", "tombstone_records")
        }
        for row in rows
    }
    assert ours == counted(directory, by)
    assert all(row["records"] == row["live_records"] + row["superseded_records"] for row in rows)


@pytest.mark.parametrize("codec", [0, 4])
def test_bytes_are_those_on_disk_to_the_last_one(tmp_path: Path, codec: int) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        for number in range(50):
            log.append([commit(number), commit(number, 1, metadata="long" * number)], codec=codec)
        log.append([commit(9)], **TRANSACTION)
        log.append_marker(producer_id=7, producer_epoch=1)
    size = sum(path.stat().st_size for path in log.directory.glob("*.log"))

    for least_bytes in (BY_RECORD, BY_KERNELS):
        for by in ("group", "type"):
            made = growth(tmp_path, by, least_bytes=least_bytes)
            assert abs(sum(made.table["size_bytes"].to_pylist()) - size) <= 2
        assert made.partitions["size_bytes"].to_pylist() == [size]
        assert made.partitions["other_bytes"].to_pylist()[0] <= 1


def test_a_cleaner_frees_what_is_said_to_be_freeable_and_then_nothing(tmp_path: Path) -> None:
    log = PartitionLog(7, MessageForm(2, "none"))
    for number in range(30):
        log.append([commit(number, number % 3), commit(1, group=f"once-{number}")], timestamp_ms=T0_MS)
        if number in (10, 20):
            log.roll()
    log.append([tombstone(commit(0, 2))], timestamp_ms=T0_MS)
    log.write(tmp_path / "before")
    log.clean()
    log.write(tmp_path / "after")

    before, after = growth(tmp_path / "before"), growth(tmp_path / "after")

    removed = sum(before.partitions["records"].to_pylist()) - sum(after.partitions["records"].to_pylist())
    assert before.partitions["freeable_records"].to_pylist() == [removed]
    assert removed == sum(before.table["freeable_records"].to_pylist()) == 18
    assert after.partitions["freeable_records"].to_pylist() == [0]


def test_the_active_segment_is_never_cleaned_however_much_of_it_is_superseded(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([commit(number) for number in range(100)])

    row = growth(tmp_path).partitions.to_pylist()[0]

    assert (row["freeable_bytes"], row["stopped_by"], row["dirty_ratio"]) == (0, "active_segment", None)
    assert row["superseded_bytes"] > 0


def test_an_open_transaction_holds_the_cleaner_up_at_its_segment(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([commit(1), commit(2)])
        log.roll()
        log.append([commit(3), commit(4)])
        log.append([commit(5)], **TRANSACTION)
        log.roll()
        log.append([commit(6), commit(7)])
        log.roll()
        log.append([commit(8)])

    made = growth(tmp_path)
    row = made.partitions.to_pylist()[0]

    assert (row["stopped_by"], row["first_uncleanable_offset"], row["open_transaction_offset"]) == ("open_transaction", 2, 4)
    assert row["freeable_records"] == 1
    assert growth_sentence(made).endswith("an open transaction stops the cleaner in 1 of 1 partitions")


def test_a_tombstone_is_freed_when_its_delete_horizon_has_passed(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([tombstone(commit(0))], timestamp_ms=T0_MS, delete_horizon_ms=T0_MS + HOUR_MS)
        log.roll()
        log.append([commit(8, 1)])

    for least_bytes in (BY_RECORD, BY_KERNELS):
        early, late = (growth(tmp_path, least_bytes=least_bytes, now_ms=T0_MS + after).table for after in (0, HOUR_MS))
        assert (early["freeable_records"].to_pylist(), late["freeable_records"].to_pylist()) == ([0], [1])
        assert late["tombstone_records"].to_pylist() == [1]


def test_what_is_dirty_begins_at_the_checkpoint_of_the_cleaner(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        for number in range(4):
            log.append([commit(number)], timestamp_ms=T0_MS + number)
            log.roll()
    write_checkpoint(tmp_path / "cleaner-offset-checkpoint", [("__consumer_offsets", 7, 1)])

    row = growth(tmp_path).partitions.to_pylist()[0]

    assert (row["first_dirty_offset"], row["first_uncleanable_offset"], row["dirty_ratio"]) == (1, 4, 0.75)
    assert row["first_dirty_timestamp_ms"] == T0_MS + 1


def test_many_keys_find_room(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        for number in range(30):
            log.append([commit(number, 1000 * number + partition) for partition in range(1000)])
        log.append([group_metadata("pay", {"protocol_type": "consumer"})])

    for least_bytes in (BY_RECORD, BY_KERNELS):
        assert growth(tmp_path, least_bytes=least_bytes).table["keys"].to_pylist() == [30_001]


@pytest.mark.parametrize("by", [*LABELS, "partition"])
def test_the_command_shows_each_measure(tmp_path: Path, by: str, capsys: pytest.CaptureFixture[str]) -> None:
    with PartitionWriter(tmp_path / "data", 7) as log:
        log.append([commit(1), commit(2)], timestamp_ms=T0_MS)

    assert run(["growth", str(tmp_path / "data"), "--by", by]) == 0
    captured = capsys.readouterr()

    assert {"group": "pay", "topic": "orders", "type": "offset_commit", "hour": "2023-11-14 22:00", "partition": "active_segment"}[
        by
    ] in captured.out
    assert "compaction would free at least 0 (0%) now" in captured.err
