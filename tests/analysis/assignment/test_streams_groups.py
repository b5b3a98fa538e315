"""Verdicts on streams groups: the coordinator's assignor is run again, and the sentence says which input the log does not have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exhume.analysis.assignment.inputs import TopicFacts
from exhume.analysis.assignment.runs import Expectation
from exhume.analysis.assignment.verdicts import Check, check_group
from exhume.analysis.memberships import Member, Membership, Subtopology, Task
from exhume.analysis.topic_sizes import TopicSizes
from tests.analysis.assignment.test_structures import step_of

TOPOLOGY = {"0": Subtopology(("clicks",), is_stateful=True)}
FOUR = tuple(("0", number) for number in range(4))


def member(name: str, active: tuple[Task, ...], standby: tuple[Task, ...] = (), *, process: str | None = None) -> Member:
    return Member(
        name,
        subscribed_topics=("clicks",),
        target=tuple(("clicks", number) for _, number in active),
        target_active_tasks=active,
        target_standby_tasks=standby,
        active_tasks=active,
        standby_tasks=standby,
        process_id=process or f"process-{name}",
    )


def target(epoch: int, *members: Member, replicas: int | None = 0) -> Membership:
    return step_of(*members, kind="streams", group_epoch=epoch, target_epoch=epoch, subtopologies=TOPOLOGY, standby_replicas=replicas)


def judged(step: Membership, before: Membership | None = None, release: str | None = None) -> Check:
    return check_group(step, before, TopicFacts(TopicSizes(), {}), Expectation(release=release))


ALONE = target(2, member("a", FOUR))
STICKY = target(3, member("a", FOUR[:2]), member("b", FOUR[2:]))
MOVED = target(3, member("a", FOUR[2:]), member("b", FOUR[:2]))


def test_a_target_that_keeps_tasks_is_that_of_the_assignor() -> None:
    found = judged(STICKY, ALONE)

    assert (found.verdict["verdict"], found.verdict["assignor"]) == ("as_expected", "sticky")
    assert found.verdict["explained_by"] == "sticky of the coordinator 4.1 and later"
    assert [row["expected"] for row in found.partitions] == [["a"], ["a"], ["b"], ["b"]]


@pytest.mark.parametrize("release", ["4.1.1", "4.2.1", "4.3.1"])
def test_a_target_that_moves_tasks_is_not_that_of_coordinators_that_start_from_the_target(release: str) -> None:
    found = judged(MOVED, ALONE, release)

    assert found.verdict["verdict"] == "not_explained"
    assert found.verdict["sentence"].startswith("not the result of sticky of the coordinator 4.")


def test_a_coordinator_of_4_4_also_knows_offsets_that_no_record_has() -> None:
    for release in (None, "4.4.0"):
        found = judged(MOVED, ALONE, release)

        assert found.verdict["verdict"] == "consistent"
        assert found.verdict["sentence"].endswith("which do not have the task offsets that members report to coordinators since 4.4")


def test_a_coordinator_of_4_4_keeps_the_tasks_that_members_run_and_not_their_target() -> None:
    unreconciled = target(2, replace(member("a", FOUR[:2]), active_tasks=FOUR[2:]), replace(member("b", FOUR[2:]), active_tasks=FOUR[:2]))

    assert judged(target(3, *MOVED.members.values()), unreconciled).verdict["explained_by"] == "sticky of the coordinator 4.4 and later"


def test_missing_input_is_said() -> None:
    without_process = target(3, *(replace(each, process_id=None) for each in STICKY.members.values()))
    cases = {
        "the log does not have the process of each member": judged(without_process, ALONE),
        "the log has no topology of the group": judged(STICKY._replace(subtopologies=None), ALONE),
        "the log no longer has the target before this one": judged(STICKY),
        "the number of tasks of subtopology 1 is not known": judged(
            STICKY._replace(subtopologies=TOPOLOGY | {"1": Subtopology(("orders",), is_stateful=False)}), ALONE
        ),
    }

    for reason, found in cases.items():
        assert found.verdict["verdict"] == "consistent"
        assert found.verdict["sentence"].endswith(f"its assignor cannot be run again, because {reason}")


def test_the_number_of_copies_is_tried_where_no_record_gives_it() -> None:
    with_copies = target(3, member("a", FOUR[:2], FOUR[2:]), member("b", FOUR[2:], FOUR[:2]), replicas=None)

    assert judged(with_copies, ALONE, "4.3.0").verdict["verdict"] == "as_expected"
    assert judged(MOVED._replace(standby_replicas=None), ALONE, "4.3.0").verdict["sentence"].endswith("do not have num.standby.replicas")


def test_4_1_is_not_run_with_thousands_of_tasks() -> None:
    many = tuple(("0", number) for number in range(2_001))
    sentence = judged(target(3, member("a", many)), target(2, member("a", many)), "4.1.0").verdict["sentence"]

    assert sentence.endswith("sticky of the coordinator 4.1 is not run again with more than 2000 tasks")


def test_a_release_without_streams_groups_is_said() -> None:
    assert judged(STICKY, ALONE, "4.0.0").verdict["sentence"].endswith("release 4.0.0 has no streams groups")
