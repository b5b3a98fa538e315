"""Building a classic group from its record, with the checks that both coordinators make while they add its members.

Source: GroupMetadata.loadGroup and add, GroupMetadataManager.readGroupMessageValue (2.8); ClassicGroup.add and
computeSubscribedTopics (4.x).
"""

from __future__ import annotations

from typing import Any

from exhume.codecs.embedded import broker_subscription_topics
from exhume.errors import DecodeError, Underflow
from exhume.replay.holdings import ClassicGroup, ClassicMember

CONSUMER_PROTOCOL_TYPE = "consumer"


class MemberRefused(Exception):
    """A coordinator refuses to add a member of this record: the load ends. The group was built as if it had gone on."""

    def __init__(self, reason: str, group: ClassicGroup) -> None:
        super().__init__(reason)
        self.reason = reason
        self.group = group


def build_classic_group(group: str, value: dict[str, Any], record_offset: int, *, instance_twice_aborts: bool) -> ClassicGroup:
    """The group that this GroupMetadata value describes.

    Raises:
        MemberRefused: a member id that is repeated in front of another member, an instance id held twice (where the release minds), or a
            subscription that the broker's parser does not survive.
    """
    members: dict[str, ClassicMember] = {}
    instances: set[str] = set()
    refusal = None
    repeated = None
    leader = value["leader"]
    for fields in value["members"]:
        member = _member(fields)
        instance = member.group_instance_id
        if instance is not None and instance in instances and instance_twice_aborts:
            refusal = refusal or f"instance id {instance!r} is held by two members of group {group!r}"
        if instance is not None:
            instances.add(instance)
        if repeated is not None:
            # Counters per protocol went up twice for the repeated id, so no protocol counts as supported by all any more.
            refusal = refusal or f"member {member.member_id!r} of group {group!r} comes behind {repeated!r}, which is there twice"
        if member.member_id in members:
            repeated = member.member_id
        members[member.member_id] = member
        leader = member.member_id if leader is None else leader
    built = ClassicGroup(
        group=group,
        record_offset=record_offset,
        generation=value["generation"],
        # "" means no type, but the members of a record bring theirs with them, "" included.
        protocol_type=value["protocol_type"] if members else value["protocol_type"] or None,
        protocol=value["protocol"],
        leader=leader,
        current_state_timestamp_ms=_absent_if_negative(value.get("current_state_timestamp_ms", -1)),
        members=members,
    )
    try:
        built.subscribed_topics = _subscribed_topics(built)
    except DecodeError as error:
        refusal = refusal or f"a subscription in group {group!r} cannot be parsed: {error.message}"
    if refusal is not None:
        raise MemberRefused(refusal, built)
    return built


def _member(fields: dict[str, Any]) -> ClassicMember:
    session_timeout_ms = fields["session_timeout_ms"]
    rebalance_timeout_ms = fields.get("rebalance_timeout_ms", -1)
    return ClassicMember(
        member_id=fields["member_id"],
        group_instance_id=fields.get("group_instance_id"),
        client_id=fields["client_id"],
        client_host=fields["client_host"],
        # Version 0 has no rebalance timeout; -1 in later ones means the same.
        rebalance_timeout_ms=session_timeout_ms if rebalance_timeout_ms == -1 else rebalance_timeout_ms,
        session_timeout_ms=session_timeout_ms,
        subscription=fields["subscription"],
        assignment=fields["assignment"],
    )


def _subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    if not group.members:
        return frozenset()
    if group.protocol is None:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        try:
            topics.update(broker_subscription_topics(member.subscription))
        except Underflow:
            # Kafka turns this one, and only this one, into a SchemaException that it catches: topics unknown.
            return None
    return frozenset(topics)


def _absent_if_negative(timestamp_ms: int) -> int | None:
    return None if timestamp_ms == -1 else timestamp_ms
