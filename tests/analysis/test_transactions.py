"""Open and finished transactions: against what brokers remembered of them in producer snapshots, and logs made for one answer each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.transactions import STABLE_OFFSETS, TRANSACTIONS, Transactions, transactions_sentence
from exhume.cli.app import run
from exhume.codecs.record_types import ABORT
from exhume.fixtures import scenarios
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, offset_commit
from tests.judges import corpus

T0_MS = 1_700_000_000_000
MINUTE_MS = 60_000


def commit(offset: int, partition: int = 0, *, group: str = "etl", **fields: Any) -> KeyValue:
    return offset_commit(group, "in", partition, offset, commit_timestamp_ms=T0_MS, **fields)


def begin(log: PartitionWriter, producer_id: int, *commits: KeyValue, at_ms: int = T0_MS, producer_epoch: int = 3) -> int:
    fields = {"producer_id": producer_id, "producer_epoch": producer_epoch, "base_sequence": 0, "is_transactional": True}
    return log.append(commits, timestamp_ms=at_ms, **fields)


def transactions(directory: Path, **options: Any) -> Transactions:
    with exhume.open(directory) as topic:
        return topic.transactions(**options)


@pytest.mark.parametrize("case", [case for case in corpus.cases() if "transactions" in case.name], ids=lambda case: case.name)
def test_open_transactions_are_those_of_the_brokers_own_snapshot_at_the_log_end(case: corpus.Case) -> None:
    compared = 0
    for directory in case.data_directories.values():
        found = transactions(directory)
        with exhume.open(directory) as topic:
            producers = topic.inspect().tables()["producers"].to_pylist()
        for partition in found.partitions.to_pylist():
            place = (partition["replica"], partition["offsets_partition"])
            at_end = [
                row
                for row in producers
                if (row["replica"], row["offsets_partition"], row["snapshot_offset"]) == (*place, partition["end_offset"])
            ]
            known = {row["producer_id"]: row["current_txn_first_offset"] for row in at_end if row["current_txn_first_offset"] is not None}
            ours = {
                row["producer_id"]: row["first_record_offset"]
                for row in found.table.to_pylist()
                if (row["replica"], row["offsets_partition"]) == place
            }
            if at_end:
                assert ours == known
                assert partition["last_stable_offset"] == min(known.values(), default=partition["end_offset"])
                compared += 1
    assert compared


def test_a_story_tells_who_committed_aborted_and_never_came_back(tmp_path: Path) -> None:
    scenarios.write("transactions", tmp_path / "drill")

    found = transactions(tmp_path / "drill", with_finished=True)

    assert (found.table.schema, found.partitions.schema) == (TRANSACTIONS, STABLE_OFFSETS)
    assert {row["producer_id"]: (row["outcome"], row["staged"][0]["partition"]) for row in found.table.to_pylist()} == {
        1000: ("COMMIT", 0),
        1001: ("ABORT", 1),
        1002: ("open", 2),
        1003: ("COMMIT", 3),
        1004: ("COMMIT", 0),
        1005: ("open", 0),
    }
    assert transactions_sentence(found).startswith("2 transactions are open, 0 of them late")


def test_a_hanging_transaction_is_late_and_says_what_it_holds_up(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([commit(1)], timestamp_ms=T0_MS)
        begin(log, 42, commit(88_000, 4), at_ms=T0_MS)
        log.roll()
        for minute in range(1, 30):
            log.append([commit(minute, group="other")], timestamp_ms=T0_MS + minute * MINUTE_MS)
    segments = sorted(log.directory.glob("*.log"))

    found = transactions(tmp_path)
    row, partition = found.table.to_pylist()[0], found.partitions.to_pylist()[0]

    assert (row["producer_id"], row["producer_epoch"], row["is_late"], row["idle_ms"]) == (42, 3, True, 29 * MINUTE_MS)
    assert row["staged"] == [{"group": "etl", "topic": "in", "partition": 4}]
    assert (partition["last_stable_offset"], partition["end_offset"], partition["late_transactions"]) == (1, 31, 1)
    first_batch_bytes = segments[0].stat().st_size // 2
    assert abs(row["held_up_bytes"] - (segments[1].stat().st_size + first_batch_bytes)) < 10


@pytest.mark.parametrize(("minutes", "is_late"), [(19, False), (20, False), (21, True)])
def test_an_open_transaction_is_late_past_the_greatest_timeout_and_five_minutes(tmp_path: Path, minutes: int, is_late: bool) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        begin(log, 42, commit(1))
        log.append([commit(1, group="other")], timestamp_ms=T0_MS + minutes * MINUTE_MS)

    assert transactions(tmp_path).table["is_late"].to_pylist() == [is_late]
    assert transactions(tmp_path, max_timeout_ms=60 * MINUTE_MS).table["is_late"].to_pylist() == [False]


def test_a_producer_that_goes_on_is_not_late_however_long_it_takes(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        for minute in range(0, 60, 10):
            begin(log, 42, commit(minute), at_ms=T0_MS + minute * MINUTE_MS)

    row = transactions(tmp_path).table.to_pylist()[0]

    assert (row["is_late"], row["records"], row["duration_ms"], row["idle_ms"]) == (False, 6, 50 * MINUTE_MS, 0)


def test_finished_transactions_have_their_marker_and_how_long_they_took(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        begin(log, 42, commit(1), commit(2, 1))
        log.append_marker(ABORT, producer_id=42, producer_epoch=3, timestamp_ms=T0_MS + 16 * MINUTE_MS, coordinator_epoch=5)
        log.append_marker(producer_id=43, producer_epoch=0, timestamp_ms=T0_MS + 17 * MINUTE_MS)

    assert transactions(tmp_path).table.num_rows == 0
    row = transactions(tmp_path, with_finished=True).table.to_pylist()[0]

    assert (row["outcome"], row["marker_record_offset"], row["marker_coordinator_epoch"]) == ("ABORT", 2, 5)
    assert (row["duration_ms"], row["is_late"], len(row["staged"])) == (16 * MINUTE_MS, True, 2)


def test_records_with_a_producer_id_that_are_not_transactional_open_nothing(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([commit(1)], producer_id=7, producer_epoch=0, base_sequence=0)

    assert transactions(tmp_path).partitions["last_stable_offset"].to_pylist() == [1]


def test_the_command_shows_both_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenarios.write("transactions", tmp_path / "drill")

    assert run(["transactions", str(tmp_path / "drill"), "--all", "--max-timeout", "1s"]) == 0
    shown = capsys.readouterr()
    assert run(["transactions", str(tmp_path / "drill"), "--table", "partitions", "--output", "jsonl"]) == 0

    assert "ABORT" in shown.out
    assert "2 transactions are open" in shown.err
    assert "last_stable_offset" in capsys.readouterr().out
