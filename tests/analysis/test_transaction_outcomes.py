"""The transactions of a log, against reading it one record after the other."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import exhume
from exhume.analysis.detectors import Inputs
from exhume.analysis.transaction_outcomes import EndMarkers, TransactionReader, is_late
from exhume.codecs.record_types import ABORT, COMMIT
from exhume.durations import DEFAULT_MAX_TIMEOUT_MS
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit

T0_MS = 1_700_000_000_000
MINUTE_MS = 60_000
_UNKNOWN_TYPE = 5


def commit(partition: int = 0, *, group: str = "etl") -> KeyValue:
    return offset_commit(group, "in", partition, 1, commit_timestamp_ms=T0_MS)


def stage(log: PartitionWriter, producer_id: int, *commits: KeyValue, at_ms: int = T0_MS, producer_epoch: int = 0, **fields: Any) -> int:
    fields = {"producer_id": producer_id, "producer_epoch": producer_epoch, "base_sequence": 0, "is_transactional": True} | fields
    return log.append(commits or [commit()], timestamp_ms=at_ms, **fields)


def read(directory: Path, parts: int, *, keeps_ended: bool) -> TransactionReader:
    """The transactions of the log, read in so many parts."""
    with exhume.open(directory) as topic:
        records = topic.records().read_all().combine_chunks().to_batches()[0]
    reader = TransactionReader(keeps_ended=keeps_ended)
    for rows in np.array_split(np.arange(records.num_rows), parts):
        part = records.take(pa.array(rows))
        markers = EndMarkers.of(part.filter(part["is_control"]), rows[part["is_control"].to_numpy(zero_copy_only=False)])
        reader.take(part, rows, markers)
    return reader


def expected(directory: Path) -> tuple[dict[int, dict[str, Any]], list[dict[str, Any]]]:
    """Open transactions by producer and ended ones, as ProducerStateManager follows them: record after record."""
    opened: dict[int, dict[str, Any]] = {}
    ended = []
    with exhume.open(directory) as topic:
        rows = topic.records().read_all().to_pylist()
    for row in rows:
        producer = row["producer_id"]
        if row["is_control"]:
            control_type = int.from_bytes(row["key"][2:4], "big")
            if producer in opened and control_type in (ABORT, COMMIT):
                ended.append(opened.pop(producer) | {"ending": ["ABORT", "COMMIT"][control_type], "marker": row["record_offset"]})
        elif row["is_transactional"] and producer is not None:
            transaction = opened.setdefault(producer, {"first": row["record_offset"], "at": row["byte_position"], "records": 0, "keys": []})
            transaction |= {"last": row["record_offset"], "epoch": row["producer_epoch"], "records": transaction["records"] + 1}
            transaction["keys"] = list(dict.fromkeys([*transaction["keys"], row["key"]]))
    return opened, ended


@pytest.mark.parametrize("parts", [1, 3, 40])
@pytest.mark.parametrize("seed", range(6))
def test_parts_of_a_log_give_the_transactions_of_the_whole(tmp_path: Path, seed: int, parts: int) -> None:
    write_at_random(tmp_path, seed)

    reader = read(tmp_path, parts, keeps_ended=True)
    opened, ended = expected(tmp_path)

    assert {producer: told(each) for producer, each in reader.open.items()} == opened
    assert [told(each) for each in reader.ended] == ended
    assert reader.ended_count == len(ended)
    assert {each.producer_id for each in reader.open.values()} == {*opened}


@pytest.mark.parametrize("seed", range(3))
def test_ended_transactions_are_counted_where_they_are_not_kept(tmp_path: Path, seed: int) -> None:
    write_at_random(tmp_path, seed)
    opened, ended = expected(tmp_path)

    reader = read(tmp_path, 7, keeps_ended=False)

    assert {producer: told(each) for producer, each in reader.open.items()} == opened
    assert (reader.ended, reader.ended_count) == ([], len(ended))


def told(transaction: Any) -> dict[str, Any]:
    marker = transaction.marker
    return {
        "first": transaction.first_record_offset,
        "at": transaction.byte_position,
        "records": transaction.record_count,
        "keys": [*transaction.keys],
        "last": transaction.last_record_offset,
        "epoch": transaction.producer_epoch,
    } | ({} if marker is None else {"ending": marker.ending, "marker": marker.record_offset})


def write_at_random(directory: Path, seed: int) -> None:
    """Transactions that race, offsets that go back, and what only looks like a transaction."""
    rng = random.Random(seed)
    with PartitionWriter(directory, 7) as log:
        for _ in range(120):
            log.next_offset = max(log.next_offset + (rng.randint(-4, 3) if rng.random() < 0.1 else 0), 0)
            producer = rng.choice([5, 6, 7])
            match rng.choice(["plain", "staged", "staged", "staged", "no bit", "no producer", "marker", "marker", "unknown"]):
                case "plain":
                    log.append([commit()], timestamp_ms=T0_MS)
                case "staged":
                    stage(log, producer, *[commit(rng.randrange(3)) for _ in range(rng.randint(1, 3))], producer_epoch=rng.randrange(3))
                case "no bit":
                    stage(log, producer, is_transactional=False)
                case "no producer":
                    stage(log, -1, producer_epoch=-1)
                case "marker":
                    log.append_marker(
                        rng.choice([ABORT, COMMIT]), producer_id=producer, producer_epoch=rng.randrange(4), timestamp_ms=T0_MS
                    )
                case "unknown":
                    log.append_marker(_UNKNOWN_TYPE, producer_id=producer, producer_epoch=0, timestamp_ms=T0_MS)


def test_a_transaction_is_late_when_its_last_record_is_older_than_the_timeout_and_five_minutes() -> None:
    most_ms = DEFAULT_MAX_TIMEOUT_MS + 5 * MINUTE_MS

    assert [is_late(idle_ms) for idle_ms in (None, 0, most_ms, most_ms + 1)] == [False, False, False, True]
    assert is_late(11 * MINUTE_MS, max_timeout_ms=5 * MINUTE_MS)


# --- Analyses agree


@pytest.mark.parametrize("seed", range(4))
def test_history_and_transactions_and_diagnose_agree_on_what_is_open(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    with PartitionWriter(tmp_path, 7) as log:
        for _ in range(60):
            producer = rng.choice([5, 6, 7])
            if rng.random() < 0.6:
                stage(log, producer, commit(rng.randrange(3)))
            else:
                log.append_marker(rng.choice([ABORT, COMMIT]), producer_id=producer, producer_epoch=1, timestamp_ms=T0_MS)
        log.append([commit(group="other")], timestamp_ms=T0_MS + 60 * MINUTE_MS)

    with exhume.open(tmp_path) as topic:
        opened = {row["first_record_offset"]: row["last_record_offset"] for row in topic.transactions().table.to_pylist()}
        history = topic.history("etl", release="3.9.1")
        hanging = {finding.first_record_offset for finding in topic.diagnose(Inputs(), codes=["IC-08"]) if finding.severity != "info"}

    pending = history.filter(pc.field("transaction_outcome") == "open").to_pylist()
    by_producer: dict[int, list[int]] = {}
    for row in pending:
        by_producer.setdefault(row["producer_id"], []).append(row["record_offset"])
    assert {found[0]: found[-1] for found in by_producer.values()} == opened
    assert hanging == {*opened}


def test_a_marker_ends_what_lies_before_it_in_the_log_even_where_record_offsets_go_back(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.next_offset = 20
        stage(log, 5)
        log.next_offset = 10
        log.append_marker(COMMIT, producer_id=5, producer_epoch=0, timestamp_ms=T0_MS)
        log.append([commit(group="other")], timestamp_ms=T0_MS + 60 * MINUTE_MS)

    with exhume.open(tmp_path) as topic:
        assert topic.transactions().table.num_rows == 0
        assert topic.history("etl", release="3.9.1")["transaction_outcome"].to_pylist() == ["COMMIT"]
        assert not [each.sentence for each in topic.diagnose(codes=["IC-08", "IC-26"]) if each.confidence != "undecidable"]


def test_old_commits_are_reported_although_the_producer_still_writes_in_the_transaction(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        stage(log, 5, commit(group="first"))
        for minute in range(10, 60, 10):
            stage(log, 5, commit(group="second"), at_ms=T0_MS + minute * MINUTE_MS)
        log.append([commit(group="other")], timestamp_ms=T0_MS + 60 * MINUTE_MS)

    with exhume.open(tmp_path) as topic:
        found = [*topic.diagnose(codes=["IC-08", "IC-26"])]
        assert topic.transactions().table["is_late"].to_pylist() == [False]

    assert {(each.code, each.group, each.severity) for each in found} == {("IC-26", "first", "warn"), ("IC-26", "second", "warn")}


def test_records_of_every_type_keep_a_transaction_open(tmp_path: Path) -> None:
    member_record = group_metadata("etl", {"protocol_type": "consumer", "generation": 1})
    with PartitionWriter(tmp_path, 7) as log:
        first = stage(log, 5, member_record)
        stage(log, 6, commit(), at_ms=T0_MS)
        log.append_marker(COMMIT, producer_id=6, producer_epoch=0, timestamp_ms=T0_MS)
        stage(log, 5, commit())
        log.append([commit(group="other")], timestamp_ms=T0_MS + 60 * MINUTE_MS)

    with exhume.open(tmp_path) as topic:
        (row,) = topic.transactions().table.to_pylist()
        (finding,) = (each for each in topic.diagnose(codes=["IC-08"]) if each.severity != "info")

    assert (row["producer_id"], row["first_record_offset"], row["records"]) == (5, first, 2)
    assert f"since record {first}" in finding.sentence
