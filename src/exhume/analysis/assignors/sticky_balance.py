"""The sticky assignors where subscriptions differ (up to 2.5.0: always): keep what is valid, then move partitions until balanced.

Source: AbstractStickyAssignor.generalAssign and GeneralAssignmentBuilder, Kafka 2.4 to 4.4.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping, Sequence

from exhume.analysis.assignors.group import Assigned, AssignorThrows, GroupSpec, MemberSpec, TopicPartition
from exhume.analysis.assignors.java_order import grown_capacity, hash_order, partition_hash, sort_key
from exhume.analysis.assignors.racks import RackView


class Balance:
    """An assignment while it is balanced.

    Attributes:
        held: member id -> its partitions, in the order in which it got them.
        holder: partition -> its member, as the assignor remembers it.
    """

    def __init__(self, spec: GroupSpec, members: Sequence[MemberSpec], held: Assigned, racks: RackView, *, tolerates_one: bool) -> None:
        self.held = held
        self.holder = {partition: member_id for member_id, partitions in held.items() for partition in partitions}
        self._counts = spec.partition_counts
        self._racks = racks
        self._tolerance = 1 if tolerates_one else 0
        self._topics = {member.member_id: spec.known_topics(member) for member in members}
        self._subscribers: dict[str, list[str]] = {topic: [] for topic in spec.partition_counts}
        for member_id, topics in self._topics.items():
            for topic in topics:
                self._subscribers[topic].append(member_id)
        self._by_size: list[tuple[int, bytes, str]] = []
        self._moved = _Moves()
        self._is_balanced: bool | None = None

    def every_partition(self) -> list[TopicPartition]:
        """Return every partition, those of topics with few subscribers first."""
        topics = sorted(self._subscribers, key=lambda topic: (len(self._subscribers[topic]), sort_key(topic)))
        return [(topic, partition) for topic in topics for partition in range(self._counts[topic])]

    def partition_order(self, partition: TopicPartition) -> tuple[int, bytes, int]:
        """Return the sort key of `every_partition`."""
        return len(self._subscribers[partition[0]]), sort_key(partition[0]), partition[1]

    def run(
        self,
        everything: Sequence[TopicPartition],
        unassigned: Sequence[TopicPartition],
        previous: Mapping[TopicPartition, str],
        *,
        revokes: bool,
    ) -> Assigned:
        """Assign the `unassigned` partitions, then move partitions of `everything`. `previous` maps partitions to owners of older
        generations.

        `revokes`: a member lost a partition that it may not keep; then new partitions are not balanced separately first.
        """
        self._by_size = sorted(self._place(member_id) for member_id in self.held)
        began_empty = self._by_size[-1][0] == 0
        self._hand_out(unassigned)

        shared = {topic for topic, subscribers in self._subscribers.items() if len(subscribers) >= 2}
        movable = [partition for partition in everything if partition[0] in shared]
        aside = {member_id: self.held.pop(member_id) for member_id in self._topics if not self._takes_part(member_id, shared)}
        self._by_size = sorted(self._place(member_id) for member_id in self.held)
        held_before = {member_id: list(partitions) for member_id, partitions in self.held.items()}
        if not revokes:
            self._move([partition for partition in unassigned if partition[0] in shared], previous)
        moved = self._move(movable, previous)
        if moved and not began_empty and _spread(self.held) >= _spread(held_before):
            self.held = held_before
        ended = self.held | aside
        return {member_id: ended[member_id] for member_id in self._topics}

    def _place(self, member_id: str) -> tuple[int, bytes, str]:
        return len(self.held[member_id]), sort_key(member_id), member_id

    def _hand_out(self, unassigned: Sequence[TopicPartition]) -> None:
        rest = unassigned
        if self._racks.member_racks:
            rest = [partition for partition in unassigned if not self._give_to_smallest(partition, in_rack=True)]
        for partition in rest:
            self._give_to_smallest(partition, in_rack=False)

    def _give_to_smallest(self, partition: TopicPartition, *, in_rack: bool) -> bool:
        for place in self._by_size:
            member_id = place[2]
            if partition[0] in self._topics[member_id] and not (in_rack and self._racks.mismatch(member_id, partition)):
                self._by_size.remove(place)
                self.held[member_id].append(partition)
                self.holder[partition] = member_id
                insort(self._by_size, self._place(member_id))
                return True
        return False

    def _takes_part(self, member_id: str, shared: Collection[str]) -> bool:
        partitions = self.held[member_id]
        return len(partitions) < self._room(member_id) or any(topic in shared for topic, _ in partitions)

    def _room(self, member_id: str) -> int:
        """Return the most partitions that a member could own."""
        topics = self._topics[member_id]
        return sum(self._counts.values()) if len(topics) == len(self._counts) else sum(self._counts[topic] for topic in topics)

    def _size(self, member_id: str | None) -> int:
        if member_id is None or member_id not in self.held:
            raise AssignorThrows("NullPointerException", "the owner of a partition does not take part in balancing")
        return len(self.held[member_id])

    def _move(self, partitions: Sequence[TopicPartition], previous: Mapping[TopicPartition, str]) -> bool:
        moved_any = False
        while True:
            moved = False
            for partition in partitions:
                if self._balanced():
                    break
                moved |= self._better(partition, previous)
            if not moved:
                return moved_any
            moved_any = True

    def _better(self, partition: TopicPartition, previous: Mapping[TopicPartition, str]) -> bool:
        """Move a partition where that improves the balance: to a previous owner, or to the smallest member that subscribes to its topic."""
        holder = self.holder.get(partition)
        if partition in previous and self._size(holder) > self._size(previous[partition]) + 1:
            # Kafka does not check that the previous owner still subscribes to the topic.
            self._reassign(partition, previous[partition])
            return True
        subscribers = self._subscribers[partition[0]]
        racks = self._racks.partition_racks.get(partition, frozenset())
        candidates = subscribers
        if holder is not None and self._racks.member_racks.get(holder) in racks:
            candidates = [*(other for other in subscribers if self._racks.member_racks.get(other) in racks), *subscribers]
        for other in candidates:
            if self._size(holder) > self._size(other) + 1:
                self._reassign(partition, next(place[2] for place in self._by_size if partition[0] in self._topics[place[2]]))
                return True
        return False

    def _reassign(self, wanted: TopicPartition, to: str) -> None:
        partition = self._moved.instead_of(wanted, self.holder[wanted], to)
        source = self.holder[partition]
        self._size(source)
        for member_id in {source, to}:
            del self._by_size[bisect_left(self._by_size, self._place(member_id))]
        self._moved.note(partition, source, to)
        if partition in self.held[source]:
            self.held[source].remove(partition)
        self.held[to].append(partition)
        self.holder[partition] = to
        for member_id in {source, to}:
            insort(self._by_size, self._place(member_id))
        self._is_balanced = None

    def _balanced(self) -> bool:
        if self._is_balanced is None:
            self._is_balanced = self._find_balanced()
        return self._is_balanced

    def _find_balanced(self) -> bool:
        if self._by_size[0][0] >= self._by_size[-1][0] - 1:
            return True
        holders = {partition: member_id for member_id, partitions in self.held.items() for partition in partitions}
        for size, _, member_id in self._by_size:
            if size == self._room(member_id):
                continue
            own = set(self.held[member_id])
            for topic in self._topics[member_id]:
                for number in range(self._counts[topic]):
                    partition = (topic, number)
                    if partition not in own and self._size(holders.get(partition)) > size + self._tolerance:
                        return False
        return True


class _Moves:
    """The moves of this run. If a move reverses another one of the same topic, that partition moves back instead."""

    def __init__(self) -> None:
        self._route: dict[TopicPartition, tuple[str, str]] = {}
        self._by_topic: dict[str, dict[tuple[str, str], dict[TopicPartition, None]]] = {}
        # Java's sets do not shrink: the most keys they ever held decide their order.
        self._largest: dict[tuple[str, tuple[str, str]], int] = {}

    def instead_of(self, partition: TopicPartition, source: str, to: str) -> TopicPartition:
        """Return the partition to move from `source` to `to`: this one, or one of its topic that moved the opposite way."""
        origin = self._route[partition][0] if partition in self._route else source
        reverse = self._by_topic.get(partition[0], {}).get((to, origin))
        if not reverse:
            return partition
        capacity = grown_capacity(self._largest[partition[0], (to, origin)])
        return hash_order(reverse, partition_hash, capacity)[0]

    def note(self, partition: TopicPartition, source: str, to: str) -> None:
        topic = partition[0]
        routes = self._by_topic.setdefault(topic, {})
        if partition in self._route:
            known = self._route.pop(partition)
            del routes[known][partition]
            if not routes[known]:
                del routes[known]
                del self._largest[topic, known]
            source = known[0]
            if source == to:
                return
        self._route[partition] = (source, to)
        there = routes.setdefault((source, to), {})
        there[partition] = None
        self._largest[topic, (source, to)] = max(self._largest.get((topic, (source, to)), 0), len(there))


def _spread(held: Assigned) -> int:
    """Return the sum of the differences of all pairs of sizes."""
    sizes = sorted(len(partitions) for partitions in held.values())
    return sum(size * (2 * position - len(sizes) + 1) for position, size in enumerate(sizes))
