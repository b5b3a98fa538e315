"""Records of consumer, share and streams groups alike: the group's epoch, its target assignment, and the removal of members.

    group metadata     3, 11, 17     epoch; its tombstone removes the group
    target metadata    6, 12, 20     assignment epoch; its tombstone sets -1
    target member      7, 13, 21     target assignment of a member
    member             5, 10, 19     its tombstone removes the member, which must have left (epoch -1) and have no target
    current assignment 8, 14, 22     its tombstone makes the member leave

Tombstones have preconditions because coordinators write them in a fixed order; another order ends a strict load.
"""

from __future__ import annotations

from typing import Any

from exhume.codecs.layout import Fields
from exhume.replay.decode import ReplayRecord
from exhume.replay.load_problems import LoadProblem, ProblemKind
from exhume.replay.partition_state import ConsumerGroupState, Group, ShareGroupState, StreamsGroupState, Target, TopicPartitions
from exhume.replay.profiles import JavaProfile
from exhume.replay.refusals import Refusals

LEAVE_GROUP_EPOCH = -1
NO_ASSIGNMENT_EPOCH = -1

MEMBER_STATES = {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"}
STREAMS_MEMBER_STATES = {1: "STABLE", 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS"}

AnyModernGroup = ConsumerGroupState | ShareGroupState | StreamsGroupState


def apply_target_metadata(group: AnyModernGroup, record: ReplayRecord, profile: JavaProfile, refusals: Refusals) -> None:
    """6, 12, 20: the epoch of the target assignment."""
    if record.value is None:
        if group.target:
            refusals.refuse(
                LoadProblem(ProblemKind.TARGET_NOT_EMPTY, record_offset=record.record_offset, group=group.group, targets=len(group.target))
            )
        group.assignment_epoch = NO_ASSIGNMENT_EPOCH
        return
    epoch = record.value["assignment_epoch"]
    if epoch < NO_ASSIGNMENT_EPOCH and profile.negative_epoch_aborts:
        refusals.refuse(
            LoadProblem(ProblemKind.ASSIGNMENT_EPOCH_NEGATIVE, record_offset=record.record_offset, group=group.group, epoch=epoch)
        )
    group.record_offset = record.record_offset
    group.assignment_epoch = epoch
    group.assignment_timestamp_ms = record.value.get("assignment_timestamp_ms", 0)


def apply_target_member(group: AnyModernGroup, record: ReplayRecord, assigned: Any) -> None:
    """7, 13, 21: the target of one member, which need not exist."""
    if record.value is None:
        group.target.pop(record.key["member_id"], None)
    else:
        group.target[record.key["member_id"]] = Target(record.record_offset, assigned)


def remove_group(
    group: AnyModernGroup, groups: dict[str, Group], record: ReplayRecord, refusals: Refusals, *, checks_target: bool = True
) -> None:
    """The tombstone of 3, 11, 17: members, targets and assignment epoch must be removed before."""
    problem = LoadProblem(
        ProblemKind.GROUP_NOT_EMPTY,
        record_offset=record.record_offset,
        group=group.group,
        members=len(group.members) or None,
        targets=(checks_target and len(group.target)) or None,
        epoch=None if group.assignment_epoch == NO_ASSIGNMENT_EPOCH else group.assignment_epoch,
    )
    if problem.leftovers:
        refusals.refuse(problem)
    del groups[group.group]


def refuse_missing_member(group: AnyModernGroup, record: ReplayRecord, profile: JavaProfile, refusals: Refusals) -> None:
    """Add the problem of an unknown member: some releases end the load at such a record."""
    if record.record_type in profile.missing_aborts:
        refusals.refuse(
            LoadProblem(
                ProblemKind.MEMBER_MISSING,
                record_offset=record.record_offset,
                group=group.group,
                member_id=record.key["member_id"],
                record_type=record.record_type,
            )
        )


def remove_member(group: AnyModernGroup, record: ReplayRecord, profile: JavaProfile, refusals: Refusals) -> bool:
    """The tombstone of 5, 10, 19; False if the group has no such member."""
    member_id = record.key["member_id"]
    member = group.members.get(member_id)
    if member is None:
        refuse_missing_member(group, record, profile, refusals)
        return False
    if member.member_epoch != LEAVE_GROUP_EPOCH:
        refusals.refuse(
            LoadProblem(
                ProblemKind.MEMBER_WITH_ASSIGNMENT,
                record_offset=record.record_offset,
                group=group.group,
                member_id=member_id,
                epoch=member.member_epoch,
            )
        )
    elif member_id in group.target:
        refusals.refuse(
            LoadProblem(ProblemKind.MEMBER_WITH_TARGET, record_offset=record.record_offset, group=group.group, member_id=member_id)
        )
    del group.members[member_id]
    return True


def topic_partitions(entries: list[Fields], default_epoch: int | None) -> TopicPartitions:
    """Topic partitions of a record with their assignment epochs; `default_epoch` if the record has no epochs."""
    result: TopicPartitions = {}
    for entry in entries:
        epochs = entry.get("assignment_epochs") or []
        if len(epochs) != len(entry["partitions"]):
            epochs = [default_epoch] * len(entry["partitions"])
        result.setdefault(entry["topic_id"], {}).update(zip(entry["partitions"], epochs, strict=True))
    return result
