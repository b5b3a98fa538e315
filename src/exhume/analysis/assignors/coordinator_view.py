"""A group as the coordinator gives it to its assignors: members, topics and previous targets in the order of Java's tables."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from exhume.analysis.assignors.group import Assigned, GroupAssignment, GroupSpec, MemberSpec, TopicPartition
from exhume.analysis.assignors.java_order import copied_set_capacity, hash_order, number_hash, string_hash, uuid_hash

#: Topic -> its partitions.
Held = dict[str, list[int]]


@dataclass(slots=True)
class CoordinatorView:
    """The input of an assignor, as the coordinator sees it.

    Attributes:
        question: the input.
        members: in hash order.
        topics: member id -> the existing topics of its subscription, in the order of a hash set of names.
        previous: member id -> its previous target.
    """

    spec: GroupSpec
    members: list[MemberSpec] = field(init=False)
    topics: dict[str, list[str]] = field(init=False)
    previous: dict[str, Held] = field(init=False)

    def __post_init__(self) -> None:
        self.members = self.spec.in_hash_order()
        self.topics = {
            member.member_id: [topic for topic in hash_order(member.topics, string_hash) if topic in self.spec.partition_counts]
            for member in self.members
        }
        self.previous = {member.member_id: self._target(member.owned) for member in self.members}

    def _target(self, owned: Sequence[TopicPartition]) -> Held:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in owned:
            by_topic.setdefault(topic, []).append(partition)
        return {topic: as_number_set(by_topic[topic]) for topic in hash_order(by_topic, self.topic_hash)}

    def topic_hash(self, topic: str) -> int:
        """Return the hash code of a topic's id."""
        return uuid_hash(self.spec.topic_ids[topic])

    def partition_hash(self, partition: TopicPartition) -> int:
        """Return TopicIdPartition.hashCode of 3.7 to 4.0."""
        return 31 * (31 + self.topic_hash(partition[0])) + partition[1]

    def record_hash(self, partition: TopicPartition) -> int:
        """Return TopicIdPartition.hashCode since 4.1, where the class is a record."""
        return 31 * self.topic_hash(partition[0]) + partition[1]

    def topic_order(self, topic: str) -> tuple[int, int]:
        """Return the sort key that orders topics as Uuid.compareTo orders their ids."""
        most, least = struct.unpack(">qq", self.spec.topic_ids[topic])
        return most, least

    def subscribed(self) -> list[str]:
        """Return every existing topic that a member subscribes to, each once, in the order of the members."""
        return list(dict.fromkeys(topic for topics in self.topics.values() for topic in topics))

    def subscriptions_equal(self) -> bool:
        """True if all members subscribe to the same names, existing or not."""
        return all(set(member.topics) == set(self.members[0].topics) for member in self.members)

    def partitions(self, topics: Sequence[str]) -> list[TopicPartition]:
        """Return all partitions of these topics, in this order."""
        return [(topic, partition) for topic in topics for partition in range(self.spec.partition_counts[topic])]


def as_number_set(numbers: Sequence[int]) -> list[int]:
    """Return these numbers in the order of a hash set made from them."""
    return hash_order(numbers, number_hash, copied_set_capacity(len(numbers)))


def plan_of(held: dict[str, Held]) -> GroupAssignment:
    """Return the result of an assignor of the coordinator. It is a set: topics and partitions are sorted."""
    assigned: Assigned = {
        member_id: sorted((topic, partition) for topic, partitions in topics.items() for partition in partitions)
        for member_id, topics in held.items()
    }
    return GroupAssignment(assigned)
