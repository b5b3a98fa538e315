"""The verdict on streams groups: the coordinator's `sticky` assignor, run again where the log has its input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from exhume.analysis.assignment.inputs import inherited
from exhume.analysis.assignment.runs import Case, gap_before, spelt_spans
from exhume.analysis.assignors import (
    STREAMS_VARIANTS,
    GroupAssignment,
    StreamsAssignment,
    StreamsGroup,
    StreamsMember,
    StreamsVariant,
    streams_variants,
)
from exhume.analysis.memberships import Member, Task

#: The most standby copies that a broker allows by default, `group.streams.max.standby.replicas`.
_MOST_REPLICAS = 2
#: The most tasks with which 4.1 is run: its class remembers pairs of tasks.
_MOST_TASKS_OF_4_1 = 2_000


@dataclass(frozen=True, slots=True)
class StreamsVerdict:
    """The versions of `sticky` that give the assignment of a streams group, or the reason why that is not known.

    Attributes:
        explained_by: the versions in words; None if none gives it.
        plan: the result as partitions, if a version gives it.
        reason: why none does: a clause.
        is_certain: True if no version of the wanted releases can give it.
    """

    explained_by: str | None
    plan: GroupAssignment | None = None
    reason: str = ""
    is_certain: bool = False


def judge_streams_assignor(case: Case) -> StreamsVerdict:
    """Run the versions of `sticky` on a streams group with an assignment."""
    counts = _task_counts(case)
    variants = streams_variants(case.wanted.release)
    if not variants:
        return StreamsVerdict(None, reason=f"release {case.wanted.release} has no streams groups")
    reason = _missing(case, counts)
    if reason is not None:
        return StreamsVerdict(None, reason=f"its assignor cannot be run again, because {reason}")
    if sum(counts.values()) > _MOST_TASKS_OF_4_1:
        variants = tuple(variant for variant in variants if not variant.is_by_chance)
    if not variants:
        return StreamsVerdict(None, reason=f"sticky of the coordinator 4.1 is not run again with more than {_MOST_TASKS_OF_4_1} tasks")
    actual = _assignment(case.step.members)
    fitting = [variant for variant in variants if any(variant.run(group, actual) == actual for group in _groups(case, variant, counts))]
    if fitting:
        return StreamsVerdict(f"sticky of the coordinator {spelt_spans(fitting, STREAMS_VARIANTS)}", _plan(case, actual))
    asked = f"sticky of the coordinator {spelt_spans(variants, STREAMS_VARIANTS)}"
    if all(variant.is_by_target for variant in variants) and case.step.standby_replicas is not None:
        return StreamsVerdict(None, reason=f"not the result of {asked}", is_certain=True)
    unknown = "the task offsets that members report to coordinators since 4.4" if not variants[-1].is_by_target else "num.standby.replicas"
    return StreamsVerdict(None, reason=f"{asked} does not give it from the records alone, which do not have {unknown}")


def _task_counts(case: Case) -> dict[str, int]:
    """Return the number of tasks of each subtopology: its tasks are all assigned."""
    numbers: dict[str, int] = dict.fromkeys(case.step.subtopologies or {}, 0)
    for member in case.step.members.values():
        for subtopology, number in member.target_active_tasks:
            numbers[subtopology] = max(numbers.get(subtopology, 0), number + 1)
    return numbers


def _missing(case: Case, counts: Mapping[str, int]) -> str | None:
    """Return the input that the log does not have, as a clause."""
    step = case.step
    if step.subtopologies is None:
        return "the log has no topology of the group"
    if any(member.process_id is None for member in step.members.values()):
        return "the log does not have the process of each member"
    absent = [name for name, count in counts.items() if not count]
    if absent:
        return f"the number of tasks of subtopology {absent[0]} is not known"
    return gap_before(case)


def _groups(case: Case, variant: StreamsVariant, counts: Mapping[str, int]) -> Iterator[StreamsGroup]:
    """Yield the inputs that are possible for a version."""
    step, before = case.step, case.before
    active: Mapping[str, Sequence[Task]] = {}
    standby: Mapping[str, Sequence[Task]] = {}
    if before is not None and before.kind == step.kind:
        prefix = "target_" if variant.is_by_target else ""
        active, standby = inherited(step, before, f"{prefix}active_tasks"), inherited(step, before, f"{prefix}standby_tasks")
    members = [
        StreamsMember(
            member.member_id,
            cast("str", member.process_id),
            tuple(active.get(member.member_id, ())),
            tuple(standby.get(member.member_id, ())),
        )
        for member in step.members.values()
    ]
    stateful = frozenset(name for name, subtopology in (step.subtopologies or {}).items() if subtopology.is_stateful)
    copies = [task for member in step.members.values() for task in member.target_standby_tasks]
    most = max((copies.count(task) for task in set(copies)), default=0)
    for replicas in [step.standby_replicas] if step.standby_replicas is not None else range(most, max(most, _MOST_REPLICAS) + 1):
        group = StreamsGroup(members, counts, stateful, replicas)
        yield group
        # The order of members in one hash bucket is the order in which they joined, which the log does not have.
        other = StreamsGroup(members[::-1], counts, stateful, replicas)
        if other.in_hash_order() != group.in_hash_order():
            yield other


def _assignment(members: Mapping[str, Member]) -> StreamsAssignment:
    return StreamsAssignment(
        {member_id: sorted(member.target_active_tasks) for member_id, member in members.items() if member.target_active_tasks},
        {member_id: sorted(member.target_standby_tasks) for member_id, member in members.items() if member.target_standby_tasks},
    )


def _plan(case: Case, assignment: StreamsAssignment) -> GroupAssignment:
    topics = {name: subtopology.topics for name, subtopology in (case.step.subtopologies or {}).items()}
    return GroupAssignment(
        {
            member_id: [(topic, number) for subtopology, number in tasks for topic in topics.get(subtopology, ())]
            for member_id, tasks in assignment.active.items()
        }
    )
