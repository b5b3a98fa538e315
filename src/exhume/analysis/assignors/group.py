"""The input and the result of an assignor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from exhume.analysis.assignors.java_order import hash_order, sort_key, string_hash
from exhume.analysis.topic_sizes import PartitionRacks

TopicPartition = tuple[str, int]
#: Member id -> its partitions, in the order in which Kafka's class lists them.
Assigned = dict[str, list[TopicPartition]]


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member as an assignor sees it.

    Attributes:
        member_id: its id.
        topics: its subscription, in the order of the bytes.
        group_instance_id: the instance id of a static member.
        rack_id: its rack; None and "" both mean none.
        owned: the partitions that it claims, in the order of the bytes; for assignors of the coordinator, its previous target.
        field_generation: the generation field of the subscription, since its version 2; None if it is absent or unknown.
        user_data_generation: the generation in the user data; None without user data, or without a generation in it.
        has_user_data: True if the member sent user data, even if they claim nothing.
    """

    member_id: str
    topics: tuple[str, ...]
    group_instance_id: str | None = None
    rack_id: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    field_generation: int | None = None
    user_data_generation: int | None = None
    has_user_data: bool = False


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """The input of an assignor.

    Attributes:
        members: in the order of the JoinGroup response, as far as it is known; ids are unique.
        partition_counts: by topic, for topics with metadata. A topic that is not here does not exist.
        racks: by topic, the racks of the replicas of every partition, where they are known.
        topic_ids: for assignors of the coordinator, the 16 bytes of each id. They decide ties.
        assignable: for share groups, the partitions with initialized share state; None if all have it.
    """

    members: Sequence[MemberSpec]
    partition_counts: Mapping[str, int]
    racks: Mapping[str, PartitionRacks] = field(default_factory=dict)
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    assignable: Mapping[str, Sequence[int]] | None = None

    def in_hash_order(self) -> list[MemberSpec]:
        """Return the members in the order of a HashMap by member id."""
        by_id = {member.member_id: member for member in self.members}
        return [by_id[member_id] for member_id in hash_order(by_id, string_hash)]

    def known_topics(self, member: MemberSpec) -> list[str]:
        """Return the existing topics of this member."""
        return [topic for topic in member.topics if topic in self.partition_counts]


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """The result of an assignor: partitions by member, and those that a cooperative assignor withholds until their owner releases them."""

    assigned: Mapping[str, Sequence[TopicPartition]]
    withheld: Mapping[str, Sequence[TopicPartition]] = field(default_factory=dict)


class AssignorThrows(Exception):
    """Kafka's class throws here: the leader fails and makes no assignment.

    Attributes:
        exception: the name of the Java exception.
    """

    def __init__(self, exception: str, reason: str) -> None:
        super().__init__(f"{exception}: {reason}")
        self.exception = exception


def static_first(member: MemberSpec) -> tuple[bool, bytes]:
    """Return the sort key that puts static members first, by instance id, then the others by member id."""
    if member.group_instance_id is not None:
        return (False, sort_key(member.group_instance_id))
    return (True, sort_key(member.member_id))


def by_member_id(member: MemberSpec) -> bytes:
    """Return the sort key where static membership makes no difference."""
    return sort_key(member.member_id)
