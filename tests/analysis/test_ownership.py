"""Who owned which partition, when."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.errors import RequestError
from exhume.fixtures import scenarios
from exhume.fixtures.log_writer import PartitionWriter, offset_commit, tombstone
from exhume.fixtures.story import Story, time_ms, topic_id
from exhume.topic import OffsetsTopic
from tests.analysis.group_records import TOPIC_ID, classic, consumer, current
from tests.judges import corpus

Rows = list[dict[str, Any]]
KINDS = {"away": "assigned"}
#: 3.7 wrote what no later release can read.
CASES = corpus.sweep(
    (case for case in corpus.cases() if not (case.is_random or case.is_fact or case.name == "3.7.2-consumer-groups")), one_of=4
)


def owners(directory: Path, append: Callable[[PartitionWriter], object] | None = None, **options: Any) -> Rows:
    if append is not None:
        with PartitionWriter(directory, 7) as log:
            append(log)
    with exhume.open(directory) as topic:
        rows: Rows = topic.owners(**options).to_pylist()
    return rows


def intervals(rows: Rows) -> list[tuple[Any, ...]]:
    return [(row["partition"], row["from_record_offset"], row["to_record_offset"], row["member_id"], row["holding"]) for row in rows]


def test_a_partition_goes_from_owner_to_owner(tmp_path: Path) -> None:
    scenarios.write("three-rebalances", tmp_path / "log")

    rows = owners(tmp_path / "log", topic="orders", partition=5)

    assert [(row["client_id"], row["generation"], row["last_generation"], row["ended"]) for row in rows] == [
        ("checkout-1", 1, 1, "then"),
        ("checkout-2", 2, 2, "then"),
        ("checkout-3", 3, 3, None),
    ]
    assert [row["duration_ms"] for row in rows] == [65_000, 65_000, 5_000]
    assert [row["to_record_offset"] for row in rows[:-1]] == [row["from_record_offset"] for row in rows[1:]]


def test_who_keeps_a_partition_over_generations_has_one_interval(tmp_path: Path) -> None:
    rows = owners(tmp_path, lambda log: [log.append([classic(generation, a=[0])]) for generation in (1, 2, 3)])

    assert [(row["generation"], row["last_generation"]) for row in rows] == [(1, 3)]


def test_gaps_say_why_nobody_has_a_partition(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([classic(1, a=[0], b=[1])])
        log.append([classic(2, a=[], b=[1])])
        log.append([classic(3)])
        log.append([tombstone(classic(3))])
        log.append([classic(1, a=[0])])

    rows = [row for row in owners(tmp_path, append) if row["partition"] == 0]

    assert [(row["from_record_offset"], row["member_id"], row["reason"]) for row in rows] == [
        (0, "a", None),
        (1, None, "unassigned"),
        (2, None, "empty"),
        (3, None, "removed"),
        (4, "a", None),
    ]


def test_two_owners_at_once_name_each_other(tmp_path: Path) -> None:
    rows = owners(tmp_path, lambda log: [log.append([classic(1, a=[0, 1], b=[1])]), log.append([classic(2, a=[0], b=[1])])])

    assert [(row["partition"], row["member_id"], row["to_record_offset"], row["overlaps"]) for row in rows] == [
        (0, "a", None, []),
        (1, "a", 1, ["b"]),
        (1, "b", None, ["a"]),
    ]


def test_an_interval_ends_earlier_where_generations_left_no_record(tmp_path: Path) -> None:
    rows = owners(tmp_path, lambda log: [log.append([classic(1, a=[0])]), log.append([classic(5, b=[0])])])

    assert [(row["member_id"], row["ended"]) for row in rows] == [("a", "earlier"), ("b", None)]


def test_where_the_count_began_anew_an_interval_ended_earlier(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([classic(5, a=[0])])
        log.roll(7)
        log.append([classic(1, b=[0])])

    assert [(row["member_id"], row["ended"]) for row in owners(tmp_path, append)] == [("a", "earlier"), ("b", None)]


@pytest.mark.parametrize(
    ("generations", "began"),
    [
        # Nothing is missing.
        ({0: 3, 1: 7}, ["then", "then"]),
        # Nothing but the first generation can have been before the first.
        ({5: 1, 6: 2}, ["then", "then"]),
        ({5: 2, 6: 3}, ["earlier", "then"]),
        # One generation follows the other, whatever the hole between them held.
        ({0: 1, 5: 2}, ["then", "then"]),
        ({0: 1, 5: 3}, ["then", "earlier"]),
    ],
)
def test_an_interval_may_have_begun_earlier_where_records_are_missing(
    tmp_path: Path, generations: dict[int, int], began: list[str]
) -> None:
    lines = [f"{offset} 08:0{offset} GM g gen={generation} {{M{generation}: t → t-0}}" for offset, generation in generations.items()]

    assert [row["began"] for row in owners(Story("\n".join(lines)).write(tmp_path))] == began


@pytest.mark.parametrize(("epoch", "began"), [(1, "then"), (2, "earlier")])
def test_nothing_is_in_front_of_a_first_epoch(tmp_path: Path, epoch: int, began: str) -> None:
    story = f"""
        5 08:00 CG3 g epoch={epoch} | CG5 g a {{t}} | CG8 g a epoch={epoch} state=0 own{{t:[0]}}
    """

    assert [row["began"] for row in owners(Story(story).write(tmp_path))] == [began]


def test_what_a_member_has_to_give_up_is_its_own_until_it_did(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([consumer(3, {"group_epoch": 1}), current("a", 1, 0, [0, 1], [])])
        log.append([current("a", 1, 1, [0], [1])])
        log.append([current("a", 2, 0, [0], [])])
        log.append([current("b", 2, 0, [1], [])])

    assert intervals(owners(tmp_path, append, topic=TOPIC_ID, partition=1)) == [
        (1, 0, 2, "a", "assigned"),
        (1, 2, 3, "a", "pending_revocation"),
        (1, 3, 4, None, "nobody"),
        (1, 4, None, "b", "assigned"),
    ]


@pytest.mark.parametrize(
    ("moment", "owner"),
    [
        ({"at_time_ms": 9}, []),
        ({"at_time_ms": 10}, ["a"]),
        ({"at_time_ms": 29}, ["a"]),
        ({"at_time_ms": 30}, ["b"]),
        ({"at_offset": 0}, ["a"]),
        ({"at_offset": 1}, ["b"]),
        ({"at_offset": {7: 1}}, ["b"]),
    ],
)
def test_a_moment_shows_who_had_it_then(tmp_path: Path, moment: dict[str, Any], owner: list[str]) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([classic(1, a=[0])], timestamp_ms=10)
        log.append([classic(2, b=[0])], timestamp_ms=30)

    assert [row["member_id"] for row in owners(tmp_path, append, **moment)] == owner


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        ({"at_time_ms": 19}, [("moment_too_early", 1)]),
        ({"at_time_ms": 20}, []),
        ({"at_offset": 0}, [("moment_too_early", 1)]),
        ({"at_offset": 1}, []),
    ],
)
def test_a_moment_in_front_of_all_groups_is_told(tmp_path: Path, moment: dict[str, Any], told: list[tuple[str, int]]) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([offset_commit("g", "t", 0, 1, commit_timestamp_ms=10)], timestamp_ms=10)
        log.append([classic(1, a=[0])], timestamp_ms=20)

    for question in (OffsetsTopic.owners, OffsetsTopic.assignments):
        with exhume.open(tmp_path) as topic:
            question(topic, **moment)

            assert [(finding.code, finding.first_record_offset) for finding in topic.findings if finding.severity == "warn"] == told


def test_of_groups_that_are_asked_for_others_may_have_been_there(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([classic(1, a=[0])], timestamp_ms=10)
        log.append([classic(1, "late", a=[0])], timestamp_ms=20)

    for question in (OffsetsTopic.owners, OffsetsTopic.assignments):
        with exhume.open(tmp_path) as topic:
            question(topic, groups=["late"], at_time_ms=15)

            [told] = [finding for finding in topic.findings if finding.severity == "warn"]
            assert (told.code, told.group, told.first_record_offset) == ("moment_too_early", "late", 1)
            assert told.sentence == "none of these groups has a record before this moment"


def test_a_partition_without_a_segment_has_no_moment(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.append([classic(1, a=[0])], timestamp_ms=10)
    (tmp_path / "__consumer_offsets-3").mkdir()

    with exhume.open(tmp_path) as topic:
        topic.owners(at_offset={7: 0})

        assert not [finding for finding in topic.findings if finding.offsets_partition == 3 and finding.code == "taken_to_its_end"]


CONVERTED = """
    0 08:00 GM g gen=3 {A: t → t-0; B: t → t-1}
    1 08:10 GM g = X | CG5 g A {t} | CG3 g epoch=3 | CG7 g A {t:[0,1]} | CG6 g target-epoch=3 | CG8 g A epoch=3 own{t:[0,1]}
    7 08:20 CG8 g A = X | CG7 g A = X | CG6 g = X | CG5 g A = X | CG3 g = X | GM g gen=4 {A: t → t-0,1}
"""


def test_a_topic_that_goes_by_an_id_without_a_name_is_not_without_an_owner(tmp_path: Path) -> None:
    rows = [row for row in owners(Story(CONVERTED).write(tmp_path)) if row["partition"] == 0]

    assert [(row["topic"], row["from_record_offset"], row["member_id"], row["reason"]) for row in rows] == [
        (topic_id("t"), 1, "A", None),
        (topic_id("t"), 7, None, "unknown"),
        ("t", 0, "A", None),
        ("t", 1, None, "unknown"),
        ("t", 7, "A", None),
    ]


def test_where_a_commit_names_the_topic_of_an_id_its_owner_goes_on(tmp_path: Path) -> None:
    story = f"{CONVERTED}\n 13 08:30 OC g t-0 = 1 {{tid=t}}"
    rows = [row for row in owners(Story(story).write(tmp_path)) if row["partition"] == 0]

    assert [(row["topic"], row["from_record_offset"], row["to_record_offset"], row["member_id"]) for row in rows] == [("t", 0, None, "A")]


@pytest.mark.parametrize(("minute", "owner"), [(10, ["A"]), (40, ["A"]), (60, ["C"])])
def test_where_time_goes_back_a_moment_ends_in_front_of_the_first_later_record(tmp_path: Path, minute: int, owner: list[str]) -> None:
    story = Story("""
        0 08:00 GM g gen=1 {A: t → t-0}
        1 09:00 OC other t-0 = 1
        2 08:30 GM g gen=2 {C: t → t-0}
    """)
    at_time_ms = time_ms(f"{8 + minute // 60}:{minute % 60}")
    with exhume.open(story.write(tmp_path)) as topic:
        held = topic.state(at_time_ms=at_time_ms, view="in_memory").members["member_id"].to_pylist()
        moment_findings = [*topic.findings]
    with exhume.open(tmp_path) as topic:
        owned = topic.owners(at_time_ms=at_time_ms)["member_id"].to_pylist()

        assert [*topic.findings] == moment_findings
    assert owned == held == owner
    assert ("time_goes_back" in {finding.code for finding in moment_findings}) == (minute == 40)


def test_where_no_record_has_a_time_the_end_is_every_moment(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([classic(1, a=[0])], magic=0, timestamp_ms=None)
        log.append([classic(2, b=[0])], magic=0, timestamp_ms=None)

    assert [row["member_id"] for row in owners(tmp_path, append, at_time_ms=30)] == ["b"]


@pytest.mark.parametrize("case", CASES)
def test_intervals_that_are_open_at_the_end_are_what_a_coordinator_holds(case: corpus.Case) -> None:
    for data in case.data_directories.values():
        with exhume.open(data) as topic:
            state = topic.state(mode="lenient", view="in_memory")
            rows = topic.owners().to_pylist()
        streams = {row["group"] for row in state.groups.to_pylist() if row["group_type"] == "streams"}
        held = {
            (row["replica"], row["group"], row["topic"] or row["topic_id"], row["partition"], row["member_id"], row["kind"])
            for row in state.assignments.to_pylist()
            if row["kind"] != "target" and row["group"] not in streams
        }

        assert {
            (row["replica"], row["group"], row["topic"], row["partition"], row["member_id"], KINDS.get(row["holding"], row["holding"]))
            for row in rows
            if row["to_record_offset"] is None and row["member_id"] is not None and row["group"] not in streams
        } == held


@pytest.mark.parametrize("case", CASES)
def test_the_owners_of_a_topic_are_those_of_all_topics(case: corpus.Case) -> None:
    """Records of groups that never had the topic are left out when owners of one topic are wanted."""
    for data in case.data_directories.values():
        with exhume.open(data) as topic:
            rows = topic.owners().to_pylist()
            for name in {row["topic"] for row in rows}:
                assert topic.owners(topic=name).to_pylist() == [row for row in rows if row["topic"] == name]


def test_a_topic_with_bytes_that_are_not_utf_8_has_its_owners(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        key, value = classic(1, a=[0])
        assert value is not None
        log.append([(key, value.replace(b"orders", b"order\xff"))], timestamp_ms=1)

    assert [row["member_id"] for row in owners(tmp_path, append, topic="order\ufffd")] == ["a"]


def test_a_partition_that_nobody_ever_had_is_a_wrong_request(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"orders 9(.|\n)*orders 0"):
        owners(tmp_path, lambda log: log.append([classic(1, a=[0])]), topic="orders", partition=9)


def test_the_error_about_a_topic_without_owners_names_topics_of_all_groups(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="Near by: orders"):
        owners(tmp_path, lambda log: log.append([classic(1, a=[0])]), topic="order")


def test_what_is_kept_for_a_static_member_that_is_away_is_not_read_by_it() -> None:
    rows = owners(corpus.BUNDLED / "4.3.0-consumer-groups" / "data", groups=["shipping-eta"], topic="inventory.updates", partition=3)

    assert [row["holding"] for row in rows if row["group_instance_id"] == "eta-pod-1"] == [
        "assigned",
        "away",
        "assigned",
    ]
