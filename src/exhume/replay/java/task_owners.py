"""The owners of streams tasks, as 4.1.0 and 4.1.1 check them: a task belongs to the process of its member.

Source: StreamsGroup.addTaskProcessId, removeTaskProcessIds and removeTaskProcessIdsFromSet, Kafka 4.1. A member without a member record has
no process: its tasks are not noted, and giving them up fails unless the subtopology has noted owners of other active tasks.
"""

from __future__ import annotations

from collections.abc import Iterator

from exhume.replay.load_problems import LoadProblem, ProblemKind
from exhume.replay.partition_state import StreamsGroupState, StreamsMember
from exhume.replay.refusals import Refusals

TASK_ROLES = ("active", "standby", "warmup")


def remove(group: StreamsGroupState, member: StreamsMember, record_offset: int, refusals: Refusals) -> None:
    """Remove the process of this member from the owners of its tasks. Refuses a task that does not belong to it."""
    process = member.process_id
    for role, subtopology_id, partitions in _held(member):
        owners = group.task_owners.setdefault(role, {})
        noted = owners.get(subtopology_id)
        if noted is None:
            _refuse(group, member, record_offset, subtopology_id, refusals)
            continue
        for partition in partitions:
            held = noted.get(partition)
            if role == "active":
                noted.pop(partition, None)
                is_own = held == (None if process is None else {process})
            else:
                is_own = held is not None and process in held
                if held is not None and process is not None:
                    held.discard(process)
            if not is_own:
                _refuse(group, member, record_offset, subtopology_id, refusals)
        if not noted:
            del owners[subtopology_id]


def add(group: StreamsGroupState, member: StreamsMember, record_offset: int, refusals: Refusals) -> None:
    """Add the process of this member to the owners of its tasks. Refuses an active task that has an owner."""
    if member.process_id is None:
        return
    for role, subtopology_id, partitions in _held(member):
        noted = group.task_owners.setdefault(role, {}).setdefault(subtopology_id, {})
        for partition in partitions:
            if role != "active":
                noted.setdefault(partition, set()).add(member.process_id)
                continue
            if partition in noted:
                refusals.refuse(
                    LoadProblem(
                        ProblemKind.TASK_STILL_OWNED,
                        record_offset=record_offset,
                        group=group.group,
                        member_id=member.member_id,
                        subtopology_id=subtopology_id,
                        partition=partition,
                        process_id=min(noted[partition]),
                    )
                )
            noted[partition] = {member.process_id}


def _held(member: StreamsMember) -> Iterator[tuple[str, str, list[int]]]:
    """Yield the tasks of a member by role and subtopology, in the order in which the broker goes through them."""
    for tasks in (member.assigned, member.pending_revocation):
        for role in TASK_ROLES:
            for subtopology_id, partitions in tasks.get(role, {}).items():
                yield role, subtopology_id, [*partitions]


def _refuse(group: StreamsGroupState, member: StreamsMember, record_offset: int, subtopology_id: str, refusals: Refusals) -> None:
    refusals.refuse(
        LoadProblem(
            ProblemKind.TASK_NOT_OWNED,
            record_offset=record_offset,
            group=group.group,
            member_id=member.member_id,
            subtopology_id=subtopology_id,
        )
    )
