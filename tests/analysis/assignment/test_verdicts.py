"""Expected against actual assignment: assignments that real clients and coordinators made, and what is said of odd ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.assignment.differences import ASSIGNMENT_PARTITIONS
from exhume.analysis.assignment.history import FactsOverTime, check_latest, rounds
from exhume.analysis.assignment.inputs import TopicFacts
from exhume.analysis.assignment.runs import Expectation
from exhume.analysis.assignment.verdicts import ASSIGNMENT_VERDICTS, Check, check_group, tables_of
from exhume.analysis.memberships import Member, Membership, TopicPartition
from exhume.analysis.topic_sizes import TopicSizes
from exhume.errors import RequestError
from exhume.fixtures.story import Story, time_ms
from exhume.replay.topic_names import Topic, TopicNames
from tests.compared import Compared
from tests.judges import corpus

#: (story, kind, group, generation or epoch) to the reason why nothing can be said.
EXCEPTIONS: Mapping[tuple[str, str, str, int], str] = {
    (
        "2.4.1-lifecycle",
        "classic",
        "ad-bidding",
        2,
    ): "led by librdkafka, whose cooperative assignor takes other partitions away than Java's",
    ("3.7.2-consumer-groups", "consumer", "fraud-scoring", 2): "the target of epoch 1 was cleaned away",
    ("3.7.2-consumer-groups", "consumer", "payments.ledger", 5): "the target of epoch 4 was cleaned away",
    ("3.9.1-consumer-groups", "consumer", "fraud-scoring", 2): "the target of epoch 1 was cleaned away",
    ("3.9.1-consumer-groups", "consumer", "payments.ledger", 5): "the target of epoch 4 was cleaned away",
    (
        "4.0.0-consumer-groups",
        "consumer",
        "clickstream-all",
        1,
    ): "the batch goes on to epoch 2: what the target was made from is not in the log",
    ("4.0.0-consumer-groups", "consumer", "clickstream-all", 4): "the regular expression of a member was resolved later",
    ("4.0.0-conversion", "classic", "static-roll", 1): "downgraded: the coordinator wrote the assignment",
    ("4.0.0-conversion", "classic", "order-pipeline", 2): "downgraded: the coordinator wrote the assignment",
    ("4.0.0-conversion", "classic", "java-upgrade", 5): "downgraded: the coordinator wrote the assignment",
    ("4.3.0-consumer-groups", "consumer", "clickstream-all", 4): "the regular expression of a member was resolved later",
    ("4.3.0-consumer-groups", "consumer", "clickstream-all", 5): "a deleted topic, whose name nobody knows",
    ("4.3.0-consumer-groups", "consumer", "clickstream-all", 6): "a deleted topic, whose name nobody knows",
    ("4.3.0-consumer-groups", "consumer", "clickstream-all", 7): "a deleted topic, whose name nobody knows",
    ("4.3.0-consumer-groups", "consumer", "search-indexer", 4): "a deleted topic, whose name nobody knows",
    ("4.3.0-consumer-groups", "consumer", "checkout-service", 3): "the target of epoch 2 was cleaned away",
    ("4.3.0-consumer-groups", "consumer", "audit-trail-eu", 3): "a topic was deleted, and since 4.1 no record says so",
}


def judged(story: corpus.Case) -> Iterator[dict[str, Any]]:
    """The verdict on every assignment in the logs of a story."""
    for data in story.data_directories.values():
        with exhume.open(data) as topic:
            found = topic.assignments(every=True)
        assert (found.verdicts.schema, found.partitions.schema) == (ASSIGNMENT_VERDICTS, ASSIGNMENT_PARTITIONS)
        yield from found.verdicts.to_pylist()


def judge_all(stories: Sequence[corpus.Case], compared: Compared) -> None:
    odd, met = {}, set()
    for story in stories:
        for row in judged(story):
            slot = (story.name, row["group_type"], row["group"], row["generation"])
            if slot in EXCEPTIONS:
                met.add(slot)
                assert row["verdict"] == "undecidable", (slot, row["sentence"])
            elif row["verdict"] in ("as_expected", "consistent"):
                compared[f"assignments {row['verdict']}", f"{row['group_type']} {row['assignor']}"] += 1
            elif "protocol type" not in row["sentence"]:
                odd[slot] = row["sentence"]
    assert not odd
    assert met == set(EXCEPTIONS)


def stories(root: Path) -> list[corpus.Case]:
    return [case for case in corpus.cases(root) if not case.is_fact and not case.is_random]


def test_every_assignment_of_real_clients_and_coordinators_is_computed_again_but_for_listed_ones(compared: Compared) -> None:
    judge_all(stories(corpus.BUNDLED), compared)


@pytest.mark.corpus
@pytest.mark.skipif(corpus.WHOLE is None, reason="EXHUME_CORPUS does not name a larger set of logs")
def test_every_assignment_of_the_whole_corpus_is_computed_again_but_for_listed_ones(compared: Compared) -> None:
    assert corpus.WHOLE is not None
    judge_all(stories(corpus.WHOLE), compared)


def member(name: str, assigned: Sequence[TopicPartition], topics: Sequence[str] = ("t",), **more: Any) -> Member:
    return Member(name, subscribed_topics=tuple(topics), assigned=tuple(assigned), **more)


def step(*members: Member, protocol: str | None = "range", generation: int = 1, **more: Any) -> Membership:
    fields: dict[str, Any] = {"replica": "1", "offsets_partition": 0, "group": "g", "kind": "classic", "protocol_type": "consumer"}
    fields |= {"record_offset": generation, "last_record_offset": generation, "timestamp_ms": generation, "path": "", "byte_position": 0}
    fields |= {"members": {each.member_id: each for each in members}, "protocol": protocol, "generation": generation}
    return Membership(**fields | more)


def parts(topic: str, *numbers: int) -> list[TopicPartition]:
    return [(topic, number) for number in numbers]


def check(now: Membership, before: Membership | None = None, counts: Mapping[str, int] | None = None, **wanted: Any) -> Check:
    sizes = TopicSizes([Topic(topic, None, count, None) for topic, count in (counts or {}).items()])
    return check_group(now, before, TopicFacts(sizes, {}), Expectation(**wanted))


def odd(found: Check) -> dict[TopicPartition, list[str]]:
    return {(row["topic"], row["partition"]): row["differences"] for row in found.partitions if row["differences"]}


def test_a_group_that_is_as_it_should_be() -> None:
    found = check(step(member("a", parts("t", 0, 1)), member("b", parts("t", 2))), counts={"t": 3})

    assert (found.verdict["verdict"], found.verdict["explained_by"]) == ("as_expected", "range of Java clients 0.10 and later")
    assert (found.verdict["count_basis"], found.verdict["unbalanced_by"]) == ("topics_file", 0)
    assert odd(found) == {}


def test_static_members_tell_the_era() -> None:
    now = step(member("a", parts("t", 2), group_instance_id="y"), member("b", parts("t", 0, 1), group_instance_id="x"))

    assert check(now).verdict["explained_by"] == "range of Java clients 2.4 and later"
    assert check(now, release="2.3.1", assignor="range").verdict["verdict"] == "undecidable"
    told = check(now, counts={"t": 3}, release="2.3.1", assignor="range")
    assert told.verdict["verdict"] == "not_explained"
    assert odd(told) == {("t", 0): ["moved"], ("t", 1): ["moved"], ("t", 2): ["moved"]}


def test_an_assignment_under_a_name_that_is_not_its_own() -> None:
    now = step(member("a", parts("t", 0, 2)), member("b", parts("t", 1, 3)), protocol="RoundRobinAssigner")

    found = check(now, counts={"t": 4})
    assert found.verdict["verdict"] == "explained"
    assert (found.verdict["explained_by"] or "").startswith("roundrobin of Java clients 0.10 and later; sticky of")


def test_what_nobody_has_and_what_two_have() -> None:
    found = check(step(member("a", parts("t", 0, 1)), member("b", [*parts("t", 1), ("u", 0)])), counts={"t": 3})

    assert found.verdict["verdict"] == "not_explained"
    assert odd(found)["t", 2] == ["lost"]
    assert "doubled" in odd(found)["t", 1]
    assert odd(found)["u", 0] == ["unsubscribed"]
    assert (found.verdict["lost"], found.verdict["doubled"], found.verdict["unsubscribed"]) == (1, 1, 1)


def test_a_partition_that_the_topic_does_not_have_means_that_the_leader_saw_more() -> None:
    found = check(step(member("a", parts("t", 0, 1)), member("b", parts("t", 2, 3))), counts={"t": 3})

    assert found.verdict["verdict"] == "explained"
    assert "if the leader saw 4 partitions of t, not 3" in found.verdict["sentence"]
    assert odd(found) == {}


def test_a_partition_that_moved_though_its_owner_stayed() -> None:
    before = step(member("a", parts("t", 0, 1)), member("b", parts("t", 2, 3)))
    now = step(member("a", parts("t", 3, 2)), member("b", parts("t", 1, 0)), generation=2, protocol="range")

    found = check(now, before, counts={"t": 4}, assignor="range")
    assert {tuple(each) for each in odd(found).values()} == {("moved_needlessly",)}
    assert found.verdict["moved_needlessly"] == 4


def test_members_that_are_unequal_beyond_the_promise() -> None:
    found = check(step(member("a", parts("t", 0, 1, 2, 3)), member("b", [])), counts={"t": 4})

    assert found.verdict["unbalanced_by"] == 3
    assert found.verdict["verdict"] == "not_explained"


def test_without_counts_nothing_is_guessed() -> None:
    found = check(step(member("a", parts("t", 5)), member("b", parts("t", 0))))

    assert found.verdict["verdict"] == "undecidable"
    assert "partition counts of t" in found.verdict["sentence"]


def test_a_sticky_leader_that_fails_says_how() -> None:
    now = step(member("a", parts("t", 0), topics=("t", "gone")), protocol="sticky")

    found = check(now, counts={"t": 1}, assignor="sticky", release="1.1.1")
    assert found.verdict["verdict"] == "not_explained"
    assert found.verdict["sentence"].endswith("fails here: NullPointerException: no metadata of topic gone")


def test_unknown_protocol_types_and_bytes_are_undecidable() -> None:
    other = step(Member("a"), protocol="v0", protocol_type="sr")
    unread = step(Member("a", assigned=()), protocol="range")

    assert check(other).verdict["sentence"] == "no assignor of protocol type 'sr' is known"
    assert check(unread).verdict["sentence"] == "the subscription of a member cannot be read"


def test_the_moment_decides_which_assignment_is_judged() -> None:
    first = step(member("a", parts("t", 0, 1)))
    second = step(member("a", parts("t", 0)), member("b", parts("t", 1)), generation=2)
    facts = FactsOverTime([], [], TopicNames())

    assert [now.generation for now, _, _ in rounds([first, second], facts)] == [1, 2]
    checks = check_latest([first, second], FactsOverTime([], [], TopicNames()), Expectation())
    assert [each.verdict["generation"] for each in checks] == [2]
    assert tables_of(checks).partitions.num_rows == 2


def test_a_static_member_that_came_back_is_told_by_its_present_member_id(tmp_path: Path) -> None:
    story = Story("""
        0 08:00 GM g gen=1 leader=B {A1@h1/c#i: t → t-0; B@h2/c: t → t-1}
        1 09:00 GM g gen=1 leader=B {A2@h1/c#i: t → t-0; B@h2/c: t → t-1}
    """)
    with exhume.open(story.write(tmp_path)) as topic:
        before, after = (topic.assignments(at_offset=offset).partitions.to_pylist() for offset in (0, 1))

    assert [(row["actual"], row["current"], row["differences"]) for row in before] == [(["A1"], None, []), (["B"], None, [])]
    assert [(row["actual"], row["current"], row["differences"]) for row in after] == [(["A1"], ["A2"], []), (["B"], ["B"], [])]


@pytest.mark.parametrize("groups", [None, ["g"]])
@pytest.mark.parametrize("every", [False, True])
def test_a_time_leaves_out_all_that_lies_behind_a_later_record(tmp_path: Path, groups: list[str] | None, every: bool) -> None:
    story = Story("""
        0 08:00 GM g gen=1 {A: t → t-0}
        1 09:00 OC other t-0 = 1
        2 08:30 GM g gen=2 {A: t → t-0; B: t → }
        3 08:31 GM late gen=1 {A: t → t-0}
    """)
    with exhume.open(story.write(tmp_path)) as topic:
        found = topic.assignments(at_time_ms=time_ms("08:40"), groups=groups, every=every).verdicts.to_pylist()

    assert [(row["group"], row["generation"], row["members"]) for row in found] == [("g", 1, 1)]


def test_the_coordinators_record_says_which_topics_there_are() -> None:
    with exhume.open(corpus.BUNDLED / "3.9.1-consumer-groups" / "data") as topic:
        rows = topic.assignments(groups=["audit-trail-eu"], every=True).verdicts.to_pylist()

    assert [(row["verdict"], row["count_basis"], row["lost"]) for row in rows[:3]] == [("as_expected", "record", 0)] * 3


def test_a_topics_file_names_what_the_log_only_has_ids_of(tmp_path: Path) -> None:
    (tmp_path / "topics.csv").write_text("topic,topic_id,partitions\nclicks.mobile,N9_10LDjT6WFWSH5o_lNLw,2\n", encoding="utf-8")

    with exhume.open(corpus.BUNDLED / "4.3.0-consumer-groups" / "data") as topic:
        found = topic.assignments(groups=["clickstream-all"], every=True, topics_file=tmp_path / "topics.csv")
    assert [row["verdict"] for row in found.verdicts.to_pylist() if row["generation"] >= 5] == ["as_expected"] * 3


@pytest.mark.parametrize(("names", "verdict"), [((), "undecidable"), (("payments-eu-west-1-log",), "not_explained")])
def test_a_name_in_the_form_of_an_id_is_a_name_where_it_is_known(names: Collection[str], verdict: str) -> None:
    doubled = parts("payments-eu-west-1-log", 0)
    members = (member(name, doubled, ["orders"], target=tuple(doubled)) for name in ("A", "B"))
    now = step(*members, kind="consumer", protocol=None, group_epoch=1, target_epoch=1)
    sizes = TopicSizes([Topic("payments-eu-west-1-log", None, 2, None)])

    found = check_group(now, None, TopicFacts(sizes, {}, names), Expectation())

    assert found.verdict["verdict"] == verdict
    assert ("unsubscribed" in odd(found)["payments-eu-west-1-log", 0]) == bool(names)


def test_a_request_that_cannot_be_answered_says_what_could_be() -> None:
    with exhume.open(corpus.BUNDLED / "3.6.2-lifecycle" / "data") as topic:
        with pytest.raises(RequestError, match="Choose auto, or one of"):
            topic.assignments(expected="fair")
        with pytest.raises(RequestError, match="no group record of 'nobody'"):
            topic.assignments(groups=["nobody"])


def test_a_topics_file_makes_a_verdict_firm(tmp_path: Path) -> None:
    (tmp_path / "topics.csv").write_text("topic,topic_id,partitions\norders,,3\npayments,,3\n", encoding="utf-8")

    with exhume.open(corpus.BUNDLED / "3.6.2-lifecycle" / "data") as topic:
        row = topic.assignments(groups=["payments-ledger"], topics_file=tmp_path / "topics.csv").verdicts.to_pylist()[0]
        earlier = topic.assignments(groups=["payments-ledger"], at_offset={3: 10}).verdicts.to_pylist()[0]

    assert (row["verdict"], row["count_basis"]) == ("as_expected", "topics_file")
    assert earlier["record_offset"] <= 10 < row["record_offset"]


def test_an_assignment_of_a_partition_that_no_topic_can_have_is_compared_with_nothing(tmp_path: Path) -> None:
    far = 2**31 - 2
    with exhume.open(Story(f"0 0:00 GM g gen=1 leader=A {{A@h1: t → t-0,1,{far}; B@h2: t → t-2}}").write(tmp_path)) as topic:
        checked = topic.assignments()

    assert checked.verdicts["verdict"].to_pylist() == ["undecidable"]
