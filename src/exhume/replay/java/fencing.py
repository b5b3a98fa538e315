"""The end of a load of a consumer group: members that are fenced at once, and the group without them.

A member that must give up partitions and has no rebalance timeout is fenced when its timer is set. If only members of the classic protocol
are left, the coordinator makes the group classic in the same write. If it cannot, the write fails, and the group stays as it is.

Source: GroupMetadataManager.onLoaded, consumerGroupFenceMembers, validateOnlineDowngradeWithFencedMembers, convertToClassicGroup;
ClassicGroup.fromConsumerGroup, Kafka 3.8 to 4.4, with the default of group.consumer.migration.policy.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from exhume.codecs.layout import Fields
from exhume.codecs.record_types import GROUP_METADATA
from exhume.replay.classic_group import CONSUMER_PROTOCOL_TYPE, JavaGroupRules, MemberRefused, build_classic_group
from exhume.replay.decode import ReplayRecord
from exhume.replay.partition_state import ClassicGroupState, ConsumerGroupState, ConsumerMember, Group
from exhume.replay.profiles import JavaProfile


class Fenced(NamedTuple):
    """A member that a load fences, and the effect. `refused`: nothing changes, because its group cannot become classic."""

    group: str
    member_id: str
    effect: Literal["removed", "downgraded", "refused"]


def fence_members(
    group: ConsumerGroupState, groups: dict[str, Group], profile: JavaProfile, rules: JavaGroupRules, group_max_size: int
) -> Iterator[Fenced]:
    """Fence the members of one group of `groups`, and yield each; the group is replaced if it becomes classic."""
    for member in list(group.members.values()):
        if member.member_state != "UNREVOKED_PARTITIONS" or (member.rebalance_timeout_ms or 0) > 0:
            continue
        others = [other for other in group.members.values() if other is not member]
        if not _becomes_classic(others, profile, group_max_size):
            _remove(group, member, profile)
            yield Fenced(group.group, member.member_id, "removed")
            continue
        classic_group = _downgraded(group, others, profile, rules)
        if classic_group is not None:
            groups[group.group] = classic_group
            yield Fenced(group.group, member.member_id, "downgraded")
            return
        yield Fenced(group.group, member.member_id, "refused")


def _becomes_classic(others: Sequence[ConsumerMember], profile: JavaProfile, group_max_size: int) -> bool:
    is_possible = profile.downgrade != "disabled" and 0 < len(others) <= group_max_size
    return is_possible and all(other.classic is not None for other in others)


def _remove(group: ConsumerGroupState, member: ConsumerMember, profile: JavaProfile) -> None:
    del group.members[member.member_id]
    group.target.pop(member.member_id, None)
    group.group_epoch += 1
    if not group.members and profile.emptied_group_is_assigned:
        group.assignment_epoch, group.assignment_timestamp_ms = group.group_epoch, 0


def _downgraded(
    group: ConsumerGroupState, members: Sequence[ConsumerMember], profile: JavaProfile, rules: JavaGroupRules
) -> ClassicGroupState | None:
    """The classic group of these members, as it begins to rebalance; None if the coordinator fails to make it."""
    if profile.downgrade == "with_targets" and any(member.member_id not in group.target for member in members):
        return None
    metadata = [_metadata_by_protocol(member) for member in members]
    protocol = _chosen_protocol(metadata)
    if protocol is None or any(_version(of_member[protocol]) < 0 for of_member in metadata):
        return None
    value = {
        "protocol_type": CONSUMER_PROTOCOL_TYPE,
        "generation": group.group_epoch,
        "protocol": protocol,
        "leader": None,
        "members": [_classic_member(member, of_member[protocol]) for member, of_member in zip(members, metadata, strict=True)],
    }
    try:
        classic_group = build_classic_group(ReplayRecord(group.record_offset, GROUP_METADATA, {"group": group.group}, None, value), rules)
    except MemberRefused:
        return None
    if len(members) > 1:
        # Kafka takes the first member of a hash table.
        classic_group.leader = None
    classic_group.rebalance_at_load = "downgrade"
    return classic_group


def _metadata_by_protocol(member: ConsumerMember) -> dict[str, bytes]:
    assert member.classic is not None
    return {each["name"]: each["metadata"] for each in member.classic["supported_protocols"]}


def _chosen_protocol(metadata: Sequence[dict[str, bytes]]) -> str | None:
    """The protocol with most votes: each member votes for its first one that all support. None if there is none.

    Of equal votes the first counts here; Kafka takes the first of a hash table.
    """
    common = set.intersection(*map(set, metadata))
    votes = Counter(next(name for name in of_member if name in common) for of_member in metadata) if common else Counter[str]()
    return max(votes, key=votes.__getitem__, default=None)


def _version(subscription: bytes) -> int:
    """The version of this subscription; -1 without one."""
    return int(struct.unpack_from(">h", subscription)[0]) if len(subscription) > 1 else -1


def _classic_member(member: ConsumerMember, subscription: bytes) -> Fields:
    assert member.classic is not None
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "session_timeout_ms": member.classic["session_timeout_ms"],
        "subscription": subscription,
        # While it rebalances, a broker shows no assignment; the target has topic ids whose names the log may lack.
        "assignment": b"",
    }
