"""The life of a group and of its keys, record by record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.cli.app import run
from exhume.codecs.embedded import encode_assignment, encode_subscription
from exhume.codecs.record_types import ABORT, COMMIT, encode_key, encode_value
from exhume.errors import RequestError
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit, tombstone
from exhume.fixtures.story import Story
from tests.judges import corpus

NOW_MS = 1_700_000_000_000
TOPIC_ID = "AQIDBAUGBwgJCgsMDQ4PEA"
TRANSACTION = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0, "is_transactional": True}


def commit(committed_offset: int, partition: int = 0, *, group: str = "billing", **fields: Any) -> KeyValue:
    return offset_commit(group, "orders", partition, committed_offset, commit_timestamp_ms=NOW_MS, **fields)


def history(directory: Path, append: Callable[[PartitionWriter], object], group: str = "billing", **options: Any) -> list[dict[str, Any]]:
    with PartitionWriter(directory, 7) as log:
        append(log)
    with exhume.open(directory) as topic:
        rows: list[dict[str, Any]] = topic.history(group, **options).to_pylist()
    return rows


def fates(rows: list[dict[str, Any]]) -> list[tuple[str, int | None]]:
    return [(row["fate"], row["ended_by_record_offset"]) for row in rows]


def test_every_record_of_a_key_says_what_ended_it(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(10), commit(99, group="search"), commit(12)])
        log.append([tombstone(commit(0))])
        log.append([commit(30)])

    rows = history(tmp_path, append)

    assert [row["record_offset"] for row in rows] == [0, 2, 3, 4]
    assert fates(rows) == [("superseded", 2), ("deleted", 3), ("superseded", 4), ("live", None)]
    assert [row["committed_offset_delta"] for row in rows] == [None, 2, None, None]


def test_a_tombstone_that_nothing_came_after_is_the_last_word(tmp_path: Path) -> None:
    rows = history(tmp_path, lambda log: log.append([commit(10), tombstone(commit(0))]))

    assert [(row["fate"], row["is_tombstone"]) for row in rows] == [("deleted", False), ("live", True)]


def test_commits_of_transactions_tell_their_outcome_and_their_marker(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(10)], **TRANSACTION)
        log.append_marker(ABORT, producer_id=7, producer_epoch=1, timestamp_ms=50)
        log.append([commit(20)], **TRANSACTION)
        log.append_marker(COMMIT, producer_id=7, producer_epoch=1, timestamp_ms=60)
        log.append([commit(30)], **TRANSACTION)

    rows = history(tmp_path, append)

    assert fates(rows) == [("aborted", 1), ("live", None), ("pending", None)]
    assert [(row["transaction_outcome"], row["marker_record_offset"], row["marker_timestamp_ms"]) for row in rows] == [
        ("ABORT", 1, 50),
        ("COMMIT", 3, 60),
        ("open", None, None),
    ]
    assert [row["committed_offset_delta"] for row in rows] == [None, None, 10]


def test_a_plain_commit_inside_a_transaction_outlives_the_earlier_one_that_it_commits(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(10)], **TRANSACTION)
        log.append([commit(15)])
        log.append_marker(COMMIT, producer_id=7, producer_epoch=1)

    assert fates(history(tmp_path, append)) == [("superseded", 1), ("live", None)]


@pytest.mark.parametrize(
    ("release", "expected"), [("2.8.2", [("live", None), ("superseded", 0)]), ("4.3.0", [("deleted", 1), ("live", None)])]
)
def test_what_is_left_where_a_tombstone_meets_a_pending_commit_hangs_on_the_release(
    tmp_path: Path, release: str, expected: list[tuple[str, int | None]]
) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(10)], **TRANSACTION)
        log.append([tombstone(commit(0))])
        log.append_marker(COMMIT, producer_id=7, producer_epoch=1)

    assert fates(history(tmp_path, append, release=release)) == expected


def classic_group(generation: int, **assigned: int) -> KeyValue:
    members = [
        {
            "member_id": member,
            "group_instance_id": None,
            "client_id": "c",
            "client_host": "/h",
            "rebalance_timeout_ms": 1,
            "session_timeout_ms": 1,
            "subscription": encode_subscription(0, {"topics": ["orders"], "user_data": None}),
            "assignment": encode_assignment(
                0, {"assigned_partitions": [{"topic": "orders", "partitions": [partition]}], "user_data": None}
            ),
        }
        for member, partition in assigned.items()
    ]
    value = {"protocol_type": "consumer", "generation": generation, "protocol": "range", "leader": None, "members": members}
    return group_metadata("billing", value | {"current_state_timestamp_ms": NOW_MS})


def test_a_commit_knows_its_owner_and_generation_in_a_classic_group(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(1)])
        log.append([classic_group(1, m1=0, m2=1)])
        log.append([commit(2)])
        log.append([classic_group(2, m2=0, m3=1)])
        log.append([commit(3), commit(9, partition=5)])

    rows = history(tmp_path, append, topic="orders")

    assert [(row["committed_offset"], row["generation"], row["owner_member_id"]) for row in rows] == [
        (1, None, None),
        (2, 1, "m1"),
        (3, 2, "m2"),
        (9, 2, None),
    ]


def test_a_commit_knows_its_owner_and_both_epochs_in_a_consumer_group(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        key = {"group": "billing", "member_id": "m1"}
        current = {"member_epoch": 4, "assigned": [{"topic_id": TOPIC_ID, "partitions": [0]}], "pending_revocation": []}
        log.append([(encode_key(3, key), encode_value(3, 0, {"group_epoch": 5})), (encode_key(8, key), encode_value(8, 0, current))])
        log.append([commit(2, topic_id=TOPIC_ID, version=4)])
        log.append([(encode_key(8, key), None)])
        log.append([commit(3)])

    rows = history(tmp_path, append, topic="orders", partition=0)

    assert [(row["group_epoch"], row["owner_member_id"], row["owner_member_epoch"]) for row in rows] == [(5, "m1", 4), (5, None, None)]


def test_group_records_are_part_of_the_life_with_their_values(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([classic_group(1, m1=0), classic_group(2, m1=0)])
        log.append([(encode_key(2, {"group": "billing"}), None)])

    rows = history(tmp_path, append)

    assert [(row["type"], row["fate"], row["ended_by_record_offset"]) for row in rows] == [
        ("group_metadata", "superseded", 1),
        ("group_metadata", "deleted", 2),
        ("group_metadata", "live", None),
    ]
    assert [json.loads(row["value"])["generation"] if row["value"] else None for row in rows] == [1, 2, None]


def test_an_unknown_group_is_told_with_its_neighbours_and_an_unknown_key_with_the_known_ones(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([commit(1)])
    with exhume.open(tmp_path) as topic:
        with pytest.raises(RequestError, match="billing"):
            topic.history("biling")
        with pytest.raises(RequestError, match=r"orders 0"):
            topic.history("billing", topic="orders", partition=4)


@pytest.mark.parametrize(
    ("name", "release"), [("2.4.1-transactions", "2.4.1"), ("4.3.0-transactions", "4.3.0"), ("3.6.2-lifecycle", "3.6.2")]
)
def test_what_a_history_calls_live_or_pending_is_what_the_state_holds(name: str, release: str) -> None:
    with exhume.open(corpus.BUNDLED / name / "data") as topic:
        state = topic.state(release=release, stop="clean")
        groups = sorted({*state.offsets["group"].to_pylist(), *state.pending_offsets["group"].to_pylist()})
        assert groups
        for group in groups:
            commits = [row for row in topic.history(group, release=release).to_pylist() if row["committed_offset"] is not None]
            told = {fate: {row["record_offset"] for row in commits if row["fate"] == fate} for fate in ("live", "pending")}
            held = state.group(group)
            assert told["live"] == {row["record_offset"] for row in held.offsets}, group
            assert told["pending"] >= {row["record_offset"] for row in held.pending_offsets}, group


def test_the_command_writes_one_line_for_each_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([commit(1), commit(2), commit(5, partition=1)])

    assert run(["history", str(tmp_path), "--group", "billing", "--topic", "orders", "--partition", "0", "--output", "jsonl"]) == 0

    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["committed_offset"], row["fate"]) for row in rows] == [(1, "superseded"), (2, "live")]


@pytest.mark.parametrize(("release", "expected"), [("4.3.0", ("COMMIT", "live")), ("2.8.2", ("ABORT", "aborted"))])
def test_a_control_record_of_another_type_ends_a_transaction_for_the_scala_coordinator_only(
    tmp_path: Path, release: str, expected: tuple[str, str]
) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(100)], **TRANSACTION)
        log.append([(bytes.fromhex("00000005"), bytes(6))], producer_id=7, producer_epoch=1, is_transactional=True, is_control=True)
        log.append_marker(COMMIT, producer_id=7, producer_epoch=1)

    (row,) = history(tmp_path, append, release=release)

    assert (row["transaction_outcome"], row["fate"]) == expected


def committers(rows: list[dict[str, Any]]) -> list[tuple[str | None, str | None]]:
    return [(row["committer"], row["committer_confidence"]) for row in rows if row["record_type"] == 1]


def test_of_one_member_the_author_is_proven_once_the_next_generation_follows(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([classic_group(1, a=0)])
        log.append([commit(10)])
        log.append([classic_group(2, a=0, b=1)])
        log.append([commit(20), commit(21, 1), commit(22, 7)])
        log.append([classic_group(4, a=0)])
        log.append([commit(30)])

    rows = history(tmp_path, append)

    assert committers(rows) == [
        ("only_member", "proof"),
        ("owner", "possible"),
        ("owner", "possible"),
        ("member", "possible"),
        ("only_member", "likely"),
    ]
    assert [(row["owner_client_id"], row["owner_client_host"]) for row in rows if row["record_type"] == 1][:1] == [("c", "/h")]


def test_where_the_count_began_anew_somebody_else_may_have_had_the_partition_before(tmp_path: Path) -> None:
    story = """
        0 08:00 GM g gen=5 {A: t → t-0}
        1 08:01 OC g t-0 = 5
        7 09:00 GM g gen=1 {B: t → t-0}
    """
    with exhume.open(Story(story).write(tmp_path)) as topic:
        rows = topic.history("g", topic="t").to_pylist()

    assert committers(rows) == [("only_member", "possible")]


def test_nobody_in_the_group_means_that_somebody_outside_committed(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([classic_group(3)])
        log.append([commit(10)])

    assert committers(history(tmp_path, append)) == [("outside", "likely")]


@pytest.mark.parametrize(
    ("record", "of_whole_log", "of_rest"),
    [
        # Generations are counted from 1, and a member commits when its own is stored.
        ("GM g gen=1 {A: t → t-0}", ("outside", "likely"), ("outside", "likely")),
        # Members of a generation without a record may have been there, but had no assignment.
        ("GM g gen=3 {A: t → t-0}", ("outside", "possible"), ("unknown", "undecidable")),
        ("GM g = X", ("outside", "likely"), ("unknown", "undecidable")),
        ("CG3 g epoch=1 | CG5 g a {t}", ("outside", "likely"), ("outside", "likely")),
        # The first epoch since 4.3, the second before.
        ("CG3 g epoch=2 | CG5 g a {t}", ("outside", "likely"), ("unknown", "undecidable")),
    ],
)
def test_who_committed_in_front_of_the_first_group_record(
    tmp_path: Path, record: str, of_whole_log: tuple[str, str], of_rest: tuple[str, str]
) -> None:
    for first, expected in ((0, of_whole_log), (3, of_rest)):
        story = f"""
            {first} 08:00 OC g t-0 = 5
            {first + 1} 08:01 {record}
        """
        with exhume.open(Story(story).write(tmp_path / str(first))) as topic:
            assert committers(topic.history("g").to_pylist()) == [expected]


def test_a_group_that_nobody_ever_joined_is_committed_to_from_outside(tmp_path: Path) -> None:
    assert committers(history(tmp_path, lambda log: log.append([commit(10)]))) == [("outside", "likely")]


def test_a_transaction_proves_no_author(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([classic_group(1, a=0)])
        log.append([commit(10)], **TRANSACTION)
        log.append([classic_group(2, a=0)])

    assert committers(history(tmp_path, append)) == [("only_member", "likely")]
