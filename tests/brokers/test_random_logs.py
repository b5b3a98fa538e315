"""Random logs contain all that they are made for. These tests need no broker."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.codecs.record_types import decode_record

from .random_logs import OFFSETS_PARTITIONS, RandomLog
from .reach import REACH

TOPIC_IDS = {"orders": "AQIDBAUGBwgJCgsMDQ4PEA", "payments.v2": "EA8ODQwLCgkIBwYFBAMCAQ"}
NEWEST = "4.4.0"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("random")
    for partition in range(OFFSETS_PARTITIONS):
        RandomLog(f"seed {partition}", partition, REACH[NEWEST], TOPIC_IDS).write(directory)
    return directory


@pytest.fixture(scope="module")
def records(data: Path) -> list[dict[str, Any]]:
    with exhume.open(data) as topic:
        rows: list[dict[str, Any]] = topic.records().read_all().to_pylist()
    return rows


def test_the_same_seed_makes_the_same_bytes(tmp_path: Path) -> None:
    for place in ("a", "b"):
        RandomLog("seed", 7, REACH[NEWEST], TOPIC_IDS).write(tmp_path / place)

    first, second = (
        {path.relative_to(tmp_path / place): path.read_bytes() for path in (tmp_path / place).rglob("*.*")} for place in ("a", "b")
    )
    assert first == second


def test_they_hold_every_record_type_as_value_and_as_tombstone(records: list[dict[str, Any]]) -> None:
    seen = {(row["record_type"], row["value"] is None) for row in records if not row["is_control"] and row["key"]}

    # 4.3 no longer has type 9, no broker ever wrote 18, and these logs only replace expressions.
    types = {*range(9), *range(10, 18), *range(19, 24)}
    assert {(number, False) for number in types} <= seen
    assert {(number, True) for number in types - {16}} <= seen


def test_they_hold_every_value_version(records: list[dict[str, Any]]) -> None:
    decoded = [decode_record(row["key"], row["value"]) for row in records if not row["is_control"]]
    seen = {(one.number, one.value_version) for one in decoded if one.number in (1, 2) and "unknown_value_version" not in one.marks}

    assert {(number, version) for number in (1, 2) for version in range(5)} <= seen


def test_they_hold_transactions_that_are_committed_aborted_and_open(data: Path) -> None:
    with exhume.open(data) as topic:
        markers = Counter(row["outcome"] for row in topic.end_txn_markers().read_all().to_pylist())
        state = topic.state(release=NEWEST)

    assert min(markers["COMMIT"], markers["ABORT"]) > 10
    assert state.open_transactions.num_rows > 10


def test_they_have_gaps_segments_and_records_that_brokers_fail_on(data: Path, records: list[dict[str, Any]]) -> None:
    with exhume.open(data) as topic:
        segments = Counter(row["offsets_partition"] for row in topic.segments().to_pylist())
        outcomes = Counter(topic.state(release=NEWEST).loads["outcome"].to_pylist())
    offsets: dict[int, list[int]] = {}
    for row in records:
        offsets.setdefault(row["offsets_partition"], []).append(row["record_offset"])

    assert max(segments.values()) > 2
    assert sum(found[-1] - found[0] >= len(found) for found in offsets.values()) > 10
    assert outcomes["aborted"] > 0
    assert outcomes["not_shown"] > 0
