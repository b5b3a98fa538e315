"""The `uniform` assignor of the coordinator since 4.0 where subscriptions differ: it levels loads topic by topic.

Source: UniformHeterogeneousAssignmentBuilder, Kafka 4.0 to 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from exhume.analysis.assignors.coordinator_view import CoordinatorView, Held, plan_of
from exhume.analysis.assignors.group import AssignorThrows, GroupAssignment

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
