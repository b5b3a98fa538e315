"""Share groups (KIP-932): record types 9 to 15.

Source: GroupMetadataManager.replay(ShareGroup*), Kafka 4.4.
"""

from __future__ import annotations

from exhume.replay.decode import ReplayRecord
from exhume.replay.java import modern
from exhume.replay.partition_state import Group, ShareGroupState, ShareMember
from exhume.replay.profiles import JavaProfile
from exhume.replay.refusals import Refusals


def apply(group: ShareGroupState, groups: dict[str, Group], record: ReplayRecord, profile: JavaProfile, refusals: Refusals) -> None:
    """Replay one record of a share group that exists; types 9 and 15 do not change it: `ShareState` has the content of 15."""
    value = record.value
    match record.role:
        case "member":
            _apply_member(group, record, profile, refusals)
        case "group" if value is None:
            modern.remove_group(group, groups, record, refusals)
        case "group":
            assert value is not None
            group.record_offset = record.record_offset
            group.group_epoch = value["group_epoch"]
            group.metadata_hash = value.get("metadata_hash", 0)
        case "target_epoch":
            modern.apply_target_metadata(group, record, profile, refusals)
        case "target":
            assigned = None if value is None else modern.topic_partitions(value["topic_partitions"], None)
            modern.apply_target_member(group, record, assigned)
        case "current":
            _apply_current_assignment(group, record, profile, refusals)


def _apply_member(group: ShareGroupState, record: ReplayRecord, profile: JavaProfile, refusals: Refusals) -> None:
    value = record.value
    if value is None:
        modern.remove_member(group, record, profile, refusals)
        return
    member = _member(group, record)
    member.record_offset = record.record_offset
    for name in ("rack_id", "client_id", "client_host", "subscribed_topics"):
        setattr(member, name, value[name])


def _apply_current_assignment(group: ShareGroupState, record: ReplayRecord, profile: JavaProfile, refusals: Refusals) -> None:
    value = record.value
    if record.key["member_id"] not in group.members:
        modern.refuse_missing_member(group, record, profile, refusals)
    if value is None:
        member = group.members.get(record.key["member_id"])
        if member is not None:
            member.member_epoch = member.previous_member_epoch = modern.LEAVE_GROUP_EPOCH
            member.assigned = {}
            member.assignment_record_offset = None
        return
    member = _member(group, record)
    member.member_epoch = value["member_epoch"]
    member.previous_member_epoch = value["previous_member_epoch"]
    member.member_state = modern.MEMBER_STATES.get(value["member_state"], "UNKNOWN")
    member.assigned = modern.topic_partitions(value["assigned"], None)
    member.assignment_record_offset = record.record_offset


def _member(group: ShareGroupState, record: ReplayRecord) -> ShareMember:
    return group.members.setdefault(record.key["member_id"], ShareMember(record.key["member_id"], record.record_offset))
