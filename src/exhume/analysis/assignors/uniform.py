"""The `uniform` assignor of the coordinator, version by version, and its method where all members subscribe to the same topics.

    3.7         members keep an equal share, plus one while there are extras; the rest goes out in turn, first to members in its rack
    3.8 - 3.9   one more for the first members in hash order; members below their share are filled up, one after the other;
                unequal subscriptions: partitions are moved
    4.0         unequal subscriptions: loads are levelled topic by topic
    4.1 -       a member keeps its extra partition; other extras go to the last members in hash order (KAFKA-18688)

Source: UniformAssignor, OptimizedUniformAssignmentBuilder (3.7) and UniformHomogeneousAssignmentBuilder, Kafka 3.7 to 4.4.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from exhume.analysis.assignors.coordinator_view import CoordinatorView, Held, plan_of
from exhume.analysis.assignors.group import AssignorThrows, GroupAssignment, GroupSpec, TopicPartition
from exhume.analysis.assignors.java_order import copied_set_capacity, grown_capacity, hash_order, string_hash
from exhume.analysis.assignors.racks import ServerRacks
from exhume.analysis.assignors.uniform_unequal import levelled, moved_about


def uniform_3_7(spec: GroupSpec) -> GroupAssignment:
    """Assign as `uniform` of the coordinator 3.7. Topic names that do not exist do not make subscriptions differ."""
    view = CoordinatorView(spec)
    known = [set(topics) for topics in view.topics.values()]
    return dealt_in_turn(view) if all(topics == known[0] for topics in known) else moved_about(view, rack_aware=True)


def uniform_3_8(spec: GroupSpec) -> GroupAssignment:
    """Assign as `uniform` of the coordinators 3.8 and 3.9."""
    view = CoordinatorView(spec)
    return filled_one_by_one(view, keeps_extras=False) if view.subscriptions_equal() else moved_about(view, rack_aware=False)


def uniform_4_0(spec: GroupSpec) -> GroupAssignment:
    """Assign as `uniform` of the coordinator 4.0."""
    view = CoordinatorView(spec)
    return filled_one_by_one(view, keeps_extras=False) if view.subscriptions_equal() else levelled(view)


def uniform_4_1(spec: GroupSpec) -> GroupAssignment:
    """Assign as `uniform` of the coordinator since 4.1."""
    view = CoordinatorView(spec)
    return filled_one_by_one(view, keeps_extras=True) if view.subscriptions_equal() else levelled(view)


def filled_one_by_one(view: CoordinatorView, *, keeps_extras: bool) -> GroupAssignment:
    """Return the targets of 3.8 and later; with `keeps_extras`, those of 4.1 and later."""
    topics = view.topics[view.members[0].member_id]
    if not topics:
        return plan_of({member.member_id: {} for member in view.members})
    left = _Left(view, hash_order(topics, view.topic_hash, copied_set_capacity(len(topics))))
    share, extras = divmod(sum(view.spec.partition_counts[topic] for topic in topics), len(view.members))
    held: dict[str, dict[str, Sequence[int]]] = {}
    room: dict[str, int] = {}
    for position, member in enumerate(view.members):
        quota = share + (extras > 0)
        own: dict[str, Sequence[int]] = {}
        for topic, partitions in view.previous[member.member_id].items():
            if topic in left.topics:
                own[topic] = partitions[:quota]
                left.add(topic, partitions[quota:])
                quota -= len(own[topic])
        if extras > 0:
            if keeps_extras and quota and len(view.members) - position > extras:
                quota -= 1
            else:
                extras -= 1
        held[member.member_id] = own
        room[member.member_id] = quota
    for member_id, quota in room.items():
        own = held[member_id]
        for topic, taken in left.take(quota):
            own[topic] = [*own[topic], *taken] if topic in own else taken
    if left:
        raise AssignorThrows("PartitionAssignorException", "Partitions were left unassigned")
    return plan_of(held)


class _Left:
    """The partitions of these topics that no member has, in order, as runs of one topic."""

    def __init__(self, view: CoordinatorView, topics: Sequence[str]) -> None:
        self.topics = frozenset(topics)
        self._runs: deque[tuple[str, Sequence[int]]] = deque()
        taken: dict[str, list[Sequence[int]]] = {}
        for held in view.previous.values():
            for topic, partitions in held.items():
                taken.setdefault(topic, []).append(partitions)
        for topic in topics:
            every = range(view.spec.partition_counts[topic])
            self.add(topic, sorted(set(every).difference(*taken[topic])) if topic in taken else every)

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, topic: str, partitions: Sequence[int]) -> None:
        if partitions:
            self._runs.append((topic, partitions))

    def take(self, count: int) -> Iterator[tuple[str, Sequence[int]]]:
        """Yield up to `count` partitions from the front."""
        while count > 0 and self._runs:
            topic, partitions = self._runs.popleft()
            if len(partitions) > count:
                self._runs.appendleft((topic, partitions[count:]))
            yield topic, partitions[:count]
            count -= len(partitions)


def dealt_in_turn(view: CoordinatorView) -> GroupAssignment:
    """Return the targets of 3.7."""
    deal = _Deal(view)
    if deal.topics:
        deal.keep()
        if deal.racks.matter:
            deal.give_in_rack()
        deal.give_in_turn()
    return plan_of(deal.held)


class _Deal:
    def __init__(self, view: CoordinatorView) -> None:
        self.view = view
        self.topics = view.topics[view.members[0].member_id]
        self.racks = ServerRacks(view, self.topics)
        self.held: dict[str, Held] = {member.member_id: {} for member in view.members}
        self._left = dict.fromkeys(view.partitions(self.topics))
        self._share, self._extras = divmod(len(self._left), len(view.members))
        self._room: dict[str, int] = {}
        self._capacity = 0
        self._owner_elsewhere: dict[TopicPartition, str] = {}

    def keep(self) -> None:
        for member in self.view.members:
            fitting = []
            for topic, partitions in self.view.previous[member.member_id].items():
                for partition in partitions if topic in self.topics else ():
                    if self.racks.matter and self.racks.mismatch(member.member_id, (topic, partition)):
                        self._owner_elsewhere[topic, partition] = member.member_id
                    else:
                        fitting.append((topic, partition))
            kept = fitting[: self._share]
            if len(fitting) > self._share and self._extras:
                kept = fitting[: self._share + 1]
                self._extras -= 1
            for each in kept:
                self._give(member.member_id, each)
            if len(fitting) <= self._share:
                self._room[member.member_id] = self._share - len(fitting)
        # Java's table does not shrink when members leave it.
        self._capacity = grown_capacity(len(self._room))

    def give_in_rack(self) -> None:
        for partition in self.racks.by_members_in_rack(self._left):
            for member_id in self.racks.members_near(partition, self.held):
                if member_id in self._room and self._take(member_id, partition):
                    break

    def give_in_turn(self) -> None:
        turns = deque(hash_order(self._room, string_hash, self._capacity))
        for partition in sorted(self._left, key=lambda each: (self.view.topic_order(each[0]), each[1])):
            owner = self._owner_elsewhere.get(partition)
            given = False
            if owner in self._room:
                given = self._take(owner, partition)
                if owner not in self._room and owner in turns:
                    turns.remove(owner)
            tried = 0
            while not given and tried < len(turns):
                member_id = turns.popleft()
                given = member_id in self._room and self._take(member_id, partition)
                if member_id in self._room:
                    turns.append(member_id)
                tried += 1
        if self._left:
            raise AssignorThrows("PartitionAssignorException", "Partitions were left unassigned")

    def _take(self, member_id: str, partition: TopicPartition) -> bool:
        room = self._room[member_id]
        if room > 0:
            self._room[member_id] = room - 1
            if room == 1 and not self._extras:
                del self._room[member_id]
        elif self._extras:
            self._extras -= 1
            del self._room[member_id]
        else:
            return False
        self._give(member_id, partition)
        return True

    def _give(self, member_id: str, partition: TopicPartition) -> None:
        self.held[member_id].setdefault(partition[0], []).append(partition[1])
        self._left.pop(partition, None)
