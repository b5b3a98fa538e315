"""Rebalances: when, why, who came and went, what moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.errors import RequestError
from exhume.fixtures import scenarios
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, tombstone
from exhume.fixtures.story import Story
from tests.analysis.group_records import classic, classic_of, consumer, current
from tests.judges import corpus

Rows = list[dict[str, Any]]
MINUTE_MS = 60_000
LIFECYCLES = [pytest.param(case, id=case.name) for case in corpus.cases(corpus.BUNDLED) if case.name.endswith("-lifecycle")]


def rebalances(directory: Path, append: Callable[[PartitionWriter], object] | None = None, **options: Any) -> Rows:
    if append is not None:
        with PartitionWriter(directory, 7) as log:
            append(log)
    with exhume.open(directory) as topic:
        rows: Rows = topic.rebalances(**options).to_pylist()
    return rows


def of_scenario(name: str, directory: Path) -> Rows:
    scenarios.write(name, directory / name)
    return rebalances(directory / name)


def told(rows: Rows, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


@pytest.mark.parametrize(("name", "members"), [("one-rebalance", [3]), ("two-rebalances", [2, 3]), ("three-rebalances", [1, 2, 3])])
def test_one_two_and_three_rebalances_are_as_many_rows(tmp_path: Path, name: str, members: list[int]) -> None:
    rows = of_scenario(name, tmp_path)

    assert told(rows, "event", "generation", "members", "skipped", "is_complete") == [
        ("rebalance", number, count, 0, True) for number, count in enumerate(members, start=1)
    ]
    assert told(rows, "causes") == [(["group_began"],), *[(["member_joined"],)] * (len(members) - 1)]
    assert [len(row["joined"]) for row in rows] == [after - before for before, after in zip([0, *members], members, strict=False)]


def test_a_late_member_gets_partitions_of_the_others(tmp_path: Path) -> None:
    rows = of_scenario("two-rebalances", tmp_path)

    assert told(rows, "partitions", "partitions_moved", "partitions_lost", "joined_clients") == [
        (6, None, None, ["checkout-1@10.0.0.1", "checkout-2@10.0.0.2"]),
        (6, 3, 0, ["checkout-3@10.0.0.3"]),
    ]


def test_after_a_failover_each_broker_tells_what_it_had_written_down(tmp_path: Path) -> None:
    rows = [row for row in of_scenario("failover", tmp_path) if row["group"] == "checkout"]

    assert told(rows, "replica", "generation", "members", "causes") == [
        ("1", 1, 3, ["group_began"]),
        ("2", 1, 3, ["group_began"]),
        ("2", 2, 4, ["member_joined"]),
    ]


@pytest.mark.parametrize("case", LIFECYCLES)
def test_the_generations_of_real_brokers_are_all_there_with_their_members(case: corpus.Case) -> None:
    answered: dict[str, list[dict[str, Any]]] = {}
    for step in case.scenario["steps"]:
        result = step.get("result")
        if isinstance(result, dict) and "generation" in result and "assignment" in result:
            answered.setdefault(step["step"].partition(": ")[0], []).append(result)
    with exhume.open(case.data_directories[""]) as topic:
        rows = topic.rebalances().to_pylist()
        steps = [step for step in topic.memberships() if step.kind == "classic" and step.members]
    for group, answers in answered.items():
        generations = [answer["generation"] for answer in answers]
        own = [row["generation"] for row in rows if row["group"] == group and row["event"] == "rebalance"]
        left = [generation for generation in own if generation in generations]
        # Compaction has left the last ones.
        assert generations[len(generations) - len(left) :] == left
    compared = 0
    for step in steps:
        for answer in answered.get(step.group, ()):
            if (answer["generation"], answer["leader"], {*answer["members"].values()}) == (step.generation, step.leader, {*step.members}):
                assert step.protocol == answer["protocol"]
                assert _by_client(step.members.values()) == _assigned(answer)
                compared += 1
    assert compared > 10


def _by_client(members: Iterable[Any]) -> dict[str, dict[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = {}
    for member in members:
        topics = found.setdefault(member.client_id, {})
        for topic, partition in sorted(member.assigned or ()):
            topics.setdefault(topic, []).append(partition)
    return found


def _assigned(answer: dict[str, Any]) -> dict[str, dict[str, list[int]]]:
    return {
        client: {topic: sorted(partitions) for topic, partitions in (answer["assignment"].get(client) or {}).items() if partitions}
        for client in answer["members"]
    }


def test_generations_that_were_never_stored_are_counted(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([classic(3, a=[0])])
        log.append([classic(7, a=[0])])

    assert told(rebalances(tmp_path, append), "generation", "skipped", "is_complete") == [(3, 2, True), (7, 3, True)]


def test_behind_a_hole_nobody_knows_whether_a_generation_was_stored(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([classic(3, a=[0])])
        log.roll(log.next_offset + 5)
        log.append([classic(7, a=[0])])
        log.append([classic(9, a=[0])])

    assert told(rebalances(tmp_path, append), "skipped", "is_complete") == [(None, False), (3, False), (1, True)]


def test_why_a_group_rebalanced_follows_from_two_records(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([classic(1, a=[0], b=[1])])
        log.append([classic(2, b=[0, 1])])
        log.append([classic(3)])
        log.append([classic(4, c=[0, 1])])
        log.append([tombstone(classic(4))])
        log.append([classic(1, c=[0, 1])])
        log.append([classic(2, c=[0, 1])])

    assert told(rebalances(tmp_path, append), "event", "causes") == [
        ("rebalance", ["group_began"]),
        ("rebalance", ["member_left", "leader_changed"]),
        ("emptied", ["member_left"]),
        ("rebalance", ["member_joined"]),
        ("removed", []),
        ("rebalance", ["group_began"]),
        ("rebalance", ["unknown"]),
    ]


def test_an_empty_group_has_no_assignment_until_somebody_joins(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([classic(1, a=[0])], timestamp_ms=5)
        log.append([classic(2)], timestamp_ms=105)
        log.append([classic(3, a=[0])], timestamp_ms=1005)

    assert told(rebalances(tmp_path, append), "no_assignment_ms", "no_assignment_is") == [
        (0, "at_least"),
        (None, None),
        (1000, "exactly"),
    ]


def of_story(directory: Path, story: str) -> Rows:
    return rebalances(Story(story).write(directory))


def test_a_static_member_that_takes_its_place_again_stops_nobody(tmp_path: Path) -> None:
    # The record says since when the group was Stable, not since when it waited for its leader.
    story = """
        0 08:00 GM g gen=1 st=08:00 leader=B {A1@h1/c#i: t → t-0; B@h2/c: t → t-1}
        1 09:00 GM g gen=1 st=08:00 leader=B {A2@h1/c#i: t → t-0; B@h2/c: t → t-1}
    """

    assert told(of_story(tmp_path, story), "event", "no_assignment_ms") == [("rebalance", 0), ("static_replacement", None)]


def test_who_came_and_went_without_an_assignment_does_not_end_the_time_without_one(tmp_path: Path) -> None:
    story = """
        0 08:00 GM g gen=1 {A: t → t-0}
        1 09:00 GM g gen=2 empty st=09:00
        2 09:30 GM g gen=4 empty st=09:30
        3 10:00 GM g gen=5 st=09:59:57 {A: t → t-0}
    """

    assert told(of_story(tmp_path, story)[3:], "no_assignment_ms", "no_assignment_is") == [(60 * MINUTE_MS, "exactly")]


def test_members_of_a_cooperative_group_keep_their_partitions(tmp_path: Path) -> None:
    story = """
        0 08:00 GM g gen=1 proto=cooperative-sticky st=07:59 {A@h1: t → t-0,1}
        1 08:01 GM g gen=2 proto=cooperative-sticky st=08:00:30 {A@h1: t (t-0,1) → t-0; B@h2: t → }
        2 08:02 GM g gen=3 proto=range st=08:01:30 {A@h1: t → t-0; B@h2: t → t-1}
    """

    assert told(of_story(tmp_path, story), "no_assignment_ms") == [(None,), (None,), (30_000,)]


def test_after_lost_generations_nobody_knows_how_long_an_empty_group_had_no_assignment(tmp_path: Path) -> None:
    story = """
        0 09:00 GM g gen=2 empty st=09:00
        5 10:00 GM g gen=5 st=09:59:57 {A: t → t-0}
    """

    assert told(of_story(tmp_path, story)[1:], "no_assignment_ms", "no_assignment_is") == [(3000, "at_least")]


def test_an_empty_consumer_group_has_no_assignment_until_somebody_has_a_partition(tmp_path: Path) -> None:
    story = """
        0 08:00 CG3 g epoch=1 | CG5 g a {t} | CG6 g target-epoch=1 | CG7 g a {t:[0]} | CG8 g a epoch=1 state=0 own{t:[0]}
        5 09:00 CG5 g a = X | CG7 g a = X | CG8 g a = X | CG3 g epoch=2 | CG6 g target-epoch=2
        10 09:30 CG3 g epoch=3 | CG5 g b {t} | CG6 g target-epoch=3 | CG7 g b {t:[0]} | CG8 g b epoch=3 state=2 own{}
        15 09:31 CG8 g b epoch=3 state=0 own{t:[0]}
    """

    assert told(of_story(tmp_path, story), "event", "no_assignment_ms", "no_assignment_is") == [
        ("rebalance", 0, "at_least"),
        ("emptied", None, None),
        ("rebalance", 31 * MINUTE_MS, "exactly"),
    ]


def test_where_nothing_is_missing_the_first_record_of_a_group_is_its_beginning(tmp_path: Path) -> None:
    # Its first generation never got an assignment.
    story = """
        0 08:00 GM g gen=2 empty
        1 08:10 GM g = X
        2 08:20 GM g gen=2 {A: t → t-0}
    """

    assert told(of_story(tmp_path, story), "event", "causes", "skipped") == [
        ("emptied", ["group_began"], 1),
        ("removed", [], None),
        ("rebalance", ["group_began"], 1),
    ]


@pytest.mark.parametrize("generation", [1, 2])
def test_a_count_that_begins_anew_is_another_life_of_the_group(tmp_path: Path, generation: int) -> None:
    story = f"""
        0 08:00 GM g gen=2 {{A@h/c: t → t-0,1}}
        5 10:00 GM g gen={generation} st=10:00 {{B@h/c: t → t-1,0}}
    """

    (_, row) = of_story(tmp_path, story)

    assert told([row], "event", "skipped", "joined", "left", "partitions_moved") == [("rebalance", None, ["B"], [], None)]
    assert row["causes"] == (["group_began"] if generation == 1 else ["first_seen"])


@pytest.mark.parametrize(
    ("first", "epoch", "cause"), [(0, 1, "group_began"), (0, 2, "group_began"), (5, 1, "group_began"), (5, 2, "first_seen")]
)
def test_behind_a_hole_only_epoch_1_is_known_to_be_the_first(tmp_path: Path, first: int, epoch: int, cause: str) -> None:
    """Since 4.3 groups begin with epoch 2, which was the second before."""
    (row,) = of_story(tmp_path, f"{first} 08:00 CG3 g epoch={epoch} | CG5 g a {{t}}")

    assert row["causes"] == [cause]


def test_epochs_that_lie_in_front_of_a_hole_may_have_left_records(tmp_path: Path) -> None:
    story = """
        0 08:00 CG3 g epoch=1 | CG5 g a {t} | CG8 g a epoch=1 state=0 own{t:[0]}
        9 08:05 CG8 g a epoch=1 state=0 own{t:[0]}
        10 08:06 CG3 g epoch=4 | CG8 g a epoch=4 state=0 own{t:[0]}
    """

    assert told(of_story(tmp_path, story), "group_epoch", "skipped", "is_complete") == [(1, None, False), (4, 2, False)]


def storm(log: PartitionWriter, *, minutes: int, flaps: bool = True) -> None:
    generation = 100
    for number in range(2 * minutes):
        comes = number % 2 == 0
        members = {"a": [0], **({"b": [1]} if comes else {})} if flaps else {"a": [0], f"c{number}": [1]}
        log.append([classic_of(generation, members)], timestamp_ms=number * MINUTE_MS // 2)
        generation += 1


def test_a_storm_stands_out_and_names_who_comes_and_goes(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        storm(log, minutes=20)
        log.append([classic(141, a=[0])], timestamp_ms=600 * MINUTE_MS)
    with exhume.open(tmp_path) as topic:
        rows = topic.rebalances().to_pylist()
        (finding,) = [finding for finding in topic.findings if finding.code == "rebalance_storm"]

    assert [row["is_storm"] for row in rows] == [*[True] * 40, False]
    assert (finding.first_record_offset, finding.last_record_offset, finding.confidence) == (0, 39, "proof")
    assert "39 generations in 19 minutes, 2.0 a minute; joined or left most often: b@h 39 times" in finding.sentence


def test_members_that_join_again_and_again_are_a_storm(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        for number in range(40):
            log.append([classic_of(100 + number, {"a": [0], "b": [1]})], timestamp_ms=number * MINUTE_MS // 2)
    with exhume.open(tmp_path) as topic:
        rows = topic.rebalances().to_pylist()
        (finding,) = [finding for finding in topic.findings if finding.code == "rebalance_storm"]

    assert all(row["is_storm"] for row in rows)
    assert finding.confidence == "likely"
    assert finding.sentence == "39 generations in 19 minutes, 2.0 a minute; in 39 of them no member joined, left or changed"


def test_a_rolling_restart_is_no_storm(tmp_path: Path) -> None:
    rows = rebalances(tmp_path, lambda log: storm(log, minutes=20, flaps=False))

    assert not any(row["is_storm"] for row in rows)


def test_nine_minutes_are_no_storm(tmp_path: Path) -> None:
    assert not any(row["is_storm"] for row in rebalances(tmp_path, lambda log: storm(log, minutes=9)))


def test_where_compaction_took_the_records_the_numbers_still_tell_of_a_storm(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([classic(100, a=[0])], timestamp_ms=0)
        log.roll(log.next_offset + 500)
        log.append([classic(160, a=[0])], timestamp_ms=30 * MINUTE_MS)

    assert told(rebalances(tmp_path, append), "is_storm") == [(True,), (True,)]


def target(epoch: int, **targets: list[int]) -> list[KeyValue]:
    def entries(partitions: list[int]) -> list[dict[str, Any]]:
        return [{"topic_id": "AQIDBAUGBwgJCgsMDQ4PEA", "partitions": partitions}]

    members = [consumer(7, {"topic_partitions": entries(partitions)}, member_id=member) for member, partitions in targets.items()]
    return [*members, consumer(6, {"assignment_epoch": epoch})]


def test_an_epoch_tells_its_target_and_when_everybody_had_reached_it(tmp_path: Path) -> None:
    def append(log: PartitionWriter) -> None:
        log.append([consumer(3, {"group_epoch": 1}), *target(1, a=[0, 1]), current("a", 1, 0, [0, 1], [])], timestamp_ms=0)
        log.append([consumer(3, {"group_epoch": 2}), *target(2, a=[0], b=[1]), current("b", 2, 2, [], [])], timestamp_ms=1000)
        log.append([current("a", 1, 1, [0], [1])], timestamp_ms=2000)
        log.append([current("a", 2, 0, [0], [])], timestamp_ms=4000)
        log.append([current("b", 2, 0, [1], [])], timestamp_ms=6000)
        log.append([consumer(3, {"group_epoch": 4}), *target(4, a=[0, 1], b=[])], timestamp_ms=9000)

    rows = rebalances(tmp_path, append)

    assert told(rows, "group_epoch", "target_epoch", "causes", "skipped", "partitions_moved", "reconciliation_ms", "waiting") == [
        (1, 1, ["group_began"], None, None, 0, None),
        (2, 2, ["member_joined"], 0, 1, 5000, None),
        (4, 4, ["unknown"], 1, 1, None, ["a", "b"]),
    ]


def test_real_consumer_groups_tell_who_waits(tmp_path: Path) -> None:
    rows = [row for row in of_scenario("consumer-groups", tmp_path) if row["group"] == "scoring"]

    assert [len(row["waiting"] or ()) for row in rows] == [0, 2]


def test_a_static_member_that_comes_back_moves_nothing(tmp_path: Path) -> None:
    case = corpus.BUNDLED / "2.8.2-lifecycle" / "data"
    rows = [row for row in rebalances(case) if row["event"] == "static_replacement"]

    assert {row["group"] for row in rows} == {"pos-terminal-sync", "pos-terminal-sync-leader"}
    assert {row["partitions_moved"] for row in rows} == {0}
    assert all(row["joined_clients"] == row["left_clients"] for row in rows)


def test_a_static_member_that_came_back_within_an_epoch_does_not_join_the_next_one(tmp_path: Path) -> None:
    story = """
        0 08:00 CG3 g epoch=1 | CG5 g A {t} instance=i | CG6 g target-epoch=1 | CG7 g A {t:[0,1]} | CG8 g A epoch=1 own{t:[0,1]}
        5 08:10 CG8 g A = X | CG7 g A = X | CG5 g A = X | CG5 g A2 {t} instance=i | CG7 g A2 {t:[0,1]} | CG8 g A2 epoch=1 own{t:[0,1]}
        11 08:20 CG3 g epoch=2 | CG5 g B {t} | CG7 g B {t:[]}
        14 08:21 CG8 g A2 = X | CG7 g A2 = X | CG5 g A2 = X | CG5 g A3 {t} instance=i | CG7 g A3 {t:[0,1]} | CG8 g A3 epoch=1 own{t:[0,1]}
        20 08:22 CG6 g target-epoch=2 | CG7 g A3 {t:[0]} | CG7 g B {t:[1]}
    """

    assert told(of_story(tmp_path, story), "event", "causes", "joined", "left", "partitions_moved") == [
        ("rebalance", ["group_began"], ["A"], [], None),
        ("static_replacement", [], ["A2"], ["A"], None),
        ("rebalance", ["member_joined"], ["B"], [], 1),
        ("static_replacement", [], ["A3"], ["A2"], None),
    ]


def test_a_static_member_that_came_back_with_other_topics_has_its_partitions_from_itself(tmp_path: Path) -> None:
    story = """
        0 08:00 CG3 g epoch=1 | CG5 g A {t} instance=i | CG6 g target-epoch=1 | CG7 g A {t:[0,1]} | CG8 g A epoch=1 own{t:[0,1]}
        5 08:10 CG8 g A = X | CG7 g A = X | CG5 g A = X | CG5 g B {u,t} instance=i | CG3 g epoch=2 | CG6 g target-epoch=2
        11 08:11 CG7 g B {t:[0,1]}
    """

    assert told(of_story(tmp_path, story)[1:], "causes", "partitions_moved") == [(["member_restarted", "subscription_changed"], 0)]


@pytest.mark.parametrize(
    ("case", "group", "causes"),
    [
        ("4.0.0-consumer-groups", "audit-trail-eu", ["group_began", "topics_changed", "topics_changed"]),
        ("4.2.1-share-groups", "email-fanout", ["group_began", "partitions_initialized", "member_left"]),
        ("4.2.1-share-groups", "image-resize-pool", ["group_began", "partitions_initialized", "topics_changed"]),
    ],
)
def test_what_records_say_of_topics_is_why_an_epoch_came(case: str, group: str, causes: list[str]) -> None:
    assert told(rebalances(corpus.BUNDLED / case / "data", groups=[group]), "causes") == [([cause],) for cause in causes]


def test_conversions_stand_between_the_protocols() -> None:
    rows = rebalances(corpus.BUNDLED / "4.0.0-conversion" / "data", groups=["java-upgrade"])

    assert [(row["group_type"], row["event"]) for row in rows if row["event"] in ("created", "converted")] == [
        ("classic", "created"),
        ("consumer", "converted"),
        ("classic", "converted"),
    ]


def test_partitions_of_a_topic_without_a_name_are_not_lost_in_a_conversion(tmp_path: Path) -> None:
    story = """
        0 08:00 GM g gen=3 {A: t → t-0}
        1 08:10 GM g = X | CG5 g A {t} | CG3 g epoch=3 | CG7 g A {t:[0]} | CG6 g target-epoch=3 | CG8 g A epoch=3 own{t:[0]}
        7 08:20 CG8 g A = X | CG7 g A = X | CG6 g = X | CG5 g A = X | CG3 g = X | GM g gen=4 {A: t → t-0}
    """

    assert told(of_story(tmp_path, story)[1:], "event", "partitions_moved", "partitions_lost") == [("converted", None, None)] * 2


def test_only_what_was_given_up_makes_a_cooperative_follow_up(tmp_path: Path) -> None:
    # Consumers of every assignor say what they own, and eager ones that it is nothing. A partition that is new was not given up.
    story = """
        0 08:00 GM g gen=1 proto=cooperative-sticky {A@h1: t → t-0,1}
        1 08:01 GM g gen=2 proto=cooperative-sticky {A@h1: t (t-0,1) → t-0; B@h2: t → }
        2 08:02 GM g gen=3 proto=cooperative-sticky {A@h1: t (t-0) → t-0; B@h2: t → t-1}
        3 08:03 GM g gen=4 proto=cooperative-sticky {A@h1: t (t-0) → t-0; B@h2: t (t-1) → t-1,2}
        4 08:04 GM e gen=1 {A@h1: t → t-0,1}
        5 08:05 GM e gen=2 {A@h1: t → t-0,1,2}
    """

    assert told(of_story(tmp_path, story), "group", "causes") == [
        ("e", ["group_began"]),
        ("e", ["unknown"]),
        ("g", ["group_began"]),
        ("g", ["member_joined"]),
        ("g", ["cooperative_follow_up"]),
        ("g", ["unknown"]),
    ]


def test_a_group_without_records_is_a_wrong_request(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="checkout"):
        rebalances(tmp_path, lambda log: log.append([classic(1, group="checkout", a=[0])]), groups=["chekout"])


def test_the_story_of_a_storm_has_one_and_a_deployment_has_none(tmp_path: Path) -> None:
    rows = of_scenario("rebalance-storm", tmp_path)

    basket = [row for row in rows if row["group"] == "basket"]
    assert (len(basket), sum(row["skipped"] for row in basket)) == (31, 5)
    assert all(row["is_storm"] for row in basket)
    assert not any(row["is_storm"] for row in rows if row["group"] == "catalog")


def test_generations_as_far_apart_as_they_can_be_are_counted(tmp_path: Path) -> None:
    first, last = -(2**31), 2**31 - 1
    story = f"0 0:00 GM g gen={first} leader=A {{A: t → t-0}}\n1 0:01 GM g gen={last} leader=A {{A: t → t-0}}"
    with exhume.open(Story(story).write(tmp_path)) as topic:
        assert topic.rebalances()["skipped"].to_pylist()[-1] == last - first - 1
