"""A group as the coordinator gives it to its assignors: members, topics and previous targets in the order of Java's tables."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

from exhume.analysis.assignors.group import GroupAssignment, GroupSpec, MemberSpec, TopicPartition
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
        known: dict[tuple[str, ...], list[str]] = {}
        for topics in {member.topics for member in self.members}:
            known[topics] = [topic for topic in hash_order(topics, string_hash) if topic in self.spec.partition_counts]
        self.topics = {member.member_id: known[member.topics] for member in self.members}
        self.previous = {member.member_id: self._target(member.owned) for member in self.members}

    def _target(self, owned: Sequence[TopicPartition]) -> Held:
        by_topic: Held = {}
        for topic, run in groupby(owned, itemgetter(0)):
            by_topic.setdefault(topic, []).extend(map(itemgetter(1), run))
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
        first = self.members[0].topics
        return all(set(topics) == set(first) for topics in {member.topics for member in self.members})

    def partitions(self, topics: Sequence[str]) -> list[TopicPartition]:
        """Return all partitions of these topics, in this order."""
        return [(topic, partition) for topic in topics for partition in range(self.spec.partition_counts[topic])]


class Targets(Mapping[str, list[TopicPartition]]):
    """Targets by member id, kept by topic. A target is a set: its partitions are sorted, and listed on request."""

    def __init__(self, held: Mapping[str, Mapping[str, Sequence[int]]]) -> None:
        self._held = held
        self._listed: dict[str, list[TopicPartition]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __getitem__(self, member_id: str) -> list[TopicPartition]:
        if member_id not in self._listed:
            topics = self._held[member_id]
            self._listed[member_id] = [(topic, partition) for topic in sorted(topics) for partition in sorted(topics[topic])]
        return self._listed[member_id]


def as_number_set(numbers: Sequence[int]) -> list[int]:
    """Return these numbers in the order of a hash set made from them."""
    capacity = copied_set_capacity(len(numbers))
    ascending = sorted(set(numbers))
    if ascending and ascending[0] >= 0 and ascending[-1] < min(capacity, 1 << 16):
        # Each number has a bucket of its own.
        return ascending
    return hash_order(numbers, number_hash, capacity)


def plan_of(held: Mapping[str, Mapping[str, Sequence[int]]]) -> GroupAssignment:
    """Return the result of an assignor of the coordinator."""
    return GroupAssignment(Targets(held))
