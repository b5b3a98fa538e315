"""The `range` assignors of consumers and of the coordinator, and the `roundrobin` assignor of consumers.

`range` of consumers: every subscriber of a topic gets a range of its partitions.

    0.10 - 2.3   subscribers by member id
    2.4 - 3.4    static members first
    3.5 -        partitions to members in a rack of their replicas first; co-partitioned topics alike

`range` of the coordinator:

    3.7 - 3.8    sticky: members keep their lowest partitions of each topic, up to an equal share
    3.9 -        as that of consumers from 2.4 on

`roundrobin` gives the partitions of all topics to members in turn.

    0.10 - 2.3   members by member id
    2.4 -        static members first

Source: RangeAssignor and RoundRobinAssignor of the clients, Kafka 0.10 to 4.4; RangeAssignor of the group coordinator, Kafka 3.7 to 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from exhume.analysis.assignors.coordinator_view import CoordinatorView, Held, plan_of
from exhume.analysis.assignors.group import Assigned, GroupAssignment, GroupSpec, MemberSpec, TopicPartition, by_member_id, static_first
from exhume.analysis.assignors.java_order import hash_order, sort_key, string_hash
from exhume.analysis.assignors.racks import all_racks


def range_by_member_id(spec: GroupSpec) -> GroupAssignment:
    """Assign as `range` up to 2.3."""
    return _without_racks(spec, by_member_id)


def range_static_first(spec: GroupSpec) -> GroupAssignment:
    """Assign as `range` of 2.4 to 3.4."""
    return _without_racks(spec, static_first)


def range_of_coordinator(spec: GroupSpec) -> GroupAssignment:
    """Assign as `range` of the coordinator since 3.9."""
    return plan_of(_ranges(spec, static_first))


def _without_racks(spec: GroupSpec, order: Callable[[MemberSpec], Any]) -> GroupAssignment:
    ranges = _ranges(spec, order)
    topics = hash_order((topic for member in spec.in_hash_order() for topic in spec.known_topics(member)), string_hash)
    assigned: Assigned = {}
    for member in spec.members:
        held = ranges[member.member_id]
        assigned[member.member_id] = [(topic, partition) for topic in topics if topic in held for partition in held[topic]]
    return GroupAssignment(assigned)


def _ranges(spec: GroupSpec, order: Callable[[MemberSpec], Any]) -> dict[str, dict[str, range]]:
    """Return the range of each topic for each member. Topics with the same subscribers and as many partitions are handed out together."""
    members = sorted(spec.in_hash_order(), key=order)
    subscriptions: dict[tuple[str, ...], int] = {}
    places = [subscriptions.setdefault(member.topics, len(subscriptions)) for member in members]
    subscribed: dict[str, list[int]] = {}
    for topics, subscription in subscriptions.items():
        for topic in dict.fromkeys(topics):
            subscribed.setdefault(topic, []).append(subscription)
    alike: dict[tuple[int, frozenset[int]], list[str]] = {}
    for topic, found in subscribed.items():
        if count := spec.partition_counts.get(topic, 0):
            alike.setdefault((count, frozenset(found)), []).append(topic)
    ranges: dict[str, dict[str, range]] = {member.member_id: {} for member in members}
    for (count, those), listed in alike.items():
        subscribers = [member for member, subscription in zip(members, places, strict=True) if subscription in those]
        share, extras = divmod(count, len(subscribers))
        start = 0
        for place, member in enumerate(subscribers):
            end = start + share + (place < extras)
            ranges[member.member_id] |= dict.fromkeys(listed, range(start, end))
            start = end
    return ranges


def range_rack_aware(spec: GroupSpec) -> GroupAssignment:
    """Assign as `range` since 3.5."""
    assigned: Assigned = {member.member_id: [] for member in spec.members}
    stretches = _stretches(spec)
    uses_racks = any(stretch.racks_matter for stretch in stretches)
    if uses_racks:
        alike: dict[tuple[Any, ...], list[_Stretch]] = {}
        for stretch in stretches:
            alike.setdefault(stretch.shape, []).append(stretch)
        for group in alike.values():
            if len(group) > 1:
                _hand_out_alike(group, assigned)
            elif group[0].racks_matter:
                group[0].hand_out(assigned, in_rack=True)
    for stretch in stretches:
        stretch.hand_out(assigned)
    if uses_racks:
        for partitions in assigned.values():
            partitions.sort(key=lambda partition: (sort_key(partition[0]), partition[1]))
    return GroupAssignment(assigned)


def _stretches(spec: GroupSpec) -> list[_Stretch]:
    subscribers: dict[str, list[MemberSpec]] = {}
    for member in spec.in_hash_order():
        for topic in dict.fromkeys(spec.known_topics(member)):
            subscribers.setdefault(topic, []).append(member)
    return [
        _Stretch(spec, topic, sorted(subscribers[topic], key=static_first))
        for topic in hash_order(subscribers, string_hash)
        if spec.partition_counts[topic]
    ]


class _Stretch:
    """A topic during assignment: its unassigned partitions, and how many each subscriber may still take."""

    def __init__(self, spec: GroupSpec, topic: str, subscribers: Sequence[MemberSpec]) -> None:
        count = spec.partition_counts[topic]
        self.topic = topic
        self.subscribers = subscribers
        self.left = [(topic, partition) for partition in range(count)]
        self._racks = all_racks(spec, subscribers, [topic])
        self.racks_matter = self._racks.matter()
        #: Topics of the same shape are co-partitioned: the same subscribers and, if a subscriber has a rack, the same number of partitions.
        self.shape = (
            tuple((member.member_id, member.rack_id or None) for member in subscribers),
            count if self._racks.member_racks else 0,
        )
        self._even_share, self._extras = divmod(count, len(subscribers))
        self._taken = dict.fromkeys((member.member_id for member in subscribers), 0)

    def room(self, member: MemberSpec) -> int:
        """Return how many partitions this member may still take."""
        return max(0, self._even_share + (self._extras > 0) - self._taken[member.member_id])

    def fits(self, member: MemberSpec, partition: TopicPartition) -> bool:
        """True if a replica is in the member's rack, if the member has no rack, or if racks do not matter for this topic."""
        return not self._racks.mismatch(member.member_id, partition)

    def give(self, member: MemberSpec, partitions: Sequence[TopicPartition], assigned: Assigned) -> None:
        self._note(member, partitions, assigned)
        gone = set(partitions)
        self.left = [partition for partition in self.left if partition not in gone]

    def _note(self, member: MemberSpec, partitions: Sequence[TopicPartition], assigned: Assigned) -> None:
        if partitions:
            assigned[member.member_id] += partitions
            self._taken[member.member_id] += len(partitions)
            if self._taken[member.member_id] > self._even_share:
                self._extras -= 1

    def hand_out(self, assigned: Assigned, *, in_rack: bool = False) -> None:
        """Give every subscriber in turn its share of the unassigned partitions; with `in_rack`, only those that fit."""
        if in_rack:
            for member in self.subscribers:
                share = [partition for partition in self.left if self.fits(member, partition)][: self.room(member)]
                if share:
                    self.give(member, share, assigned)
            return
        start = 0
        for member in self.subscribers:
            share = self.left[start : start + self.room(member)]
            start += len(share)
            self._note(member, share, assigned)
        self.left = self.left[start:]


def _hand_out_alike(stretches: Sequence[_Stretch], assigned: Assigned) -> None:
    waiting = list(stretches[0].subscribers)
    for number in range(stretches[0].shape[1]):
        for member in waiting:
            if all(stretch.fits(member, (stretch.topic, number)) and stretch.room(member) > 0 for stretch in stretches):
                for stretch in stretches:
                    stretch.give(member, [(stretch.topic, number)], assigned)
                if not any(stretch.room(member) for stretch in stretches):
                    waiting.remove(member)
                break


def range_sticky(spec: GroupSpec) -> GroupAssignment:
    """Assign as `range` of the coordinators 3.7 and 3.8."""
    view = CoordinatorView(spec)
    held: dict[str, Held] = {member.member_id: {} for member in view.members}
    for topic in view.subscribed():
        subscribers = [member.member_id for member in view.members if topic in view.topics[member.member_id]]
        count = spec.partition_counts[topic]
        share, extras = divmod(count, len(subscribers))
        kept: set[int] = set()
        missing: dict[str, int] = {}
        for member_id in subscribers:
            before = sorted(view.previous[member_id].get(topic, ()))
            own = before[:share]
            if len(before) > share and extras:
                own = before[: share + 1]
                extras -= 1
            else:
                missing[member_id] = share - len(before)
            held[member_id][topic] = own
            kept.update(own)
        left = [partition for partition in range(count) if partition not in kept]
        for member_id, wanted in missing.items():
            if extras:
                extras -= 1
                wanted += 1
            if wanted > 0:
                held[member_id][topic] = [*held[member_id][topic], *left[:wanted]]
                left = left[wanted:]
    return plan_of(held)


def round_robin_by_member_id(spec: GroupSpec) -> GroupAssignment:
    """Assign as `roundrobin` up to 2.3."""
    return _dealt(spec, by_member_id)


def round_robin_static_first(spec: GroupSpec) -> GroupAssignment:
    """Assign as `roundrobin` since 2.4."""
    return _dealt(spec, static_first)


def _dealt(spec: GroupSpec, order: Callable[[MemberSpec], Any]) -> GroupAssignment:
    members = sorted(spec.in_hash_order(), key=order)
    topics = sorted({topic for member in members for topic in spec.known_topics(member)}, key=sort_key)
    subscriptions = [frozenset(member.topics) for member in members]
    assigned: Assigned = {member.member_id: [] for member in members}
    turn = 0
    for topic in topics:
        for partition in range(spec.partition_counts[topic]):
            while topic not in subscriptions[turn]:
                turn = (turn + 1) % len(members)
            assigned[members[turn].member_id].append((topic, partition))
            turn = (turn + 1) % len(members)
    return GroupAssignment(assigned)
