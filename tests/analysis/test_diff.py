"""What differs between two states."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import exhume
from exhume.analysis.diff import diff_states
from exhume.cli.app import run
from exhume.codecs.embedded import encode_assignment, encode_subscription
from exhume.codecs.record_types import encode_key, encode_value
from exhume.errors import RequestError
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit, tombstone
from tests.judges import corpus

NOW_MS = 1_700_000_000_000
TOPIC_ID = "AQIDBAUGBwgJCgsMDQ4PEA"


def commit(committed_offset: int, partition: int = 0, *, commit_timestamp_ms: int = NOW_MS, **fields: Any) -> KeyValue:
    return offset_commit("billing", "orders", partition, committed_offset, commit_timestamp_ms=commit_timestamp_ms, **fields)


def group(generation: int, *members: str) -> KeyValue:
    assigned = {member: [("orders", number)] for number, member in enumerate(members)}
    value = {
        "protocol_type": "consumer",
        "generation": generation,
        "protocol": "range",
        "leader": members[0],
        "current_state_timestamp_ms": NOW_MS,
        "members": [
            {
                "member_id": member,
                "group_instance_id": None,
                "client_id": f"client-{member}",
                "client_host": "/h",
                "rebalance_timeout_ms": 1,
                "session_timeout_ms": 1,
                "subscription": SUBSCRIPTION,
                "assignment": assignment(pairs),
            }
            for member, pairs in assigned.items()
        ],
    }
    return group_metadata("billing", value)


def assignment(pairs: list[tuple[str, int]]) -> bytes:
    entries = [{"topic": topic, "partitions": [partition]} for topic, partition in pairs]
    return encode_assignment(0, {"assigned_partitions": entries, "user_data": None})


SUBSCRIPTION = encode_subscription(0, {"topics": ["orders"], "user_data": None})


def write(directory: Path, append: Callable[[PartitionWriter], object], offsets_partition: int = 7) -> Path:
    with PartitionWriter(directory, offsets_partition) as log:
        append(log)
    return directory


def diff(directory: Path, **moments: Any) -> list[dict[str, Any]]:
    with exhume.open(directory) as topic:
        return shown(topic.diff(**moments))


def shown(table: pa.Table) -> list[dict[str, Any]]:
    """The rows without what is null, values read from JSON."""
    rows = []
    for row in table.to_pylist():
        row |= {name: json.loads(row[name]) for name in ("before", "after", "key") if row[name] is not None}
        rows.append({name: value for name, value in row.items() if value is not None and name not in ("replica", "offsets_partition")})
    return rows


def test_a_new_commit_differs_in_its_offset_with_both_values_and_both_records(tmp_path: Path) -> None:
    write(tmp_path, lambda log: [log.append([commit(5)]), log.append([commit(9)])])

    assert diff(tmp_path, from_offset=0, release="2.8.2") == [
        {
            "table": "offsets",
            "change": "changed",
            "group": "billing",
            "topic": "orders",
            "partition": 0,
            "column": "committed_offset",
            "before": 5,
            "after": 9,
            "before_record_offset": 0,
            "after_record_offset": 1,
        }
    ]


def test_a_commit_that_says_the_same_again_makes_no_difference(tmp_path: Path) -> None:
    write(tmp_path, lambda log: [log.append([commit(5)]), log.append([commit(5)])])

    assert diff(tmp_path, from_offset=0) == []


def test_offsets_come_and_go_with_the_value_they_have(tmp_path: Path) -> None:
    write(tmp_path, lambda log: [log.append([commit(5, 0)]), log.append([tombstone(commit(5, 0)), commit(3, 1)])])

    rows = [row for row in diff(tmp_path, from_offset=0) if row["table"] == "offsets"]

    assert [(row["change"], row["partition"], row.get("before"), row.get("after")) for row in rows] == [
        ("removed", 0, 5, None),
        ("added", 1, None, 3),
    ]


def test_a_rebalance_shows_in_group_members_and_assignments(tmp_path: Path) -> None:
    write(tmp_path, lambda log: [log.append([group(1, "m1", "m2")]), log.append([group(2, "m2", "m3")])])

    rows = diff(tmp_path, from_offset=0, release="4.3.0")

    changes = {(row["table"], row["change"], row.get("member_id"), row.get("column"), row.get("partition")) for row in rows}
    assert changes >= {
        ("groups", "changed", None, "generation", None),
        ("groups", "changed", None, "leader", None),
        ("members", "removed", "m1", "client_id", None),
        ("members", "added", "m3", "client_id", None),
        ("assignments", "removed", "m2", None, 1),
        ("assignments", "added", "m2", None, 0),
    }
    assert {(row.get("before_record_offset", 0), row.get("after_record_offset", 1)) for row in rows} == {(0, 1)}


def test_both_moments_can_be_times(tmp_path: Path) -> None:
    write(tmp_path, lambda log: [log.append([commit(n)], timestamp_ms=100 * n) for n in range(5)])

    (row,) = diff(tmp_path, from_time_ms=100, to_time_ms=399)

    assert (row["before"], row["after"]) == (1, 3)


def test_the_same_moment_twice_makes_no_difference(tmp_path: Path) -> None:
    write(tmp_path, lambda log: [log.append([commit(n)]) for n in range(3)])

    assert diff(tmp_path, from_offset=1, to_offset=1) == []


def test_a_topic_name_that_is_learned_between_the_moments_is_no_difference(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        key = {"group": "carts", "member_id": "m1"}
        current = {"member_epoch": 1, "assigned": [{"topic_id": TOPIC_ID, "partitions": [0]}], "pending_revocation": []}
        member = {"client_id": "c", "client_host": "/h", "subscribed_topics": ["orders"], "classic_member_metadata": None}
        log.append([(encode_key(5, key), encode_value(5, 0, member)), (encode_key(8, key), encode_value(8, 0, current))])
        log.append([commit(1, topic_id=TOPIC_ID, version=4)])

    write(tmp_path, append)

    assert {row["table"] for row in diff(tmp_path, from_offset=1, release="4.3.0")} == {"groups", "offsets"}


def test_a_difference_needs_a_moment_to_begin_with(tmp_path: Path) -> None:
    write(tmp_path, lambda log: log.append([commit(1)]))

    with pytest.raises(RequestError, match="needs an earlier moment"):
        diff(tmp_path, to_offset=0)


@pytest.mark.parametrize(
    "moments", [{"from_offset": 2, "to_offset": 1}, {"from_time_ms": 200, "to_time_ms": 100}], ids=["offsets", "times"]
)
def test_moments_in_the_wrong_order_are_refused(tmp_path: Path, moments: dict[str, int]) -> None:
    write(tmp_path, lambda log: [log.append([commit(n)], timestamp_ms=100 * n) for n in range(5)])

    with pytest.raises(RequestError, match="the first moment is after the last one"):
        diff(tmp_path, **moments)


def test_a_group_that_neither_moment_has_is_refused_with_the_nearest_names(tmp_path: Path) -> None:
    write(tmp_path, lambda log: [log.append([commit(n)]) for n in range(3)])

    with pytest.raises(RequestError, match="no group 'bill' in these states") as refused:
        diff(tmp_path, from_offset=1, groups=["bill"])
    assert "billing" in (refused.value.remedy or "")
    assert diff(tmp_path, from_offset=1, to_offset=1, groups=["billing"]) == []


def test_two_copies_of_one_log_do_not_differ_whatever_their_names_are(tmp_path: Path) -> None:
    copies = [write(tmp_path / name, lambda log: log.append([group(1, "m1"), commit(5)])) for name in ("before", "after")]

    assert shown(diff_states(*(load(copy) for copy in copies))) == []


def test_replicas_that_parted_differ_in_the_offsets_that_only_one_of_them_has() -> None:
    data = corpus.BUNDLED / "2.8.2-failover"
    one, two = (load(data / f"data-broker{number}", release="2.8.2") for number in (1, 2))

    rows = shown(diff_states(one, two))

    expected = {
        name: {(row["group"], row["topic"], row["partition"]): row["committed_offset"] for row in state.offsets.to_pylist()}
        for name, state in (("before", one), ("after", two))
    }
    different = {key for key in {*expected["before"], *expected["after"]} if expected["before"].get(key) != expected["after"].get(key)}
    told = {
        (row["group"], row["topic"], row["partition"]): (row.get("before"), row.get("after"))
        for row in rows
        if row["table"] == "offsets" and row["column"] == "committed_offset"
    }
    assert different
    assert told == {key: (expected["before"].get(key), expected["after"].get(key)) for key in different}


def load(directory: Path, **options: Any) -> Any:
    with exhume.open(directory) as topic:
        return topic.state(**options)


# --- The command


def test_the_exit_code_tells_whether_something_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, lambda log: [log.append([commit(5)]), log.append([commit(9)])])

    assert run(["diff", str(tmp_path), "--from-offset", "0", "--output", "jsonl"]) == 1
    (row,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (row["before"], row["after"], row["after_record_offset"]) == (5, 9, 1)
    assert run(["diff", str(tmp_path), "--from-offset", "7:1"]) == 0
    assert run(["diff", str(tmp_path), str(tmp_path)]) == 0


@pytest.mark.parametrize("arguments", [[], ["--from-offset", "seven"], ["--from-offset", "7:1", "--from-offset", "7:2"]])
def test_one_path_without_two_moments_is_a_wrong_request(tmp_path: Path, arguments: list[str]) -> None:
    write(tmp_path, lambda log: log.append([commit(5)]))

    assert run(["diff", str(tmp_path), *arguments]) == 2


def test_a_group_that_neither_copy_has_is_a_wrong_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, lambda log: log.append([commit(5)]))

    assert run(["diff", str(tmp_path), str(tmp_path), "--group", "typo"]) == 2
    assert "no group 'typo'" in capsys.readouterr().err


def test_state_at_a_moment_is_one_document_with_the_grades_of_the_past(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, lambda log: [log.append([commit(5)]), log.append([commit(9)])])

    assert run(["state", str(tmp_path), "--at-offset", "7:0", "--output", "json"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert [row["committed_offset"] for row in document["offsets"]] == [5]
    assert [(row["group"], row["grade"]) for row in document["completeness"]] == [("billing", "certain")]


def test_state_at_a_moment_says_in_words_how_complete_the_past_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, lambda log: [log.append([commit(5)], timestamp_ms=1000), log.append([commit(9)], timestamp_ms=2000)])

    assert run(["state", str(tmp_path), "--at-time", "1500", "--clock", "append", "--group", "billing"]) == 0

    assert "completeness by group: 1 certain" in capsys.readouterr().err
