"""Streams groups (KIP-1071): record types 17 and 19 to 23.

Source: GroupMetadataManager.replay(StreamsGroup*), Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from exhume.codecs.layout import Fields
from exhume.replay.decode import ReplayRecord
from exhume.replay.java import modern, task_owners
from exhume.replay.load_problems import LoadProblem, ProblemKind
from exhume.replay.partition_state import Group, StreamsGroupState, StreamsMember, Tasks
from exhume.replay.profiles import JavaProfile
from exhume.replay.refusals import Refusals


def apply(group: StreamsGroupState, groups: dict[str, Group], record: ReplayRecord, profile: JavaProfile, refusals: Refusals) -> None:
    """Replay one record of a streams group that exists."""
    value = record.value
    match record.role:
        case "group" if value is None:
            modern.remove_group(group, groups, record, refusals, checks_target=False)
        case "group":
            assert value is not None
            group.record_offset = record.record_offset
            group.group_epoch = value["group_epoch"]
            group.metadata_hash = value["metadata_hash"]
            group.validated_topology_epoch = value["validated_topology_epoch"]
            group.last_assignment_configs = value["last_assignment_configs"] or []
        case "member":
            with _ownership(group, record, profile, refusals):
                _apply_member(group, record, profile, refusals)
        case "target_epoch":
            modern.apply_target_metadata(group, record, profile, refusals)
        case "target":
            modern.apply_target_member(group, record, None if value is None else _tasks(value, "_tasks", None))
        case "current":
            with _ownership(group, record, profile, refusals):
                _apply_current_assignment(group, record)
        case "topology":
            _apply_topology(group, record, refusals)


def _apply_member(group: StreamsGroupState, record: ReplayRecord, profile: JavaProfile, refusals: Refusals) -> None:
    value = record.value
    if value is None:
        modern.remove_member(group, record, profile, refusals)
        return
    member = _member(group, record)
    member.record_offset = record.record_offset
    for name in (
        "group_instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "rebalance_timeout_ms",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
    ):
        setattr(member, name, value[name])


def _apply_current_assignment(group: StreamsGroupState, record: ReplayRecord) -> None:
    value = record.value
    if value is None:
        member = group.members.get(record.key["member_id"])
        if member is not None:
            member.member_epoch = member.previous_member_epoch = modern.LEAVE_GROUP_EPOCH
            member.assigned, member.pending_revocation = {}, {}
            member.assignment_record_offset = None
        return
    member = _member(group, record)
    member.member_epoch = value["member_epoch"]
    member.previous_member_epoch = value["previous_member_epoch"]
    member.member_state = modern.STREAMS_MEMBER_STATES.get(value["member_state"], "UNKNOWN")
    member.assigned = _tasks(value, "_tasks", value["member_epoch"])
    member.pending_revocation = _tasks(value, "_tasks_pending_revocation", value["member_epoch"])
    member.assignment_record_offset = record.record_offset


def _apply_topology(group: StreamsGroupState, record: ReplayRecord, refusals: Refusals) -> None:
    group.topology = record.value
    group.topology_record_offset = None if record.value is None else record.record_offset
    if record.value is not None and record.value["topology_epoch"] < 0:
        refusals.refuse(
            LoadProblem(
                ProblemKind.TOPOLOGY_EPOCH_NEGATIVE,
                record_offset=record.record_offset,
                group=group.group,
                epoch=record.value["topology_epoch"],
            )
        )


@contextmanager
def _ownership(group: StreamsGroupState, record: ReplayRecord, profile: JavaProfile, refusals: Refusals) -> Iterator[None]:
    """Change the owners of tasks with an update of a member; see `task_owners`."""
    if not profile.streams_ownership_is_strict:
        yield
        return
    member_id = record.key["member_id"]
    if member_id in group.members:
        task_owners.remove(group, group.members[member_id], record.record_offset, refusals)
    yield
    if member_id in group.members:
        task_owners.add(group, group.members[member_id], record.record_offset, refusals)


def _member(group: StreamsGroupState, record: ReplayRecord) -> StreamsMember:
    member_id = record.key["member_id"]
    # A streams member begins with every field unset: no epoch, no state, no timeout.
    return group.members.setdefault(member_id, StreamsMember(member_id, record.record_offset, None, None, None, rebalance_timeout_ms=None))


def _tasks(value: Fields, suffix: str, default_epoch: int | None) -> Tasks:
    tasks: Tasks = {}
    for role in task_owners.TASK_ROLES:
        for entry in value[role + suffix]:
            epochs = entry.get("assignment_epochs") or []
            if role != "active" or default_epoch is None:
                epochs = [None] * len(entry["partitions"])
            elif len(epochs) != len(entry["partitions"]):
                epochs = [default_epoch] * len(entry["partitions"])
            tasks.setdefault(role, {}).setdefault(entry["subtopology_id"], {}).update(zip(entry["partitions"], epochs, strict=True))
    return tasks
