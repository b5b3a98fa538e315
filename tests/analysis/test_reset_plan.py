"""Plans that take groups back: what they restore, what they leave alone, what they cannot restore, and the text for Kafka's tool."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.reset_plan import RESET_PLAN, RESET_RECORDS, ResetPlan
from exhume.cli.app import run
from exhume.codecs.record_types import decode_record
from exhume.codecs.wire import InvalidUtf8
from exhume.errors import RequestError
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit, tombstone

T0_MS = 1_700_000_000_000
DAY_MS = 86_400_000
TRANSACTION = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0, "is_transactional": True}
TOPIC_IDS = ("AQIDBAUGBwgJCgsMDQ4PEA", "AQIDBAUGBwgJCgsMDQ4PEQ")


def commit(offset: int, partition: int = 0, *, group: str = "pay", topic: str = "orders", at_ms: int = T0_MS, **fields: Any) -> KeyValue:
    return offset_commit(group, topic, partition, offset, commit_timestamp_ms=at_ms, **fields)


def plan(directory: Path, append: Callable[[PartitionWriter], object], *groups: str, **options: Any) -> ResetPlan:
    with PartitionWriter(directory, 7) as log:
        append(log)
    with exhume.open(directory) as topic:
        return topic.reset_plan(groups or ("pay",), now_ms=T0_MS, **options)


def actions(plan: ResetPlan) -> dict[tuple[str, int], str]:
    return {(row["topic"], row["partition"]): row["action"] for row in plan.table.to_pylist()}


def expired_and_begun_anew(log: PartitionWriter) -> None:
    """A group that was idle for a week, lost its offsets, and began again at the front."""
    log.append([group_metadata("pay", {"protocol_type": "consumer", "generation": 4})], timestamp_ms=T0_MS)
    log.append([commit(5000), commit(7000, 1)], timestamp_ms=T0_MS + 5)
    log.append([tombstone(commit(0)), tombstone(commit(0, 1))], timestamp_ms=T0_MS + 7 * DAY_MS)
    log.append([commit(310), commit(290, 1)], timestamp_ms=T0_MS + 9 * DAY_MS)


@pytest.mark.parametrize("moment", [{"at_offset": 2}, {"at_time_ms": T0_MS + DAY_MS}, {"taken_back": "lost"}], ids=str)
def test_a_group_that_lost_its_offsets_gets_them_back(tmp_path: Path, moment: dict[str, Any]) -> None:
    made = plan(tmp_path, expired_and_begun_anew, **moment)

    assert made.text == "orders,0,5000\norders,1,7000\n"
    assert made.table.schema == RESET_PLAN
    assert [(row["newest_committed_offset"], row["committed_offset_delta"], row["record_offset"]) for row in made.table.to_pylist()] == [
        (310, 4690, 1),
        (290, 6710, 2),
    ]


def test_a_plan_of_a_moment_says_which_record_was_the_last_and_when(tmp_path: Path) -> None:
    made = plan(tmp_path, expired_and_begun_anew, at_time_ms=T0_MS + DAY_MS)

    assert {(row["cut_record_offset"], row["cut_timestamp_ms"]) for row in made.table.to_pylist()} == {(2, T0_MS + 5)}
    assert next(made.sentences()) == "2 to restore; as of record 2 of offsets partition 7 (2023-11-14 22:13:20.005Z)"


def test_the_cut_goes_by_record_offset_where_clocks_went_back(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(100)], timestamp_ms=T0_MS)
        log.append([commit(200)], timestamp_ms=T0_MS + 60)
        log.append([commit(300)], timestamp_ms=T0_MS + 10)
        log.append([commit(50)], timestamp_ms=T0_MS + 90)

    assert plan(tmp_path, append, at_time_ms=T0_MS + 20).text == "orders,0,100\n"


def test_a_rewind_is_undone_and_what_has_passed_it_since_is_left_alone(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(160), commit(160, 1), commit(160, 2)])
        log.append([commit(120), commit(120, 1)])
        log.append([commit(130), commit(170, 1), commit(170, 2)])

    made = plan(tmp_path, append, taken_back="before_rewind")

    assert made.text == "orders,0,160\n"
    assert actions(made) == {("orders", 0): "restored", ("orders", 1): "unchanged"}
    assert [row["ended_by_record_offset"] for row in made.table.to_pylist()] == [3, 4]


def test_of_several_rewinds_the_last_is_undone_and_the_highest_is_named(tmp_path: Path) -> None:
    made = plan(tmp_path, lambda log: log.append([commit(at) for at in (200, 100, 150, 120)]), taken_back="before_rewind")

    assert made.text == "orders,0,150\n"
    assert "the last of 2 rewinds; before them it reached 200" in made.table["reason"][0].as_py()


def test_what_was_removed_and_began_anew_lower_is_lost_and_not_set_back(tmp_path: Path) -> None:
    assert plan(tmp_path, expired_and_begun_anew, taken_back="before_rewind").table.num_rows == 0


def test_a_commit_that_counts_late_is_no_rewind(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(50)], **TRANSACTION)
        log.append([commit(70)])
        log.append_marker(producer_id=7, producer_epoch=1)

    assert plan(tmp_path, append, taken_back="before_rewind").table.num_rows == 0


@pytest.mark.parametrize(("include_pending", "text"), [(False, ""), (True, "orders,0,10\n")])
def test_keys_with_a_pending_commit_are_left_alone_unless_asked_for(tmp_path: Path, include_pending: bool, text: str) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(10)])
        log.append([commit(5)])
        log.append([commit(20)], **TRANSACTION)

    made = plan(tmp_path, append, at_offset=0, include_pending=include_pending)

    assert made.text == text
    assert actions(made) == {("orders", 0): "restored" if include_pending else "pending"}


def test_what_was_pending_at_the_moment_and_what_came_later_cannot_be_restored(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(20)], **TRANSACTION)
        log.append_marker(producer_id=7, producer_epoch=1)
        log.append([commit(30, 1)])

    made = plan(tmp_path, append, at_offset=0)

    assert made.text == ""
    assert set(actions(made).values()) == {"not_restorable"}
    assert "removes none" in made.table["reason"][1].as_py()


def test_a_tombstone_whose_value_is_compacted_away_says_so(tmp_path: Path) -> None:
    made = plan(tmp_path, lambda log: log.append([tombstone(commit(0))]), taken_back="lost")

    assert made.text == ""
    assert made.table["reason"].to_pylist() == ["record 0 removed it, and compaction removed its last commit"]


def test_positions_of_a_topic_that_was_made_anew_are_not_restored(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        for offset, topic_id in zip((8000, 15), TOPIC_IDS, strict=True):
            log.append([commit(offset, version=4, topic_id=topic_id)])

    made = plan(tmp_path, append, at_offset=0)

    assert made.text == ""
    assert f"its id was {TOPIC_IDS[0]} and is {TOPIC_IDS[1]} now" in made.table["reason"][0].as_py()


@pytest.mark.parametrize("topic", ["or ders", "a,b", "..", "ünïcode", ""])
def test_names_that_no_topic_can_have_are_not_restored(tmp_path: Path, topic: str) -> None:
    made = plan(tmp_path, lambda log: log.append([commit(10, topic=topic), tombstone(commit(0, topic=topic))]), at_offset=0)

    assert (made.text, actions(made)) == ("", {(topic, 0): "not_restorable"})


def test_a_plan_of_several_groups_names_each_in_front(tmp_path: Path) -> None:
    names = ["=1+1", 'say "no"', "a,b", " padded ", "käse", "return\rhere", "tab\there", "#hash", "back\\slash", "-dash"]

    def append(log: PartitionWriter) -> None:
        log.append([commit(100 + number, group=name) for number, name in enumerate(names)])
        log.append([commit(1, group=name) for name in names])

    made = plan(tmp_path, append, *names, at_offset=9)

    lines = made.text.split("\n")[:-1]
    assert [row for line in lines for row in csv.reader([line])] == sorted(
        [name, "orders", "0", str(100 + number)] for number, name in enumerate(names)
    )
    assert '"=1+1",orders,0,100' in lines
    assert '"say ""no""",orders,0,101' in lines


def test_a_group_with_a_line_feed_in_its_name_is_planned_by_itself(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(10, group="two\nlines"), commit(10)])
        log.append([commit(5, group="two\nlines"), commit(5)])

    with pytest.raises(RequestError, match="line feed"):
        plan(tmp_path, append, "two\nlines", "pay", at_offset=1)
    with exhume.open(tmp_path) as topic:
        assert topic.reset_plan(["two\nlines"], at_offset=1).text == "orders,0,10\n"


def test_a_group_with_members_and_metadata_that_is_lost_are_said(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        members = [{"member_id": "m", "client_id": "c", "client_host": "/h", "subscription": b"", "assignment": b""}]
        log.append([commit(10, metadata="AgAA")])
        log.append([commit(5)])
        log.append([group_metadata("pay", {"protocol_type": "consumer", "generation": 4, "protocol": "range", "members": members})])

    made = plan(tmp_path, append, at_offset=0)

    assert [finding.code for finding in made.findings] == ["group_is_active", "metadata_is_lost"]


def test_records_say_the_same_in_the_value_version_of_the_log(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(10, version=4, topic_id=TOPIC_IDS[0], leader_epoch=3, metadata="kept"), commit(11, 1, version=1)])
        log.append([tombstone(commit(0)), tombstone(commit(0, 1))])

    records = plan(tmp_path, append, taken_back="lost").records

    assert records.schema == RESET_RECORDS
    decoded = [decode_record(row["key"], row["value"]) for row in records.to_pylist()]
    assert [(record.key["partition"], record.value_version, record.value["committed_offset"]) for record in decoded if record.value] == [
        (0, 4, 10),
        (1, 1, 11),
    ]
    assert decoded[0].value == {
        "committed_offset": 10,
        "leader_epoch": 3,
        "metadata": "kept",
        "commit_timestamp_ms": T0_MS,
        "topic_id": TOPIC_IDS[0],
    }


def test_metadata_that_is_no_text_is_restored_byte_for_byte(tmp_path: Path) -> None:
    metadata = InvalidUtf8(b"\xff\xfeat least bytes")

    def append(log: PartitionWriter) -> None:
        log.append([commit(10, metadata=metadata)])
        log.append([tombstone(commit(0))])

    made = plan(tmp_path, append, taken_back="lost")

    assert made.text == "orders,0,10\n"
    [row] = made.records.to_pylist()
    value = decode_record(row["key"], row["value"]).value
    assert value is not None
    assert value["metadata"].raw == metadata.raw


@pytest.mark.parametrize("taken_back", ["lost", "before_rewind"])
def test_keys_that_are_cut_off_behind_their_group_are_not_planned_for(tmp_path: Path, taken_back: str) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([commit(10), (b"\0\1\0\3pay", commit(20)[1]), (b"\0\1\0\3pay", commit(5)[1])])
        log.append([commit(7), (b"\0\1\0\3pay", None)])
        log.append([tombstone(commit(0))] if taken_back == "lost" else [commit(8)])

    assert plan(tmp_path, append, taken_back=taken_back).text == f"orders,0,{7 if taken_back == 'lost' else 10}\n"


def test_a_past_that_compaction_took_a_part_of_is_a_finding(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([commit(10, 1)])
        log.roll(3)
        log.append([commit(20)])
        log.roll(5)
        log.append([commit(30)])
    with exhume.open(tmp_path) as topic:
        topic.reset_plan(["pay"], at_offset=3)
        assert "past_is_incomplete" in {finding.code for finding in topic.findings}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "exactly one target"),
        ({"at_offset": 0, "taken_back": "lost"}, "exactly one target"),
        ({"at_offset": 0, "groups": ("nobody",)}, "no record of group 'nobody'"),
    ],
)
def test_a_wrong_request_says_what_could_be_asked(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    groups = options.pop("groups", ("pay",))

    with pytest.raises(RequestError, match=said):
        plan(tmp_path, lambda log: log.append([commit(10)]), *groups, **options)


def test_a_group_in_two_offsets_partitions_has_to_be_told_apart(tmp_path: Path) -> None:
    for number in (12, 62):
        with PartitionWriter(tmp_path, number) as log:
            log.append([commit(10)])
            log.append([commit(9)])
    with exhume.open(tmp_path) as topic, pytest.raises(RequestError, match=r"partition 12 .* partition 62"):
        topic.reset_plan(["pay"], at_offset={12: 0, 62: 0})


def test_the_command_writes_the_plan_alone_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with PartitionWriter(tmp_path / "data", 7) as log:
        expired_and_begun_anew(log)

    assert run(["reset-plan", str(tmp_path / "data"), "--group", "pay", "--lost"]) == 0
    captured = capsys.readouterr()

    assert captured.out == "orders,0,5000\norders,1,7000\n"
    assert "pay orders-0: 310 -> 5000 (+4690), by record 1; record 3 removed it" in captured.err


@pytest.mark.parametrize("arguments", [[], ["--lost", "--before-rewind"], ["--at-offset", "1", "--lost"]], ids=str)
def test_the_command_wants_one_moment(tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reset-plan", str(tmp_path), "--group", "pay", *arguments]) == 2
    assert "--before-rewind" in capsys.readouterr().err


def test_a_time_for_records_that_are_not_asked_for_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reset-plan", str(tmp_path), "--group", "pay", "--lost", "--now", "2024-02-01"]) == 2
    assert "--as-records" in capsys.readouterr().err
