"""Building a classic group from its record, with the checks that both coordinators make while they add its members.

Source: GroupMetadata.loadGroup and add, GroupMetadataManager.readGroupMessageValue (2.8); ClassicGroup.add and
computeSubscribedTopics (4.x).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from exhume.codecs.embedded import broker_subscription_topics
from exhume.codecs.layout import Fields, Message
from exhume.codecs.record_types import GROUP_METADATA
from exhume.codecs.wire import Reader
from exhume.errors import DecodeError, LengthOverrun, Underflow
from exhume.replay.decode import ReplayRecord
from exhume.replay.load_problems import LoadProblem, ProblemKind
from exhume.replay.partition_state import ClassicGroupState, ClassicMember, Group, LaterMembers

#: The errors of a subscription that a broker catches, by rule.
_CAUGHT = {"tolerated": (DecodeError,), "null_aborts": (Underflow, LengthOverrun), "null_and_length_abort": (Underflow,)}

Subscription = Literal["not_parsed", "tolerated", "null_aborts", "null_and_length_abort"]

CONSUMER_PROTOCOL_TYPE = "consumer"


class MemberRefused(Exception):
    """A coordinator refuses to add a member of this record: the load ends. The group was built as if the load had continued."""

    def __init__(self, problem: LoadProblem, group: ClassicGroupState) -> None:
        super().__init__(problem, group)
        self.problem = problem
        self.group = group


class ClassicGroupRules(Protocol):
    """The rules in which releases differ when they build a group; each has the meaning of the rule of this name in `ScalaProfile`."""

    @property
    def instance_twice_aborts(self) -> bool: ...
    @property
    def member_twice_aborts(self) -> bool: ...
    @property
    def parses_subscriptions(self) -> bool: ...
    @property
    def subscription(self) -> Subscription: ...
    @property
    def state_timestamp_versions(self) -> frozenset[int]: ...
    @property
    def keeps_memberless_protocol_type(self) -> bool: ...
    @property
    def null_protocol_is_readable(self) -> bool: ...
    @property
    def memberless_state(self) -> str: ...


@dataclass(frozen=True, slots=True)
class JavaGroupRules:
    """The rules of the Java coordinator. Its releases differ in `subscription` alone."""

    subscription: Subscription
    instance_twice_aborts: bool = True
    member_twice_aborts: bool = True
    parses_subscriptions: bool = True
    state_timestamp_versions: frozenset[int] = frozenset({2, 3, 4})
    keeps_memberless_protocol_type: bool = True
    null_protocol_is_readable: bool = True
    memberless_state: str = "Empty"


def build_classic_group(record: ReplayRecord, rules: ClassicGroupRules) -> ClassicGroupState:
    """Build the group of this GroupMetadata value.

    Raises:
        MemberRefused: the release refuses a repeated member id before another member, an instance id of two members, a subscription on
        which
            the broker's parser throws, or a null that it cannot read.
    """
    value = record.value
    assert value is not None
    name, record_offset = record.key["group"], record.record_offset
    members: dict[str, ClassicMember] = {}
    instances: set[str] = set()
    problems: list[LoadProblem] = []
    repeated = None
    leader = value["leader"]
    if (value["protocol"] is None or leader is None) and not rules.null_protocol_is_readable:
        problems.append(LoadProblem(ProblemKind.PROTOCOL_OR_LEADER_NULL, record_offset=record_offset, group=name))
    for fields in value["members"]:
        member = _member(fields)
        instance = member.group_instance_id
        if instance is not None and instance in instances and rules.instance_twice_aborts:
            problems.append(LoadProblem(ProblemKind.INSTANCE_ID_TWICE, record_offset=record_offset, group=name, instance_id=instance))
        if instance is not None:
            instances.add(instance)
        if repeated is not None and rules.member_twice_aborts:
            # Counters per protocol went up twice for the repeated id, so no protocol counts as supported by all any more.
            problems.append(
                LoadProblem(
                    ProblemKind.MEMBER_ID_TWICE,
                    record_offset=record_offset,
                    group=name,
                    member_id=member.member_id,
                    other_member_id=repeated,
                )
            )
        if member.member_id in members:
            repeated = member.member_id
        members[member.member_id] = member
        leader = member.member_id if leader is None else leader
    group = _group(name, record_offset, record.value_version, value, members=members, leader=leader, rules=rules)
    try:
        group.subscribed_topics = _subscribed_topics(group, rules)
    except DecodeError as error:
        problems.append(LoadProblem(ProblemKind.SUBSCRIPTION_UNPARSABLE, record_offset=record_offset, group=name, detail=error.message))
    if problems:
        raise MemberRefused(problems[0], group)
    return group


class GroupOutline(NamedTuple):
    """A GroupMetadata value that no release refuses: version, fields before its members, number of members, all bytes."""

    version: int
    front: Mapping[str, Any]
    members: int
    value: bytes


def outlined_classic_group(
    name: str, record_offset: int, outline: GroupOutline, layout: Message, rules: ClassicGroupRules
) -> ClassicGroupState:
    """Build the group of this value with members that are decoded on first access.

    The subscribed topics are unknown here; `PartitionState.whole` has them.
    """
    version = outline.version

    def whole() -> ClassicGroupState:
        body = layout.read(Reader(outline.value, 2), version)
        return build_classic_group(ReplayRecord(record_offset, GROUP_METADATA, {"group": name}, version, body), rules)

    if not outline.members:
        return whole()
    members = LaterMembers(outline.members, whole, outline.value)
    return _group(name, record_offset, version, outline.front, members=members, leader=outline.front["leader"], rules=rules)


def _group(
    name: str,
    record_offset: int,
    version: int | None,
    value: Mapping[str, Any],
    *,
    members: Mapping[str, ClassicMember],
    leader: str | None,
    rules: ClassicGroupRules,
) -> ClassicGroupState:
    # "" means no type, but with members the group takes their type, also "".
    protocol_type = value["protocol_type"] if members else value["protocol_type"] or None
    has_timestamp = version in rules.state_timestamp_versions
    return ClassicGroupState(
        group=name,
        record_offset=record_offset,
        generation=value["generation"],
        protocol_type=protocol_type if members or rules.keeps_memberless_protocol_type else None,
        protocol=value["protocol"],
        leader=leader,
        current_state_timestamp_ms=_absent_if_none(value.get("current_state_timestamp_ms", -1)) if has_timestamp else None,
        members=members,
        memberless_state=rules.memberless_state,
    )


def rebalance_oversized(groups: Iterable[Group], group_max_size: int) -> None:
    """Mark classic groups with more members than this for a rebalance: the last step of a load."""
    for group in groups:
        if isinstance(group, ClassicGroupState) and len(group.members) > group_max_size:
            group.rebalance_at_load = "group_max_size"


def _member(fields: Fields) -> ClassicMember:
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


def _subscribed_topics(group: ClassicGroupState, rules: ClassicGroupRules) -> frozenset[str] | None:
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE or not rules.parses_subscriptions:
        return None
    if not group.members:
        return frozenset()
    if group.protocol is None:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        try:
            topics.update(broker_subscription_topics(member.subscription))
        except DecodeError as error:
            # Kafka catches a SchemaException: topics unknown. Any other error of its parser ends the load.
            if isinstance(error, _CAUGHT[rules.subscription]):
                return None
            raise
    return frozenset(topics)


def _absent_if_none(timestamp_ms: int) -> int | None:
    return None if timestamp_ms == -1 else timestamp_ms
