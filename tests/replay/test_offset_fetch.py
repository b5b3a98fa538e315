"""What OffsetFetch is answered, one rule and one readable log each. Brokers' own answers are compared in test_against_brokers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.codecs.record_types import ABORT, encode_key, encode_value
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, offset_commit
from exhume.replay.state import CoordinatorState
from tests.judges import corpus
from tests.judges.fetch_comparison import compare_fetches
from tests.judges.state_comparison import Comparison

NOW_MS = 1_700_000_000_000
TRANSACTION = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0, "is_transactional": True}
Answer = tuple[int | None, bool | None, str | None, int | None, bool | None]


def load(directory: Path, write: Callable[[PartitionWriter], object], **options: Any) -> CoordinatorState:
    with PartitionWriter(directory, 7) as log:
        write(log)
    with exhume.open(directory) as topic:
        return topic.state(**options)


def commit(partition: int, committed_offset: int, *, version: int = 3) -> KeyValue:
    fields = {"leader_epoch": 4} if version == 3 else {}
    metadata = f"at {committed_offset}"
    return offset_commit(
        "billing", "orders", partition, committed_offset, commit_timestamp_ms=NOW_MS, metadata=metadata, version=version, **fields
    )


def answers(state: CoordinatorState) -> dict[int, Answer]:
    """By partition: the offset, whether it is listed, and with require_stable the error, the offset, whether it is listed."""
    return {
        row["partition"]: (row["committed_offset"], row["is_listed"], row["stable_error"], row["stable_offset"], row["is_stable_listed"])
        for row in state.fetched_offsets.to_pylist()
    }


def one_of_each(log: PartitionWriter, *, version: int = 3) -> None:
    """Partition 0 is committed, 1 committed and pending, 2 pending and nothing else, 3 was pending and aborted."""
    log.append([commit(0, 10, version=version), commit(1, 11, version=version)])
    log.append([commit(1, 21, version=version), commit(2, 22, version=version)], **TRANSACTION)
    log.append([commit(3, 23, version=version)], **TRANSACTION | {"producer_id": 8})
    log.append_marker(ABORT, producer_id=8, producer_epoch=1)


UNSTABLE = "UNSTABLE_OFFSET_COMMIT"
REFUSED: dict[int, Answer] = {
    0: (10, True, "NONE", 10, True),
    1: (11, True, UNSTABLE, None, True),
    2: (None, False, UNSTABLE, None, False),
}
IGNORED: dict[int, Answer] = {
    0: (10, True, "NONE", 10, True),
    1: (11, True, "NONE", 11, True),
    2: (None, False, "NONE", None, False),
}
UNKNOWN: dict[int, Answer] = {key: (*answer[:2], None, None, None) for key, answer in REFUSED.items()}


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("0.11.0.3", UNKNOWN),
        ("2.4.1", UNKNOWN),
        ("2.5.0", REFUSED),
        ("3.9.1", REFUSED),
        ("3.7.2-new", IGNORED),
        ("3.8.0-new", REFUSED),
        ("4.3.0", REFUSED),
    ],
)
def test_a_pending_commit_makes_its_partition_unstable_from_2_5_but_not_in_the_first_java_coordinator(
    tmp_path: Path, release: str, expected: dict[int, Answer]
) -> None:
    version = 1 if release == "0.11.0.3" else 3

    assert answers(load(tmp_path, lambda log: one_of_each(log, version=version), release=release)) == expected


def test_an_answer_has_leader_epoch_and_metadata_where_it_has_an_offset(tmp_path: Path) -> None:
    rows = load(tmp_path, one_of_each, release="4.3.0").fetched_offsets.to_pylist()

    assert [(row["leader_epoch"], row["metadata"]) for row in rows] == [(4, "at 10"), (4, "at 11"), (None, None)]
    assert [(row["stable_leader_epoch"], row["stable_metadata"]) for row in rows] == [(4, "at 10"), (None, None), (None, None)]
    assert [row["record_offset"] for row in rows] == [0, 1, 3]


def test_offsets_are_only_asked_for_by_name_before_0_10_2(tmp_path: Path) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([commit(0, 10, version=1)], magic=1)

    for release, is_listed in (("0.10.1.1", None), ("0.10.2.2", True)):
        assert answers(load(tmp_path / release, write, release=release)) == {0: (10, is_listed, None, None, None)}


@pytest.mark.parametrize(("release", "expected"), [("2.8.2", (10, True, "NONE", 10, True)), ("4.3.0", (None, False, "NONE", None, False))])
def test_offsets_without_their_group_are_answered_by_the_scala_coordinator_only(tmp_path: Path, release: str, expected: Answer) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([commit(0, 10)])
        log.append([(encode_key(2, {"group": "billing"}), None)])

    assert answers(load(tmp_path, write, release=release)) == {0: expected}


def test_a_pending_commit_refuses_its_partition_though_its_group_is_gone(tmp_path: Path) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([commit(0, 10)], **TRANSACTION)
        log.append([(encode_key(2, {"group": "billing"}), None)])

    assert answers(load(tmp_path, write, release="4.3.0")) == {0: (None, False, UNSTABLE, None, False)}


def test_a_share_group_has_no_offsets_to_fetch(tmp_path: Path) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([(encode_key(11, {"group": "billing"}), encode_value(11, 0, {"group_epoch": 3, "metadata_hash": 0}))])
        log.append([commit(0, 10)])

    state = load(tmp_path, write, release="4.3.0")

    assert state.groups["group_type"].to_pylist() == ["share"]
    assert answers(state) == {0: (None, False, "NONE", None, False)}


@pytest.mark.parametrize("view", ["committed", "in_memory"])
def test_require_stable_shows_what_a_gap_hides(tmp_path: Path, view: str) -> None:
    def write(log: PartitionWriter) -> None:
        log.roll(20_000)
        log.append([commit(0, 10)])
        log.append([commit(0, 11), commit(1, 12)])
        log.roll(30_000)

    state = load(tmp_path, write, release="4.3.0", view=view)

    assert answers(state) == {0: (10, True, "NONE", 11, True), 1: (None, False, "NONE", 12, True)}


@pytest.mark.parametrize(
    ("release", "outcome", "error"),
    [
        ("1.1.1", "stalled", "NOT_COORDINATOR"),
        ("2.0.0", "stalled", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("2.8.2", "aborted", "NONE"),
        ("4.3.0", "aborted", "NOT_COORDINATOR"),
    ],
)
def test_a_load_that_failed_is_answered_with_an_error_or_with_nothing(tmp_path: Path, release: str, outcome: str, error: str) -> None:
    def write(log: PartitionWriter) -> None:
        log.append([commit(0, 10, version=1)])
        if outcome == "stalled":
            log.roll(10)
        else:
            log.append([(commit(1, 11)[0], b"\0\x09")])

    state = load(tmp_path, write, release=release)

    assert [(row["outcome"], row["offset_fetch_error"]) for row in state.loads.to_pylist()] == [(outcome, error)]
    assert answers(state) == {}


def test_where_no_broker_starts_nobody_answers(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([commit(0, 10)])
        path = log.directory / "00000000000000000000.log"
    path.write_bytes(path.read_bytes() + bytes(4096))

    with exhume.open(tmp_path) as topic:
        state = topic.state(release="2.8.2", stop="clean")

    assert [(row["outcome"], row["offset_fetch_error"]) for row in state.loads.to_pylist()] == [("refused", None)]


@pytest.mark.parametrize(
    ("column", "value"),
    [("committed_offset", 91), ("is_listed", False), ("stable_error", "NONE"), ("stable_offset", 90), ("is_stable_listed", False)],
)
def test_the_judge_objects_to_an_answer_that_is_wrong(column: str, value: object) -> None:
    """A judge that finds nothing must be able to: what 4.3.0 said about an unstable offset, against a table that is wrong in one cell."""
    (answer,) = (
        answer
        for answer in corpus.answer_files("4.3.0", "java", root=corpus.BUNDLED)
        if answer.case.name == "facts/txn-pending" and answer.label == "after-4.3.0"
    )
    with exhume.open(answer.data) as topic:
        state = topic.state(release="4.3.0")
    tables = {name: table.to_pylist() for name, table in state.tables.items()}
    right, wrong = Comparison(), Comparison()
    compare_fetches(answer.expectation, tables, right)
    (row,) = (row for row in tables["fetched_offsets"] if row["committed_offset"] == 90)
    row[column] = value
    compare_fetches(answer.expectation, tables, wrong)

    assert not right.differences
    assert wrong.differences
