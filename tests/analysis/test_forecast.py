"""When offsets and groups expire, and the records of the pass that takes them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.forecast import FORECAST, TOMBSTONES
from exhume.cli.app import run
from exhume.cli.options import parse_retention
from exhume.codecs.record_types import decode_record
from exhume.errors import RequestError
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit
from tests.judges import corpus

T0_MS = 1_700_000_000_000
DAY_MS = 86_400_000
TRANSACTION = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0, "is_transactional": True}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A simple group, an Empty one, and one with an open transaction."""
    empty = {"protocol_type": "consumer", "generation": 3, "current_state_timestamp_ms": T0_MS + 1000, "members": []}
    with PartitionWriter(tmp_path / "data", 7) as partition:
        partition.append([offset_commit("simple", "orders", 0, 11, commit_timestamp_ms=T0_MS)])
        partition.append([group_metadata("idle", {**empty, "protocol": None, "leader": None})])
        partition.append([offset_commit("idle", "orders", 1, 12, commit_timestamp_ms=T0_MS + 5000)])
        partition.append([offset_commit("open", "orders", 2, 13, commit_timestamp_ms=T0_MS)])
        partition.append([offset_commit("open", "orders", 2, 14, commit_timestamp_ms=T0_MS)], **TRANSACTION)
    return tmp_path / "data"


def forecast(log: Path, **options: Any) -> list[dict[str, Any]]:
    with exhume.open(log) as topic:
        table = topic.expiry(retention_ms=DAY_MS, **options).forecast
    assert table.schema == FORECAST
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_each_offset_tells_what_it_is_counted_from_and_its_group_comes_behind_it(log: Path) -> None:
    rows = forecast(log, now_ms=T0_MS + DAY_MS)

    assert [
        (row["kind"], row["group"], row["rule"], row["base_timestamp_ms"], row["expires_at_ms"], row["is_past_due"]) for row in rows
    ] == [
        ("offset", "idle", "since_empty", T0_MS + 1000, T0_MS + 1000 + DAY_MS, False),
        ("group", "idle", "last_offset", T0_MS + 1000 + DAY_MS, T0_MS + 1000 + DAY_MS, False),
        ("offset", "open", None, None, None, False),
        ("group", "open", None, None, None, False),
        ("offset", "simple", "since_commit", T0_MS, T0_MS + DAY_MS, True),
        ("group", "simple", "last_offset", T0_MS + DAY_MS, T0_MS + DAY_MS, True),
    ]
    assert [(row["offsets_partition"], row["committed_offset"], row["record_offset"]) for row in rows[:2]] == [(7, 12, 2), (7, None, 1)]


def test_an_offset_that_stays_says_why(log: Path) -> None:
    reasons = {row["group"]: row["reason"] for row in forecast(log, now_ms=T0_MS, groups=["open"]) if row["kind"] == "offset"}

    assert reasons == {"open": "a commit for it is pending in an open transaction"}


def test_the_rules_are_those_of_the_release(log: Path) -> None:
    rows = forecast(log, now_ms=T0_MS, release="2.8.2", groups=["open"])

    assert [row["expires_at_ms"] for row in rows] == [T0_MS + DAY_MS, None]


def test_the_retention_of_a_release_counts_where_none_is_given(log: Path) -> None:
    with exhume.open(log) as topic:
        due = topic.expiry(now_ms=T0_MS, groups=["simple"]).forecast["expires_at_ms"].to_pylist()

    assert due == [T0_MS + 7 * DAY_MS] * 2


def test_the_tombstones_are_keys_that_a_broker_reads(log: Path) -> None:
    with exhume.open(log) as topic:
        table = topic.expiry(now_ms=T0_MS + 2 * DAY_MS, retention_ms=DAY_MS).tombstones
    keys = [decode_record(key, None) for key in table["key"].to_pylist()]

    assert table.schema == TOMBSTONES
    assert [(key.number, key.key["group"]) for key in keys] == [(1, "idle"), (2, "idle"), (1, "simple"), (2, "simple")]
    assert not any(key.errors for key in keys)
    assert table["append"].to_pylist() == [0, 0, 0, 0]


def test_the_scala_coordinator_appends_once_for_each_group(log: Path) -> None:
    with exhume.open(log) as topic:
        table = topic.expiry(now_ms=T0_MS + 2 * DAY_MS, retention_ms=DAY_MS, release="3.9.1").tombstones

    assert list(zip(table["append"].to_pylist(), table["record_type"].to_pylist(), strict=True)) == [(0, 1), (0, 2), (1, 1), (2, 1)]


def test_a_refused_write_is_a_finding_and_leaves_no_tombstones(tmp_path: Path) -> None:
    from exhume.codecs.record_types import encode_key, encode_value

    with PartitionWriter(tmp_path / "data", 0) as partition:
        partition.append([(encode_key(3, {"group": "stuck"}), encode_value(3, 0, {"group_epoch": 4}))])
        partition.append([(encode_key(7, {"group": "stuck", "member_id": "m"}), encode_value(7, 0, {"topic_partitions": []}))])
        partition.append([offset_commit("simple", "orders", 0, 11, commit_timestamp_ms=T0_MS)])
    with exhume.open(tmp_path / "data") as topic:
        expiry = topic.expiry(now_ms=T0_MS + 9 * DAY_MS)

        assert expiry.tombstones.num_rows == 0
        assert [finding.code for finding in topic.findings if finding.severity == "warn"] == ["expiry_pass_fails"]


@pytest.mark.parametrize("retention_ms", [0, 59_999, 90_000])
def test_a_retention_that_no_broker_can_have_is_refused(log: Path, retention_ms: int) -> None:
    with exhume.open(log) as topic, pytest.raises(RequestError, match="retention"):
        topic.expiry(retention_ms=retention_ms)


def test_an_unknown_group_is_refused_with_what_is_near_by(log: Path) -> None:
    with exhume.open(log) as topic, pytest.raises(RequestError, match="simple"):
        topic.expiry(groups=["simpel"])


@pytest.mark.parametrize(("text", "retention_ms"), [("7d", 7 * DAY_MS), ("168h", 7 * DAY_MS), ("10080m", 7 * DAY_MS), ("60000", 60_000)])
def test_a_retention_is_read_in_every_unit(text: str, retention_ms: int) -> None:
    assert parse_retention(text) == retention_ms


def test_a_retention_without_a_known_unit_is_refused() -> None:
    with pytest.raises(RequestError, match="7d"):
        parse_retention("1x")


def test_the_command_takes_time_retention_and_release(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(
        ["expiry", str(log), "--now", str(T0_MS), "--retention", "1d", "--release", "2.8.2", "--group", "simple", "--output", "json"]
    )

    assert code == 0
    assert [row["expires_at_ms"] for row in json.loads(capsys.readouterr().out)] == [T0_MS + DAY_MS] * 2


def test_the_command_says_what_is_past_due_and_what_comes_next(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["expiry", str(log), "--now", str(T0_MS + DAY_MS), "--retention", "1d"]) == 0

    said = capsys.readouterr().err
    assert said == "past due: 1 offset, 1 group; next: an offset of group 'idle' at 2023-11-15 22:13:21.000Z\n"


def test_the_command_says_that_nothing_is_due(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["expiry", str(log), "--now", str(T0_MS), "--retention", "1d", "--group", "open"]) == 0

    assert capsys.readouterr().err == "past due: nothing; next: nothing\n"


def test_the_command_gives_tombstones_with_their_keys_in_base64(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["expiry", str(log), "--now", str(T0_MS + DAY_MS), "--retention", "1d", "--as-records", "--output", "jsonl"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert code == 0
    assert [decode_record(base64.b64decode(row["key"]), None).key for row in rows] == [
        {"group": "simple", "topic": "orders", "partition": 0},
        {"group": "simple"},
    ]


def test_what_a_broker_left_until_its_end_was_not_long_past_due() -> None:
    story = next(case for case in corpus.cases() if case.name == "4.3.0-expiry")
    with exhume.open(story.data_directories[""]) as topic:
        rows = topic.expiry(now_ms=story.scenario["clock"]["end_ms"], retention_ms=60_000).forecast.to_pylist()
    late_ms = [
        story.scenario["clock"]["end_ms"] - row["expires_at_ms"] for row in rows if row["is_past_due"] and row["rule"] != "no_offsets"
    ]

    assert all(late < 15_000 for late in late_ms)
    assert {row["group"] for row in rows if row["kind"] == "offset" and row["expires_at_ms"] is None} >= {"live-dashboard", "nightly-etl"}
