"""Lag, as `kafka-consumer-groups.sh --describe` shows it: what is known, and null for what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.lag import LAG, lag_sentence
from exhume.cli.demo import DEMO_LOG
from exhume.errors import RequestError
from tests.bundled import unpacked

GROUP = "fraud-scoring"
_SCORER = "13eabb33-8e20-4732-b52e-038f88c83dac"
_COLUMNS = ["topic", "partition", "committed_offset", "end_offset", "lag", "client_id", "holding"]


def lines(rows: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows.select(_COLUMNS).to_pylist()]


def test_each_partition_has_its_offsets_and_its_consumer() -> None:
    with exhume.open(DEMO_LOG) as topic:
        lag = topic.lag({("orders", 0): 11, ("orders", 3): 1, ("orders", 4): 0}, groups=[GROUP])

    assert lag.schema.equals(LAG)
    assert lines(lag) == [
        ("orders", 0, 1, 11, 10, "scorer-1", "assigned"),
        ("orders", 1, 1, None, None, "scorer-1", "assigned"),
        ("orders", 2, 1, None, None, "scorer-1", "assigned"),
        ("orders", 3, 1, 1, 0, "scorer-1", "pending_revocation"),
        ("orders", 4, 1, 0, -1, "scorer-1", "pending_revocation"),
        ("orders", 5, 1, None, None, "scorer-1", "pending_revocation"),
        (None, None, None, None, None, "scorer-2", None),
    ]
    assert lag["member_id"][0].as_py() == _SCORER
    assert lag["client_host"][0].as_py() == "/127.0.0.1"
    assert lag_sentence(lag, is_past=False) == (
        "lag 10 in 2 partitions · 1 beyond the given end offset · 3 without a known end offset (--end-offsets)"
    )


def test_a_consumer_without_a_commit_has_no_lag() -> None:
    with exhume.open(DEMO_LOG) as topic:
        lag = topic.lag({("orders", 1): 5}, groups=["checkout-service"])

    assert ("orders", 1, None, 5, None, "checkout-0", "assigned") in lines(lag)


def test_committed_offsets_without_a_consumer_stay() -> None:
    with exhume.open(DEMO_LOG) as topic:
        lag = topic.lag({("orders", 1): 600}, groups=["backfill-offsets"])

    assert ("orders", 1, 501, 600, 99, None, None) in lines(lag)
    assert lag.num_rows == lag.filter(lag["committed_offset"].is_valid()).num_rows == 6


def test_a_moment_has_its_own_offsets() -> None:
    with exhume.open(DEMO_LOG) as topic:
        lag = topic.lag({("orders", 0): 11, ("orders", 5): 3}, groups=[GROUP], at_offset={2: 99})

    offsets = {row["partition"]: row["committed_offset"] for row in lag.to_pylist() if row["topic"]}
    assert offsets == {0: 1, 1: 1, 2: 1}
    assert lag_sentence(lag, is_past=True).endswith("if the end offsets are newer than this moment, the lag was smaller then")


def test_without_end_offsets_nothing_is_guessed() -> None:
    with exhume.open(DEMO_LOG) as topic:
        lag = topic.lag()

    assert lag["end_offset"].null_count == lag["lag"].null_count == lag.num_rows
    assert lag_sentence(lag, is_past=False).startswith("no lag is known · ")


def test_a_streams_group_shows_the_members_with_active_tasks() -> None:
    with exhume.open(unpacked() / "4.3.0-streams-groups" / "data") as topic:
        state, lag = topic.state(), topic.lag()

    tasks = state.assignments.to_pylist()
    active = [row for row in tasks if row["kind"] == "assigned" and row["task_role"] == "active"]
    read = {
        (row["group"], row["subtopology_id"]): [*row["source_topics"], *row["repartition_source_topics"]]
        for row in state.streams_topologies.to_pylist()
    }
    expected = {(row["member_id"], topic, row["partition"]) for row in active for topic in read[row["group"], row["subtopology_id"]]}
    shown = {(row["member_id"], row["topic"], row["partition"]) for row in lag.to_pylist() if row["member_id"] and row["topic"]}
    assert expected
    assert shown == expected


def test_offsets_and_consumers_are_those_that_a_broker_answered() -> None:
    story = unpacked() / "4.3.0-consumer-groups"
    answers = json.loads((story / "oracle" / "after-4.3.0.json").read_text(encoding="utf-8"))["groups"]
    with exhume.open(story / "data") as topic:
        rows = topic.lag(release="4.3.0").to_pylist()

    told_offsets, told_members = set(), set()
    for group, answer in answers.items():
        told_offsets |= {(group, each["topic"], each["partition_index"], each["committed_offset"]) for each in answer["offsets"]["offsets"]}
        described = [*answer["describe"]["groups"], *answer.get("consumer_describe", {}).get("groups", ())]
        members = [member for each in described for member in each["members"]]
        told_members |= {(group, each["member_id"], each["client_id"], each["client_host"]) for each in members}
    assert told_offsets
    assert {(row["group"], row["topic"], row["partition"], row["committed_offset"]) for row in rows if row["record_offset"]} == told_offsets
    assert {
        tuple(row[name] for name in ("group", "member_id", "client_id", "client_host")) for row in rows if row["member_id"]
    } == told_members


def test_a_file_of_kafka_gives_the_end_offsets(tmp_path: Path) -> None:
    ends = tmp_path / "ends.txt"
    ends.write_text("orders:0:11\norders:1:\n", encoding="utf-8")
    with exhume.open(DEMO_LOG) as topic:
        lag = topic.lag(ends, groups=[GROUP])
        graded = topic.graded_state(groups=[GROUP], end_offsets=ends)

        assert [row[4] for row in lines(lag)] == [10, None, None, None, None, None, None]
        assert graded["lag"].equals(lag)
        assert "lag" in [*graded]
        ends.write_text("orders-0 11\n", encoding="utf-8")
        with pytest.raises(RequestError, match="line 1"):
            topic.lag(ends)
