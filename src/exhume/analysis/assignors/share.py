"""The `simple` assignor of the coordinator for share groups, whose members share partitions.

    3.9 - 4.0   every member gets every partition of its topics
    4.1         a partition for each member by the hash of its id, then its previous partitions, then the rest in turn
    4.2 -       the same number of members for each partition and of partitions for each member; per topic where subscriptions differ

Source: SimpleAssignor, SimpleHomogeneousAssignmentBuilder and SimpleHeterogeneousAssignmentBuilder, Kafka 3.9 to 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Generic, TypeVar

from exhume.analysis.assignors.coordinator_view import CoordinatorView, plan_of
from exhume.analysis.assignors.group import AssignorThrows, GroupAssignment, GroupSpec, TopicPartition
from exhume.analysis.assignors.java_order import called_capacity, capacity_for, grown_capacity, hash_order, number_hash, string_hash

Key = TypeVar("Key", TopicPartition, int)


def simple_3_9(spec: GroupSpec) -> GroupAssignment:
    """Assign as `simple` of the coordinators 3.9 and 4.0."""
    # It reads no previous target, which may name every partition for every member.
    view = CoordinatorView(replace(spec, members=[replace(member, owned=()) for member in spec.members]))
    by_topic = {topic: [(topic, number) for number in range(spec.partition_counts[topic])] for topic in view.subscribed()}
    return GroupAssignment(
        {member_id: [each for topic in sorted(topics) for each in by_topic[topic]] for member_id, topics in view.topics.items()}
    )


def simple_4_1(spec: GroupSpec) -> GroupAssignment:
    """Assign as `simple` of the coordinator 4.1."""
    view = CoordinatorView(spec)
    holders: dict[TopicPartition, list[str]] = {}
    calls: list[TopicPartition] = []
    for member_id, topics in view.previous.items():
        for topic, partitions in topics.items():
            for partition in partitions:
                calls.append((topic, partition))
                holders.setdefault((topic, partition), []).append(member_id)
    capacity = called_capacity(calls)
    before = {partition: holders[partition] for partition in hash_order(reversed(holders), view.record_hash, capacity)}
    return _plan(view, _equal_4_1(view, before) if view.subscriptions_equal() else _unequal_4_1(view, before))


def _equal_4_1(view: CoordinatorView, before: dict[TopicPartition, list[str]]) -> dict[str, set[TopicPartition]]:
    topics = view.topics[view.members[0].member_id]
    partitions = _assignable(view, topics)
    most = ceil(len(partitions) / len(view.members))
    held: dict[str, set[TopicPartition]] = {member.member_id: set() for member in view.members}
    if not topics:
        return held
    hashed = set()
    for member_id in held if partitions else ():
        partition = _by_hash(member_id, partitions)
        held[member_id].add(partition)
        hashed.add(partition)
    given = set(hashed)
    for partition, members in before.items():
        for member_id in members:
            if partition[0] in topics and len(held[member_id]) < most and partition not in hashed:
                held[member_id].add(partition)
                given.add(partition)
    turns = list(held)
    turn = 0
    for partition in partitions:
        while partition not in given:
            if turn >= len(turns):
                turn = 0
                if not turns:
                    raise AssignorThrows("PartitionAssignorException", "Inconsistent number of member IDs")
            # One more than the share, because hashes may collide.
            if len(held[turns[turn]]) <= most:
                held[turns[turn]].add(partition)
                given.add(partition)
                turn += 1
            else:
                del turns[turn]
    return held


def _unequal_4_1(view: CoordinatorView, before: dict[TopicPartition, list[str]]) -> dict[str, set[TopicPartition]]:
    of_topic = {topic: _assignable(view, [topic]) for topic in view.subscribed()}
    listed_ids = hash_order((member.member_id for member in view.members if member.topics), string_hash)
    partitions_of = {member_id: [each for topic in view.topics[member_id] for each in of_topic[topic]] for member_id in listed_ids}
    new: dict[TopicPartition, list[str]] = {}
    subscribers: dict[str, dict[str, None]] = {}
    for member_id, partitions in partitions_of.items():
        if partitions:
            new.setdefault(_by_hash(member_id, partitions), []).append(member_id)
        for topic in view.topics[member_id]:
            if of_topic[topic]:
                subscribers.setdefault(topic, {})[member_id] = None
    hashed = set(new)
    turns: dict[str, int] = {}
    for partition in (each for topic in subscribers for each in of_topic[topic]):
        if partition not in hashed and partition not in before:
            listed = list(subscribers[partition[0]])
            turn = turns.get(partition[0], 0)
            new.setdefault(partition, []).append(listed[turn % len(listed)])
            turns[partition[0]] = turn + 1
    held: dict[str, set[TopicPartition]] = {}
    for partition, members in new.items():
        for member_id in members:
            held.setdefault(member_id, set()).add(partition)
    for partition, members in before.items():
        for member_id in members:
            if member_id in subscribers.get(partition[0], ()) and partition not in new:
                held.setdefault(member_id, set()).add(partition)
    return held


def _by_hash(member_id: str, partitions: Sequence[TopicPartition]) -> TopicPartition:
    return partitions[abs(string_hash(member_id)) % len(partitions)]


def _assignable(view: CoordinatorView, topics: Sequence[str]) -> list[TopicPartition]:
    """Return the partitions of these topics with initialized share state."""
    assignable = view.spec.assignable
    return [(topic, number) for topic, number in view.partitions(topics) if assignable is None or number in assignable.get(topic, ())]


def _plan(view: CoordinatorView, held: dict[str, set[TopicPartition]]) -> GroupAssignment:
    by_topic: dict[str, dict[str, list[int]]] = {member.member_id: {} for member in view.members}
    for member_id, partitions in held.items():
        for topic, number in partitions:
            by_topic[member_id].setdefault(topic, []).append(number)
    return plan_of(by_topic)


def simple_4_2(spec: GroupSpec) -> GroupAssignment:
    """Assign as `simple` of the coordinator since 4.2."""
    view = CoordinatorView(spec)
    return _equal_4_2(view) if view.subscriptions_equal() else _unequal_4_2(view)


def _equal_4_2(view: CoordinatorView) -> GroupAssignment:
    ids = [member.member_id for member in view.members]
    topics = view.topics[ids[0]]
    if not topics:
        return plan_of({member_id: {} for member_id in ids})
    shares: _Shares[TopicPartition] = _Shares(_assignable(view, topics), list(range(len(ids))), view.record_hash)
    for position, member_id in enumerate(ids):
        shares.enter(position, _previous(view, member_id, topics))
    shares.run()
    return _plan(view, {ids[position]: set(partitions) for position, partitions in shares.held().items()})


def _unequal_4_2(view: CoordinatorView) -> GroupAssignment:
    ids = [member.member_id for member in view.members]
    held = {member_id: {topic: set(numbers) for topic, numbers in topics.items()} for member_id, topics in view.previous.items()}
    for topic in view.subscribed():
        members = [position for position, member_id in enumerate(ids) if topic in view.topics[member_id]]
        shares: _Shares[int] = _Shares([number for _, number in _assignable(view, [topic])], members, number_hash)
        for position, member_id in enumerate(ids):
            # Members that no longer subscribe count too: their share is zero, so they lose the topic.
            shares.enter(position, view.previous[member_id].get(topic, ()))
        shares.run()
        for position, member_id in enumerate(ids):
            held[member_id][topic] = set(shares.held().get(position, ()))
    return plan_of({member_id: {topic: list(numbers) for topic, numbers in topics.items()} for member_id, topics in held.items()})


def _previous(view: CoordinatorView, member_id: str, topics: Sequence[str]) -> list[TopicPartition]:
    return [(topic, number) for topic, numbers in view.previous[member_id].items() if topic in topics for number in numbers]


@dataclass(slots=True)
class _Shares(Generic[Key]):
    """Partitions shared evenly among members. A member is its position in hash order."""

    partitions: Sequence[Key]
    members: Sequence[int]
    hash_of: Callable[[Key], int]
    _sharing: int = field(init=False)
    _due: dict[int, int] = field(init=False)
    _by_partition: dict[Key, dict[int, None]] = field(init=False, default_factory=dict)
    _by_member: dict[int, dict[Key, None]] = field(init=False, default_factory=dict)
    #: The partitions that were looked up in the table of partitions, in order.
    _calls: list[Key] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        count, members = len(self.partitions), len(self.members)
        self._sharing = -(-members // count) if count else 0
        precise = self._sharing * count / members
        self._due = {
            position: ceil(precise * float(number + 1)) - ceil(precise * float(number)) for number, position in enumerate(self.members)
        }

    def held(self) -> dict[int, dict[Key, None]]:
        return self._by_member

    def enter(self, position: int, partitions: Sequence[Key]) -> None:
        """Enter the partitions that a member owned before, if any: each member once."""
        if partitions:
            self._calls += partitions
            self._by_member[position] = dict.fromkeys(partitions)
            for partition in partitions:
                self._by_partition.setdefault(partition, {})[position] = None

    def run(self) -> None:
        """Take partitions from members with too many, then members from partitions with too many, then fill up."""
        # A set of members that shrinks keeps its capacity.
        sizes = {partition: len(members) for partition, members in self._by_partition.items()}
        for position, partitions in self._by_member.items():
            surplus = len(partitions) > self._due.get(position, 0)
            for partition in hash_order(partitions, self.hash_of) if surplus else ():
                if len(partitions) <= self._due.get(position, 0):
                    break
                del partitions[partition]
                del self._by_partition[partition][position]
        for partition, members in self._by_partition.items():
            surplus = len(members) > self._sharing
            for position in hash_order(members, number_hash, grown_capacity(sizes[partition])) if surplus else ():
                if len(members) <= self._sharing:
                    break
                del members[position]
                del self._by_member[position][partition]
        self._fill()

    def _fill(self) -> None:
        for partition in self.partitions:
            self._by_partition.setdefault(partition, {})
        hungry = [position for position in self.members if len(self._by_member.get(position, ())) < self._due[position]]
        capacity = called_capacity([*self._calls, *self.partitions], capacity_for(int((len(self.partitions) + 1) / 0.75 + 1)))
        turn = 0
        for partition in hash_order(reversed(self._by_partition), self.hash_of, capacity):
            members = self._by_partition[partition]
            skipped = 0
            while len(members) < self._sharing and skipped < len(hungry):
                turn %= len(hungry)
                position = hungry[turn]
                turn += 1
                if position in members:
                    skipped += 1
                    continue
                skipped = 0
                members[position] = None
                self._by_member.setdefault(position, {})[partition] = None
                if len(self._by_member[position]) >= self._due[position]:
                    turn -= 1
                    del hungry[turn]
