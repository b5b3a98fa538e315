"""Consumer groups (KIP-848): record types 3 to 8 and 16.

Source: GroupMetadataManager.replay(ConsumerGroup*), ConsumerGroup.updateMember, Kafka 4.4.
"""

from __future__ import annotations

from exhume.replay.decode import ReplayRecord
from exhume.replay.java import modern
from exhume.replay.load_problems import LoadProblem, ProblemKind
from exhume.replay.partition_state import ConsumerGroupState, ConsumerMember, Group, RegularExpression, TopicPartitions
from exhume.replay.profiles import JavaProfile
from exhume.replay.refusals import Refusals


def apply(group: ConsumerGroupState, groups: dict[str, Group], record: ReplayRecord, profile: JavaProfile, refusals: Refusals) -> None:
    """Replay one record of a consumer group that exists."""
    value = record.value
    match record.role:
        case "group" if value is None:
            modern.remove_group(group, groups, record, refusals)
        case "group":
            assert value is not None
            group.record_offset = record.record_offset
            group.group_epoch = value["group_epoch"]
            group.metadata_hash = value["metadata_hash"]
        case "partition_metadata":
            pass  # Only makes the next heartbeat write a tombstone; `TopicNames` takes its topic names.
        case "member":
            _apply_member(group, record, profile, refusals)
        case "target_epoch":
            modern.apply_target_metadata(group, record, profile, refusals)
        case "target":
            assigned = None if value is None else modern.topic_partitions(value["topic_partitions"], None)
            modern.apply_target_member(group, record, assigned)
        case "current":
            _apply_current_assignment(group, record, profile, refusals)
        case "regular_expression" if value is None:
            group.regular_expressions.pop(record.key["regular_expression"], None)
        case "regular_expression":
            assert value is not None
            group.regular_expressions[record.key["regular_expression"]] = RegularExpression(
                value["topics"], value["metadata_image_version"], value["resolved_timestamp_ms"], record.record_offset
            )


def _apply_member(group: ConsumerGroupState, record: ReplayRecord, profile: JavaProfile, refusals: Refusals) -> None:
    value = record.value
    member_id = record.key["member_id"]
    member = group.members.get(member_id)
    if value is None:
        if modern.remove_member(group, record, profile, refusals) and member is not None:
            _give_up(group, member, record, profile, refusals)
        return
    if member is None:
        member = _new_member(group, record, profile)
    member.record_offset = record.record_offset
    for name in (
        "group_instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "subscribed_topics",
        "subscribed_regex",
        "rebalance_timeout_ms",
        "server_assignor",
    ):
        setattr(member, name, value[name])
    member.classic = value.get("classic_member_metadata")
    # Any update of a member assigns its partitions again, with the same check.
    _give_up(group, member, record, profile, refusals)
    _take(group, member, record, profile, refusals)


def _apply_current_assignment(group: ConsumerGroupState, record: ReplayRecord, profile: JavaProfile, refusals: Refusals) -> None:
    value = record.value
    member_id = record.key["member_id"]
    member = group.members.get(member_id)
    if member is None:
        modern.refuse_missing_member(group, record, profile, refusals)
        if value is None:
            return
        member = _new_member(group, record, profile)
    _give_up(group, member, record, profile, refusals)
    if value is None:
        member.member_epoch = member.previous_member_epoch = modern.LEAVE_GROUP_EPOCH
        member.assigned, member.pending_revocation, member.pending_assignment = {}, {}, {}
        member.assignment_record_offset = None
        return
    epoch = value["member_epoch"]
    member.member_epoch = epoch
    member.previous_member_epoch = value["previous_member_epoch"]
    if "target_member_epoch" in value:
        member.target_member_epoch = value["target_member_epoch"]
        member.pending_assignment = modern.topic_partitions(value["pending_assignment"], None)
        member.member_state = None
    else:
        member.member_state = modern.MEMBER_STATES.get(value["member_state"], "UNKNOWN")
    member.assigned = modern.topic_partitions(value["assigned"], max(epoch, 0))
    member.pending_revocation = modern.topic_partitions(value["pending_revocation"], max(epoch, 0))
    member.assignment_record_offset = record.record_offset
    _take(group, member, record, profile, refusals)


def _new_member(group: ConsumerGroupState, record: ReplayRecord, profile: JavaProfile) -> ConsumerMember:
    member = group.members[record.key["member_id"]] = ConsumerMember(record.key["member_id"], record.record_offset)
    if profile.reconciled_by == "target_epoch":
        member.member_state, member.target_member_epoch = None, 0
    return member


def _partitions(member: ConsumerMember) -> list[tuple[str | None, int]]:
    held: list[TopicPartitions] = [member.assigned, member.pending_revocation]
    return [(topic_id, partition) for part in held for topic_id, partitions in part.items() for partition in partitions]


def _give_up(group: ConsumerGroupState, member: ConsumerMember, record: ReplayRecord, profile: JavaProfile, refusals: Refusals) -> None:
    """Remove the partitions of the member. A partition that another member took at another epoch stays with that one, or ends the load."""
    for partition in _partitions(member):
        owner_epoch = group.owner_epochs.get(partition)
        if owner_epoch == member.member_epoch:
            del group.owner_epochs[partition]
        elif profile.ownership == "strict":
            refusals.refuse(_owner_problem(ProblemKind.PARTITION_TAKEN_OVER, member, record, partition, owner_epoch))


def _take(group: ConsumerGroupState, member: ConsumerMember, record: ReplayRecord, profile: JavaProfile, refusals: Refusals) -> None:
    """Give the member its assigned and pending partitions. The release decides if it may take one from another owner."""
    epoch = member.member_epoch
    assert epoch is not None
    for partition in _partitions(member):
        present = group.owner_epochs.get(partition)
        is_fine = present is None or profile.ownership == "overwrite" or (profile.ownership == "monotonic" and present < epoch)
        if not is_fine:
            refusals.refuse(_owner_problem(ProblemKind.PARTITION_STILL_OWNED, member, record, partition, present))
        group.owner_epochs[partition] = epoch


def _owner_problem(
    kind: ProblemKind, member: ConsumerMember, record: ReplayRecord, partition: tuple[str | None, int], owner_epoch: int | None
) -> LoadProblem:
    topic_id, number = partition
    return LoadProblem(
        kind,
        record_offset=record.record_offset,
        group=record.key["group"],
        member_id=member.member_id,
        topic_id=topic_id,
        partition=number,
        epoch=member.member_epoch,
        owner_epoch=owner_epoch,
    )
