"""What must hold of assignments that cannot be computed again: Connect and Streams."""

from __future__ import annotations

from typing import Any

from exhume.analysis.assignors.structure import (
    connect_delay_ms,
    connect_faults,
    connect_running,
    streams_faults,
    streams_group_faults,
)
from exhume.analysis.memberships import Member
from exhume.codecs.embedded import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_connect_assignment,
    encode_connect_config_state,
    encode_streams_assignment_info,
)

URL = "http://w:8083/"


def told(assigned: dict[str, list[int]], revoked: dict[str, list[int]] | None = None, **more: Any) -> bytes:
    work = [{"connector": name, "tasks": tasks} for name, tasks in assigned.items()]
    given_up = None if revoked is None else [{"connector": name, "tasks": tasks} for name, tasks in revoked.items()]
    value = {"error": 0, "leader": "w", "leader_url": URL, "config_offset": 1, "assigned": work, "revoked": given_up, "delay_ms": 0} | more
    return encode_connect_assignment(1, value)


def worker(name: str, assignment: bytes, allocation: bytes | None = None) -> Member:
    state = encode_connect_config_state(1, {"url": URL, "config_offset": 1, "allocation": allocation})
    return Member(
        name,
        subscription=decode_subscription("connect", "compatible", state),
        assignment=decode_assignment("connect", "compatible", assignment),
    )


def test_a_worker_runs_what_it_had_without_what_was_revoked_and_what_is_new() -> None:
    one = worker("w", told({"new": [-1, 0]}, {"old": [1]}), told({"old": [0, 1]}))

    assert connect_running(one) == [("old", 0), ("new", -1), ("new", 0)]
    assert connect_running(Member("w")) is None


def test_work_that_runs_twice_errors_and_inequality_are_told() -> None:
    workers = [worker("w1", told({"a": [0, 1, 2]}, error=1)), worker("w2", told({"a": [0]}))]

    assert list(connect_faults(workers)) == [
        "the leader sent error 1 to the workers: no worker gets work until all have the same configuration",
        "task a-0 runs on 2 workers",
        "workers run between 1 and 3 tasks, though nothing is being revoked or delayed",
    ]
    assert list(connect_faults([worker("w1", told({"a": [0, 1, 2]}, delay_ms=300)), worker("w2", told({}))])) == []
    assert connect_delay_ms([worker("w1", told({}, delay_ms=300)), worker("w2", told({}))]) == 300


def streams_member(name: str, tasks: list[tuple[int, int]], partitions: list[int], **more: Any) -> Member:
    active = [{"subtopology": subtopology, "partition": partition, "named_topology": None} for subtopology, partition in tasks]
    info = encode_streams_assignment_info(11, {"active_tasks": active, **more})
    raw = encode_assignment(1, {"assigned_partitions": [{"topic": "t", "partitions": partitions}], "user_data": info})
    payload = decode_assignment("consumer", "stream", raw)
    return Member(name, assigned=tuple(("t", number) for number in partitions), assignment=payload)


def test_a_streams_task_has_one_member_and_its_own_partition() -> None:
    assert list(streams_faults([streams_member("a", [(0, 0)], [0]), streams_member("b", [(0, 1)], [1])])) == []
    assert list(streams_faults([streams_member("a", [(0, 0)], [0]), streams_member("b", [(0, 0)], [1], error_code=3)])) == [
        "the leader sent error 3 to member b",
        "active tasks of member b have other numbers than its partitions",
        "task 0_0 is active on 2 members: a, b",
    ]
    assert list(streams_faults([streams_member("a", [(0, 0)], [0, 1])])) == ["member a has 1 active tasks for 2 partitions"]


def test_a_task_of_a_streams_group_is_active_once_and_has_its_copies_elsewhere() -> None:
    members = [
        Member("a", active_tasks=(("0", 0), ("0", 1)), standby_tasks=(("0", 1),)),
        Member("b", active_tasks=(("0", 0),), standby_tasks=(("0", 2),)),
    ]

    assert list(streams_group_faults(members)) == [
        "member a has task 0_1 both active and as a copy",
        "task 0_0 is active on 2 members",
    ]
