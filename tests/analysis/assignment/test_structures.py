"""Verdicts on groups of Kafka Streams and Kafka Connect: what is odd is told, and nothing is promised that was not looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from exhume.analysis.assignment.inputs import TopicFacts
from exhume.analysis.assignment.verdicts import Check, check_group
from exhume.analysis.memberships import Member, Membership, TopicPartition
from exhume.analysis.topic_sizes import TopicSizes
from exhume.codecs.embedded import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_connect_assignment,
    encode_connect_config_state,
    encode_streams_assignment_info,
)
from exhume.replay.topic_names import Topic

AT_ONCE, NEVER = 0, (1 << 63) - 1


def judged(*members: Member, counts: Mapping[str, int] | None = None, latest: Membership | None = None, **fields: Any) -> Check:
    step = step_of(*members, **fields)
    sizes = TopicSizes([Topic(topic, None, count, None) for topic, count in (counts or {}).items()])
    return check_group(step, None, TopicFacts(sizes, {}), latest=latest)


def step_of(*members: Member, **fields: Any) -> Membership:
    place = {"replica": "1", "offsets_partition": 0, "group": "g", "record_offset": 1, "last_record_offset": 1}
    return Membership(
        **{**place, "timestamp_ms": 1, "path": "", "byte_position": 0, "members": {m.member_id: m for m in members}, **fields}
    )


def told(found: Check) -> tuple[str, str]:
    """Verdict, and what the sentence says besides that only the structure can be checked."""
    sentence: str = found.verdict["sentence"]
    return found.verdict["verdict"], sentence.partition("only the structure can be checked")[2].lstrip(";, ")


# Kafka Connect: work is `a-0` for a task, `a` for a connector.


def entries(work: str) -> list[dict[str, Any]]:
    pairs = [each.rpartition("-") if "-" in each else (each, "-", "-1") for each in work.split()]
    return [{"connector": name, "tasks": [int(task)]} for name, _, task in pairs]


def worker(name: str, had: str | None, assigned: str, revoked: str = "", version: int = 1, **more: Any) -> Member:
    value = {"error": 0, "leader": "w", "leader_url": "http://w/", "config_offset": 1, "delay_ms": 0} | more
    allocation = None if had is None else encode_connect_assignment(1, {**value, "assigned": entries(had), "revoked": None})
    state = encode_connect_config_state(version, {"url": "http://w/", "config_offset": 1, "allocation": allocation})
    given = encode_connect_assignment(version, {**value, "assigned": entries(assigned), "revoked": entries(revoked)})
    return Member(
        name,
        subscription=decode_subscription("connect", "compatible", state),
        assignment=decode_assignment("connect", "compatible", given),
    )


CONNECT: dict[str, Any] = {"kind": "classic", "protocol_type": "connect", "protocol": "compatible"}
UNREAD = decode_assignment("connect", "compatible", b"?")


def test_workers_are_said_to_run_as_much_only_where_nothing_changes_workers() -> None:
    even = judged(worker("a", "x x-0", ""), worker("b", None, "y y-0"), **CONNECT)
    moving = judged(worker("a", "x x-0 x-1 x-2", "", "x-1"), worker("b", None, ""), **CONNECT)
    waiting = judged(worker("a", "x x-0 x-1 x-2", "", delay_ms=9), worker("b", None, "", delay_ms=9), **CONNECT)

    assert told(even) == ("consistent", "no connector and no task runs twice and workers run about the same number of tasks")
    assert told(moving) == ("consistent", "no connector and no task runs twice; the next generation assigns what workers have to give up")
    assert told(waiting) == ("consistent", "no connector and no task runs twice; lost work stays unassigned for up to 9 ms")


def test_an_eager_leader_shares_work_out_at_once() -> None:
    eager = {**CONNECT, "protocol": "default"}
    even = judged(worker("a", None, "x x-1", version=0), worker("b", None, "x-0", version=0), **eager)
    uneven = judged(worker("a", None, "x x-0 x-1", version=0), worker("b", None, "", version=0), **eager)

    assert told(even) == ("consistent", "no connector and no task runs twice and workers run about the same number of tasks")
    assert told(uneven) == ("not_explained", "workers run between 0 and 2 tasks, though nothing is being revoked or delayed")


def test_a_worker_can_give_up_only_what_it_runs_and_has_one_leader() -> None:
    vain = judged(worker("a", "x-0", "", "x-0 y-1"), worker("b", None, ""), **CONNECT)
    split = judged(worker("a", "x-0", ""), worker("b", "x-1", "", leader_url="http://v/"), **CONNECT)

    assert told(vain) == ("not_explained", "worker a has to give up task y-1, which it does not run")
    assert told(split) == ("not_explained", "workers follow 2 leaders: http://v/, http://w/")


def test_workers_whose_bytes_cannot_be_read_are_not_idle() -> None:
    unread = replace(worker("b", None, ""), assignment=UNREAD)
    unknown_before = replace(worker("b", "x-9", "x-8"), subscription=decode_subscription("connect", "compatible", b"?"))
    busy = worker("a", "x-0 x-1 x-2", "")

    expected = (
        "of 1 of 2 members: the bytes of the others cannot be read; "
        "no connector and no task runs twice and workers run about the same number of tasks"
    )
    assert told(judged(busy, unread, **CONNECT)) == ("consistent", expected)
    assert told(judged(busy, unknown_before, **CONNECT)) == ("consistent", expected)
    assert judged(unread, **CONNECT).verdict["verdict"] == "undecidable"


# Kafka Streams by the classic protocol: task and partition have one number.


def thread(name: str, numbers: Sequence[int], claimed: Sequence[int] = (), next_rebalance_ms: int = NEVER, version: int = 11) -> Member:
    active = [{"subtopology": 0, "partition": number, "named_topology": None} for number in numbers]
    info = encode_streams_assignment_info(version, {"active_tasks": active, "next_rebalance_ms": next_rebalance_ms})
    raw = encode_assignment(1, {"assigned_partitions": [{"topic": "t", "partitions": numbers}], "user_data": info})
    return Member(
        name,
        subscribed_topics=("t",),
        assigned=parts(*numbers),
        claimed=parts(*claimed),
        assignment=decode_assignment("consumer", "stream", raw),
    )


def parts(*numbers: int) -> tuple[TopicPartition, ...]:
    return tuple(("t", number) for number in numbers)


STREAMS: dict[str, Any] = {"kind": "classic", "protocol_type": "consumer", "protocol": "stream"}


@pytest.mark.parametrize(("next_rebalance_ms", "version"), [(AT_ONCE, 11), (NEVER, 6)])
def test_what_members_have_to_let_go_of_is_withheld_until_the_next_generation(next_rebalance_ms: int, version: int) -> None:
    found = judged(thread("a", [0], [0, 1], next_rebalance_ms, version), thread("b", [], version=version), **STREAMS)

    assert told(found) == ("consistent", "no task runs twice, each has its partitions; until their owners release them, no member owns t-1")
    assert (found.verdict["withheld"], found.verdict["lost"]) == (1, 0)


def test_what_nobody_has_is_told_where_nothing_is_to_follow() -> None:
    dropped = judged(thread("a", [0], [0, 1]), thread("b", []), **STREAMS)
    hole = judged(thread("a", [0]), thread("b", [2], next_rebalance_ms=AT_ONCE), **STREAMS)

    assert told(dropped) == ("not_explained", "no member owns t-1")
    assert told(hole) == ("not_explained", "no member owns t-1")
    assert hole.verdict["lost"] == 1


def test_a_leader_may_have_seen_another_number_of_partitions() -> None:
    found = judged(thread("a", [0, 1]), thread("b", [2]), counts={"t": 4}, **STREAMS)

    assert told(found) == ("consistent", "every task runs once and has its partitions, if the leader saw 3 partitions of t, not 4")


def test_where_no_task_can_be_read_partitions_still_tell() -> None:
    bare = [replace(thread("a", [0]), assignment=None), replace(thread("b", [1]), assignment=None)]
    twice = [replace(thread("a", [0]), assignment=None), replace(thread("b", [0]), assignment=None, subscribed_topics=())]

    assert judged(*bare, **STREAMS).verdict["sentence"] == "no member's tasks can be read"
    assert told(judged(bare[0], thread("b", [1]), **STREAMS))[1].startswith("of 1 of 2 members")
    verdict, sentence = told(judged(*twice, **STREAMS))
    assert verdict == "not_explained"
    assert sentence.endswith("member b does not subscribe to t; partition t-0 is assigned to 2 members: a, b")


# Streams groups: a member has a target, and tasks that it has come to by now.


def streams_member(name: str, target: Sequence[int], tasks: Sequence[int] = ()) -> Member:
    return Member(name, subscribed_topics=("t",), target=parts(*target), active_tasks=tuple(("0", number) for number in tasks))


STREAMS_GROUP: dict[str, Any] = {"kind": "streams", "group_epoch": 3, "target_epoch": 3}


def test_a_target_of_a_streams_group_leaves_nothing_out_and_gives_nothing_twice() -> None:
    assert told(judged(streams_member("a", [0]), streams_member("b", [1]), **STREAMS_GROUP)) == (
        "consistent",
        "every active task runs once; its assignor cannot be run again, because the log has no topology of the group",
    )
    assert told(judged(streams_member("a", [0]), streams_member("b", [2]), **STREAMS_GROUP)) == ("not_explained", "no member is to own t-1")
    twice = judged(streams_member("a", [0]), streams_member("b", [0]), **STREAMS_GROUP)
    assert told(twice) == ("not_explained", "partition t-0 is assigned to 2 members: a, b")
    assert told(judged(streams_member("a", []), **STREAMS_GROUP)) == ("consistent", "no member is to own a task")


def test_tasks_that_run_twice_by_now_are_told() -> None:
    target = streams_member("a", [0]), streams_member("b", [1])
    by_now = step_of(streams_member("a", [0], [0, 1]), streams_member("b", [1], [1]), **STREAMS_GROUP)

    assert told(judged(*target, latest=by_now, **STREAMS_GROUP)) == ("not_explained", "task 0_1 is active on 2 members")
