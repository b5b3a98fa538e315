"""The `uniform` assignor of the coordinator where subscriptions differ.

    3.7 - 3.9   assign each partition, then move partitions; in 3.7 racks count
    4.0 -       level loads topic by topic

Source: GeneralUniformAssignmentBuilder (3.7) and UniformHeterogeneousAssignmentBuilder, Kafka 3.8 to 4.4.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from exhume.analysis.assignors.coordinator_view import CoordinatorView, Held, plan_of
from exhume.analysis.assignors.group import AssignorThrows, GroupAssignment, TopicPartition
from exhume.analysis.assignors.java_order import copied_set_capacity, grown_capacity, hash_order, sort_key
from exhume.analysis.assignors.racks import ServerRacks

_SWEEPS = 16


def levelled(view: CoordinatorView) -> GroupAssignment:
    """Return the targets of 4.0 and later."""
    levels = _Levels(view)
    if levels.topics:
        levels.keep()
        levels.fill()
        levels.balance()
    return plan_of(levels.held())


class _Levels:
    """The owner of each partition, as the position of a member in hash order; None without an owner."""

    def __init__(self, view: CoordinatorView) -> None:
        self._view = view
        self._counts = view.spec.partition_counts
        self._subscribers: dict[str, list[int]] = {}
        for position, member in enumerate(view.members):
            for topic in view.topics[member.member_id]:
                self._subscribers.setdefault(topic, []).append(position)
        self.topics = sorted(self._subscribers, key=self._topic_order)
        self._owner: dict[str, list[int | None]] = {topic: [None] * self._counts[topic] for topic in self.topics}
        self._sizes = [0] * len(view.members)

    def _topic_order(self, topic: str) -> tuple[float, int, tuple[int, int]]:
        subscribers = len(self._subscribers[topic])
        return -(self._counts[topic] / subscribers), subscribers, self._view.topic_order(topic)

    def held(self) -> dict[str, Held]:
        held: dict[str, Held] = {member.member_id: {} for member in self._view.members}
        for topic, owners in self._owner.items():
            for partition, owner in enumerate(owners):
                if owner is not None:
                    held[self._view.members[owner].member_id].setdefault(topic, []).append(partition)
        return held

    def keep(self) -> None:
        """Let every member keep its partitions of topics that it still subscribes to."""
        for position, member in enumerate(self._view.members):
            for topic, partitions in self._view.previous[member.member_id].items():
                if topic in self._view.topics[member.member_id]:
                    self._sizes[position] += len(partitions)
                    for partition in partitions:
                        if partition >= self._counts[topic]:
                            raise AssignorThrows("ArrayIndexOutOfBoundsException", f"{topic} has no partition {partition}")
                        self._owner[topic][partition] = position

    def fill(self) -> None:
        """Give partitions without an owner to the subscribers with the fewest."""
        for topic in self.topics:
            ladder = _Ladder(self._sizes, self._subscribers[topic])
            for partition, owner in enumerate(self._owner[topic]):
                if owner is None:
                    self._assign(topic, partition, ladder.next_least())

    def balance(self) -> None:
        """Sweep over the topics until a sweep changes nothing, or the limit of sweeps is reached."""
        shared = [topic for topic in self.topics if len(self._subscribers[topic]) >= 2]
        last_change: int | None = None
        for _ in range(_SWEEPS):
            for position, topic in enumerate(shared):
                if position == last_change:
                    return
                if self._balance_topic(topic) or last_change is None:
                    last_change = position

    def _balance_topic(self, topic: str) -> bool:
        subscribers = self._subscribers[topic]
        sizes = [self._sizes[position] for position in subscribers]
        if max(sizes) - min(sizes) <= 1:
            return False
        spare: dict[int | None, list[int]] = {}
        for partition, owner in enumerate(self._owner[topic]):
            spare.setdefault(owner, []).append(partition)
        ladder = _Ladder(self._sizes, subscribers)
        moved = False
        while not ladder.is_level():
            giver = ladder.next_most()
            while giver is not None and not spare.get(giver):
                ladder.exclude_most()
                giver = ladder.next_most()
            if giver is None:
                break
            partition = spare[giver].pop()
            taker = ladder.next_least()
            if ladder.is_level():
                break
            self._assign(topic, partition, taker)
            moved = True
        return moved

    def _assign(self, topic: str, partition: int, position: int) -> None:
        owner = self._owner[topic][partition]
        if owner is not None:
            self._sizes[owner] -= 1
        self._owner[topic][partition] = position
        self._sizes[position] += 1


class _Ladder:
    """The subscribers of a topic by load, used from both ends: the least loaded take a partition, the most loaded give one.

    `_low` and `_high` are the loads at both ends. Members between them still have their first load; members at an end take turns.
    """

    def __init__(self, sizes: Sequence[int], members: Sequence[int]) -> None:
        self._sizes = sizes
        self._members = sorted(members, key=lambda position: (sizes[position], position))
        self._low_end = 0
        self._low = sizes[self._members[0]] - 1
        self._next_low = 0
        self._high_start = self._high_end = len(self._members)
        self._high = sizes[self._members[-1]] + 1
        self._next_high = len(self._members) - 1

    def is_level(self) -> bool:
        return self._high - self._low <= 1

    def next_least(self) -> int:
        """Return the member that takes the next partition."""
        if self._next_low >= self._low_end:
            self._low += 1
            while self._low_end < len(self._members) and self._sizes[self._members[self._low_end]] == self._low:
                self._low_end += 1
            self._next_low = 0
        self._next_low += 1
        return self._members[self._next_low - 1]

    def next_most(self) -> int | None:
        """Return the member that gives the next partition; None if no member is left."""
        if self._next_high < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                self._high = self._sizes[self._members[self._high_start - 1]]
            else:
                self._high -= 1
            while self._high_start > 0 and self._sizes[self._members[self._high_start - 1]] == self._high:
                self._high_start -= 1
            self._next_high = self._high_end - 1
        if self._next_high < 0:
            return None
        self._next_high -= 1
        return self._members[self._next_high + 1]

    def exclude_most(self) -> None:
        """Exclude the last member from `next_most`: it has no partition to give."""
        self._high_end -= 1
        excluded, last = self._next_high + 1, self._high_end
        self._members[excluded], self._members[last] = self._members[last], self._members[excluded]


def moved_about(view: CoordinatorView, *, rack_aware: bool) -> GroupAssignment:
    """Return the targets of 3.8 and 3.9; with `rack_aware`, those of 3.7."""
    moving = _Moving(view, rack_aware=rack_aware)
    if moving.topics:
        moving.keep()
        moving.give_away()
        moving.balance()
    return plan_of(moving.held)


class _Moving:
    def __init__(self, view: CoordinatorView, *, rack_aware: bool) -> None:
        self._view = view
        self._counts = view.spec.partition_counts
        self._subscribers: dict[str, list[str]] = {}
        for member in view.members:
            for topic in view.topics[member.member_id]:
                self._subscribers.setdefault(topic, []).append(member.member_id)
        self.topics = hash_order(self._subscribers, view.topic_hash)
        # 3.7 has no target for a member whose topics do not exist, and fails on it.
        self.held: dict[str, Held] = {member.member_id: {} for member in view.members if view.topics[member.member_id] or not rack_aware}
        self._racks = ServerRacks(view, self.topics) if rack_aware else None
        self._uses_racks = self._racks is not None and self._racks.matter
        listed = view.partitions(self.topics)
        self._all = hash_order(listed, view.partition_hash, grown_capacity(len(listed)))
        if rack_aware:
            self._all = hash_order(self._all, view.partition_hash, copied_set_capacity(len(listed)))
        self._left = dict.fromkeys(self._all)
        self._sizes = {member.member_id: 0 for member in view.members}
        self._most = {member_id: sum(self._counts[topic] for topic in topics) for member_id, topics in view.topics.items()}
        self._owner: dict[TopicPartition, str] = {}
        self._owner_elsewhere: dict[TopicPartition, str] = {}
        self._kept: set[TopicPartition] = set()
        #: The members that can still take a partition, by size.
        self._open = sorted(self._place(member_id) for member_id in self._sizes if self._has_room(member_id))
        self._moves: dict[TopicPartition, tuple[str, str]] = {}

    def _place(self, member_id: str) -> tuple[int, bytes, str]:
        return self._sizes[member_id], sort_key(member_id), member_id

    def _has_room(self, member_id: str) -> bool:
        return self._sizes[member_id] < self._most[member_id]

    def keep(self) -> None:
        for member in self._view.members:
            for topic, partitions in self._view.previous[member.member_id].items():
                for partition in partitions if topic in self._view.topics[member.member_id] else ():
                    each = (topic, partition)
                    if self._uses_racks and self._racks is not None and self._racks.mismatch(member.member_id, each):
                        self._owner_elsewhere[each] = member.member_id
                    else:
                        self._give(each, member.member_id)
                        self._kept.add(each)

    def give_away(self) -> None:
        if self._uses_racks and self._racks is not None:
            for partition in self._racks.by_members_in_rack(self._left):
                for member_id in self._racks.members_near(partition, self.held):
                    if self._try(partition, member_id):
                        break
        for partition in sorted(self._left, key=self._order):
            owner = self._owner_elsewhere.get(partition)
            if owner is not None and self._try(partition, owner):
                continue
            taker = self._smallest_open(partition[0])
            if taker is not None:
                self._give(partition, taker)
        if self._left:
            raise AssignorThrows("PartitionAssignorException", "Some partitions were left unassigned")

    def _order(self, partition: TopicPartition) -> tuple[float, int, int]:
        subscribers = len(self._subscribers[partition[0]])
        return -(self._counts[partition[0]] / subscribers), subscribers, partition[1]

    def _try(self, partition: TopicPartition, member_id: str) -> bool:
        if partition[0] not in self._view.topics[member_id] or not self._has_room(member_id):
            return False
        self._give(partition, member_id)
        return True

    def _smallest_open(self, topic: str) -> str | None:
        """Return the smallest member that subscribes to this topic and can take a partition."""
        return next((place[2] for place in self._open if topic in self._view.topics[place[2]]), None)

    def _give(self, partition: TopicPartition, member_id: str) -> None:
        listed = self.held[member_id].setdefault(partition[0], [])
        if partition[1] not in listed:
            listed.append(partition[1])
        self._owner[partition] = member_id
        self._resize(member_id, 1)
        self._left.pop(partition, None)

    def _take(self, partition: TopicPartition, member_id: str) -> None:
        listed = self.held[member_id].get(partition[0])
        if listed is not None:
            if partition[1] in listed:
                listed.remove(partition[1])
            if not listed:
                del self.held[member_id][partition[0]]
        if self._owner.get(partition) == member_id:
            del self._owner[partition]
        self._resize(member_id, -1 if self._sizes[member_id] else 0)

    def _resize(self, member_id: str, change: int) -> None:
        self._close(member_id)
        self._sizes[member_id] += change
        if self._has_room(member_id):
            insort(self._open, self._place(member_id))

    def _close(self, member_id: str) -> None:
        place = self._place(member_id)
        position = bisect_left(self._open, place)
        if position < len(self._open) and self._open[position] == place:
            del self._open[position]

    def balance(self) -> None:
        shared = {topic for topic, subscribers in self._subscribers.items() if len(subscribers) >= 2}
        for member in self._view.members:
            if member.member_id not in self.held:
                raise AssignorThrows("NullPointerException", f"none of the topics of member {member.member_id} exists")
            if not self._has_room(member.member_id) and not any(topic in shared for topic in self.held[member.member_id]):
                self._close(member.member_id)
        # A moved partition leaves the list of the next round.
        self._left = dict.fromkeys(partition for partition in self._all if partition[0] in shared)
        modified = bool(self._left)
        while modified:
            modified = reassigned = False
            for partition in sorted(self._left, key=self._order):
                if reassigned and self._is_balanced():
                    return
                reassigned = self._better(partition)
                modified |= reassigned

    def _is_balanced(self) -> bool:
        if not self._open:
            raise AssignorThrows("NoSuchElementException", "no member can take another partition")
        if self._open[0][0] >= self._open[-1][0] - 1:
            return True
        for size, _, member_id in self._open:
            for topic in self._view.topics[member_id]:
                own = self.held[member_id].get(topic, ())
                for partition in range(self._counts[topic]):
                    if partition not in own and self._size(self._owner.get((topic, partition))) > size + 1:
                        return False
        return True

    def _size(self, member_id: str | None) -> int:
        return 0 if member_id is None else self._sizes[member_id]

    def _better(self, partition: TopicPartition) -> bool:
        owner = self._owner.get(partition)
        if owner is None:
            raise AssignorThrows("PartitionAssignorException", f"Expected topicIdPartition '{partition}' to be assigned to a member")
        if self._uses_racks and self._racks is not None:
            racks = self._racks.racks_of(partition)
            if self._racks.rack_of(owner) in racks:
                can_take = {place[2] for place in self._open}
                for other in self._racks.members_near(partition, self.held):
                    if other in can_take and self._sizes[owner] > self._sizes[other] + 1:
                        self._reassign(partition, other)
                        return True
            before = self._owner_elsewhere.get(partition)
            if before is not None and partition not in self._kept and self._sizes[owner] > self._sizes[before] + 1:
                self._reassign(partition, before)
                return True
        if self._sizes[owner] <= min(self._sizes.values()) + 1:
            return False
        if any(self._sizes[owner] > self._sizes[other] + 1 for other in self._subscribers[partition[0]]):
            taker = self._smallest_open(partition[0])
            if taker is None:
                raise AssignorThrows("PartitionAssignorException", f"No suitable new owner was found for the partition{partition}")
            self._reassign(partition, taker)
            return True
        return False

    def _reassign(self, wanted: TopicPartition, to: str) -> None:
        partition = self._instead_of(wanted, self._owner[wanted], to)
        source = self._owner[partition]
        known = self._moves.pop(partition, None)
        if known is None:
            self._moves[partition] = (source, to)
        elif known[1] == source:
            # Kafka's check is inverted: a partition that moves for the second time makes it throw.
            reason = "Mismatch in partition movement record with respect to partition ownership during a rebalance"
            raise AssignorThrows("PartitionAssignorException", reason)
        elif known[0] != to:
            self._moves[partition] = (known[0], to)
        self._take(partition, source)
        self._give(partition, to)

    def _instead_of(self, partition: TopicPartition, source: str, to: str) -> TopicPartition:
        if partition in self._moves:
            origin, at = self._moves[partition]
            if at != source:
                raise AssignorThrows("PartitionAssignorException", f"Old owner does not match expected value for partition: {partition}")
            source = origin
        reverse = [each for each, move in self._moves.items() if each[0] == partition[0] and move == (to, source)]
        return hash_order(reverse, self._view.partition_hash)[0] if reverse else partition
