"""One screen for people: groups, assignments, loads and record types."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.inspection import RECORD_TYPES
from exhume.analysis.summary import notable_loads, summarize_assignments, summarize_groups, summarize_record_types
from exhume.arrow_rows import table_of
from exhume.cli.demo import DEMO_LOG
from exhume.findings import Findings
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit
from exhume.replay.state import CoordinatorState, LazyTables
from exhume.replay.state_tables import SCHEMAS, table

ORIGIN = {"replica": "1", "offsets_partition": 4}


def state_of(**tables: list[dict[str, Any]]) -> CoordinatorState:
    """A state that holds these rows, all of one partition unless they say otherwise."""

    def made(name: str, _: object) -> Any:
        return table(name, [ORIGIN | row for row in tables.get(name, [])])

    return CoordinatorState("4.3.0", "strict", LazyTables({name: partial(made, name) for name in SCHEMAS}), Findings())


def test_a_group_is_counted_with_all_it_holds() -> None:
    state = state_of(
        groups=[{"group": "a", "group_type": "consumer", "group_state": "Stable", "group_epoch": 9, "generation": None}],
        members=[{"group": "a", "member_id": "m1"}, {"group": "a", "member_id": "m2"}],
        assignments=[
            {"group": "a", "member_id": "m1", "kind": "assigned", "topic": "t", "partition": 0},
            {"group": "a", "member_id": "m1", "kind": "target", "topic": "t", "partition": 0},
            {"group": "a", "member_id": "m1", "kind": "target", "topic": "t", "partition": 1},
        ],
        offsets=[
            {"group": "a", "topic": "t", "partition": 0, "commit_timestamp_ms": 50},
            {"group": "a", "topic": "t", "partition": 1, "commit_timestamp_ms": 40},
        ],
        pending_offsets=[{"group": "a", "topic": "t", "partition": 0}],
    )
    [row] = summarize_groups(state).to_pylist()

    assert row == ORIGIN | {
        "group": "a",
        "group_type": "consumer",
        "group_state": "Stable",
        "protocol_type": None,
        "protocol": None,
        "epoch": 9,
        "members": 2,
        "assigned_partitions": 1,
        "offsets": 2,
        "pending_offsets": 1,
        "last_commit_timestamp_ms": 50,
    }


def test_the_epoch_of_a_classic_group_is_its_generation() -> None:
    [row] = summarize_groups(state_of(groups=[{"group": "a", "group_type": "classic", "generation": 3}])).to_pylist()

    assert row["epoch"] == 3


def test_offsets_without_a_group_have_a_row_without_a_type() -> None:
    rows = summarize_groups(state_of(offsets=[{"group": "orphan", "topic": "t", "partition": 0, "commit_timestamp_ms": 1}])).to_pylist()

    assert [(row["group"], row["group_type"], row["offsets"]) for row in rows] == [("orphan", None, 1)]


def test_a_group_that_only_has_pending_offsets_is_not_left_out() -> None:
    rows = summarize_groups(state_of(pending_offsets=[{"group": "waiting", "topic": "t", "partition": 0}])).to_pylist()

    assert [(row["group"], row["pending_offsets"], row["last_commit_timestamp_ms"]) for row in rows] == [("waiting", 1, None)]


def test_groups_of_one_name_on_two_replicas_stay_two_rows() -> None:
    rows = summarize_groups(state_of(groups=[{"group": "a"}, {"group": "a", "replica": "2"}])).to_pylist()

    assert [(row["replica"], row["group"]) for row in rows] == [("1", "a"), ("2", "a")]


def test_the_partitions_of_a_topic_share_a_row_in_order() -> None:
    held = [{"group": "g", "member_id": "m", "kind": "assigned", "topic": "t", "partition": number} for number in (2, 0, 1)]
    other = {"group": "g", "member_id": "m", "kind": "target", "topic": "t", "partition": 5}

    assert [(row["kind"], row["partitions"]) for row in summarize_assignments(state_of(assignments=[*held, other])).to_pylist()] == [
        ("assigned", [0, 1, 2]),
        ("target", [5]),
    ]


def test_topics_without_a_name_are_told_apart_by_their_id() -> None:
    rows = [{"group": "g", "member_id": "m", "kind": "assigned", "topic_id": topic_id, "partition": 0} for topic_id in ("x", "y")]

    assert [row["topic_id"] for row in summarize_assignments(state_of(assignments=rows)).to_pylist()] == ["x", "y"]


def test_loads_worth_showing_are_those_that_failed_and_those_of_the_groups_shown() -> None:
    state = state_of(
        groups=[{"group": "a"}],
        loads=[
            {"outcome": "loaded"},
            {"outcome": "loaded", "offsets_partition": 5},
            {"outcome": "aborted", "offsets_partition": 6},
            {"outcome": "loaded", "replica": "2"},
        ],
    )

    assert [(row["replica"], row["offsets_partition"]) for row in notable_loads(state).to_pylist()] == [("1", 4), ("1", 6)]


def counted(record_type: int | None, name: str, count: int, **columns: Any) -> dict[str, Any]:
    flags = {"is_tombstone": False, "is_transactional": False, "marked_count": 0}
    return ORIGIN | flags | {"record_type": record_type, "type": name, "record_count": count} | columns


def test_a_record_type_is_one_row_over_all_partitions() -> None:
    rows = summarize_record_types(
        table_of(
            RECORD_TYPES,
            [
                counted(2, "group_metadata", 1, value_version=3),
                counted(1, "offset_commit", 10, value_version=3, marked_count=2),
                counted(1, "offset_commit", 4, is_tombstone=True),
                counted(1, "offset_commit", 5, value_version=1, is_transactional=True, offsets_partition=9),
                counted(None, "end_txn_marker", 7, value_version=0, is_transactional=True),
            ],
        )
    ).to_pylist()

    assert [row["type"] for row in rows] == ["end_txn_marker", "offset_commit", "group_metadata"]
    assert rows[1] == {
        "record_type": 1,
        "type": "offset_commit",
        "value_versions": [1, 3],
        "record_count": 19,
        "tombstone_count": 4,
        "transactional_count": 5,
        "marked_count": 2,
        "partition_count": 2,
    }


def test_no_record_is_lost_in_the_summary_of_a_real_log() -> None:
    with exhume.open(DEMO_LOG) as topic:
        tables = topic.inspect().tables()
    summary = summarize_record_types(tables["record_types"]).to_pylist()

    assert sum(row["record_count"] for row in summary) == sum(row["record_count"] for row in tables["partitions"].to_pylist()) == 289


@pytest.mark.parametrize("release", ["2.8.2", "4.3.0"])
def test_the_summary_of_a_load_agrees_with_its_tables(tmp_path: Path, release: str) -> None:
    members = [{"member_id": "m", "client_id": "c", "client_host": "h", "subscription": b"", "assignment": b""}]
    with PartitionWriter(tmp_path, 0) as partition:
        partition.append([group_metadata("a", {"protocol_type": "consumer", "generation": 4, "protocol": "range", "members": members})])
        partition.append([offset_commit("a", "t", number, 1, commit_timestamp_ms=100 + number) for number in range(3)])
    with exhume.open(tmp_path) as topic:
        [row] = summarize_groups(topic.state(release=release)).to_pylist()

    assert (row["group"], row["epoch"], row["members"], row["offsets"], row["last_commit_timestamp_ms"]) == ("a", 4, 1, 3, 102)
