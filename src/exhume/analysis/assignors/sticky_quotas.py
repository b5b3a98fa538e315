"""The sticky assignors where all members subscribe to the same topics: every member gets the same number of partitions, or one more.

    2.5.1 - 2.8   `filled`: members keep up to the larger share; members below the smaller one are filled, at the end from the fullest
    3.0 -         `by_quotas`: a fixed number of members keep the larger share, the others the smaller; the rest goes out in turn

Source: AbstractStickyAssignor.constrainedAssign and ConstrainedAssignmentBuilder, Kafka 2.5.1 to 4.4.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from exhume.analysis.assignors.group import Assigned, AssignorThrows, GroupSpec, TopicPartition
from exhume.analysis.assignors.java_order import sort_key
from exhume.analysis.assignors.racks import RackView
from exhume.analysis.assignors.sticky_claims import Ownership, StickyVersion

#: Partitions that another member still has to release -> the member that waits for them.
Transfers = dict[TopicPartition, str]


def _every_partition(spec: GroupSpec) -> list[TopicPartition]:
    topics = sorted(spec.partition_counts, key=sort_key)
    return [(topic, partition) for topic in topics for partition in range(spec.partition_counts[topic])]


def filled(spec: GroupSpec, ownership: Ownership) -> tuple[Assigned, Transfers]:
    """Return the plan of 2.5.1 to 2.8."""
    partitions = _every_partition(spec)
    least, extras = divmod(len(partitions), len(ownership.owned))
    most = least + (extras > 0)
    left = dict.fromkeys(partitions)
    assigned: Assigned = {}
    transfers: Transfers = {}
    given_up = set(ownership.contested)
    hungry: list[str] = []
    at_most: deque[str] = deque()
    at_least: deque[str] = deque()
    for member_id, owned in ownership.owned.items():
        for partition in ownership.contested:
            if partition in owned:
                owned.remove(partition)
        kept = assigned[member_id] = owned[:most]
        for partition in kept:
            left.pop(partition, None)
        given_up.update(owned[most:])
        if len(owned) < least:
            hungry.append(member_id)
            continue
        if len(kept) == least:
            at_least.append(member_id)
        if len(kept) == most:
            at_most.append(member_id)

    def give(partition: TopicPartition, member_id: str) -> None:
        assigned[member_id].append(partition)
        if partition in given_up:
            transfers[partition] = member_id

    hungry.sort(key=sort_key)
    waiting = deque(left)
    while hungry and waiting:
        for member_id in list(hungry):
            if not waiting:
                break
            give(waiting.popleft(), member_id)
            if len(assigned[member_id]) == least:
                at_least.append(member_id)
                hungry.remove(member_id)
    for member_id in hungry:
        while len(assigned[member_id]) < least:
            if not at_most:
                raise AssignorThrows("IllegalStateException", "Some consumers are under capacity but all partitions have been assigned")
            taken = assigned[at_most.popleft()].pop(0)
            assigned[member_id].append(taken)
            transfers[taken] = member_id
        at_least.append(member_id)
    for partition in waiting:
        if not at_least:
            raise AssignorThrows("IllegalStateException", "Some partitions are unassigned but all consumers are at maximum capacity")
        give(partition, at_least.popleft())
    return assigned, transfers


def by_quotas(spec: GroupSpec, ownership: Ownership, version: StickyVersion, racks: RackView) -> tuple[Assigned, Transfers]:
    """Return the plan of 3.0 and later."""
    partitions = _every_partition(spec)
    least, extras = divmod(len(partitions), len(ownership.owned))
    shares = _Shares(ownership, version, racks, least, least + (extras > 0), extras)
    for member_id in ownership.owned:
        shares.keep(member_id)
    left = _not_kept(partitions, shares.assigned)
    shares.below.sort(key=sort_key)
    shares.may_take_one = deque(sorted(shares.may_take_one, key=sort_key))
    if racks.member_racks:
        left.sort(key=racks.members_in_racks)
        left = shares.deal_in_rack(left)
    shares.deal(left)
    shares.verify()
    return shares.assigned, shares.transfers


def _not_kept(partitions: list[TopicPartition], assigned: Assigned) -> list[TopicPartition]:
    """Return the partitions that no member keeps.

    As in Kafka, one pass compares both lists in step: after a kept partition that does not exist, every partition counts as free.
    """
    kept = iter(sorted((each for listed in assigned.values() for each in listed), key=lambda each: (sort_key(each[0]), each[1])))
    expected = next(kept, None)
    left = []
    for partition in partitions:
        if partition == expected:
            expected = next(kept, None)
        else:
            left.append(partition)
    return left


@dataclass(slots=True)
class _Shares:
    """The members by load: `below` the smaller share, or exactly at it and free to take one more."""

    ownership: Ownership
    version: StickyVersion
    racks: RackView
    least: int
    most: int
    extras: int
    over: int = 0
    assigned: Assigned = field(default_factory=dict)
    transfers: Transfers = field(default_factory=dict)
    below: list[str] = field(default_factory=list)
    may_take_one: deque[str] = field(default_factory=deque)
    _given_up: dict[TopicPartition, str] = field(default_factory=dict)

    def keep(self, member_id: str) -> None:
        """Let a member keep what it owns, up to its share."""
        owned = self.ownership.owned[member_id]
        fitting = [partition for partition in owned if not self.racks.mismatch(member_id, partition)]
        if self.version.sorts_owned:
            self._give_up(member_id, (partition for partition in owned if self.racks.mismatch(member_id, partition)))
            fitting.sort(key=lambda partition: (partition[1], sort_key(partition[0])))
        for partition in self.ownership.contested:
            if partition in fitting:
                fitting.remove(partition)
        if len(fitting) < self.least:
            self.assigned[member_id] = fitting
            self.below.append(member_id)
            return
        if len(fitting) >= self.most and self.over < self.extras:
            share = self.most
            self._one_more()
        else:
            share = self.least
            if self.over < self.extras:
                self.may_take_one.append(member_id)
        self.assigned[member_id] = fitting[:share]
        self._give_up(member_id, fitting[share:])

    def _give_up(self, member_id: str, partitions: Iterable[TopicPartition]) -> None:
        self._given_up.update(dict.fromkeys(partitions, member_id))

    def _one_more(self) -> None:
        self.over += 1
        if self.over == self.extras:
            self.may_take_one.clear()

    def deal_in_rack(self, left: list[TopicPartition]) -> list[TopicPartition]:
        """Give partitions to members in one of their racks. Returns the partitions that fit no member with room."""
        rest = []
        turn = 0
        for partition in left:
            position = self.racks.first_in_rack(partition, self.below, turn)
            if position is not None:
                member_id = self.below[position]
                turn = position + (not self._fill_in_rack(member_id))
                turn = turn % len(self.below) if self.below else 0
            else:
                position = self.racks.first_in_rack(partition, self.may_take_one, 0)
                if position is None:
                    rest.append(partition)
                    continue
                member_id = self.may_take_one[position]
                if len(self.assigned[member_id]) + 1 == self.most:
                    del self.may_take_one[position]
                    if self.version.sorts_owned:
                        self._one_more()
            self._give(partition, member_id)
        return rest

    def _fill_in_rack(self, member_id: str) -> bool:
        """Fill this member by one. True if that reaches the smaller share: the member is no longer below."""
        count = len(self.assigned[member_id]) + 1
        if count < self.least:
            return False
        self.below.remove(member_id)
        if count < self.most and (self.over < self.extras or not self.version.sorts_owned):
            self.may_take_one.append(member_id)
        return True

    def deal(self, left: list[TopicPartition]) -> None:
        """Give out the rest in turn: to members below their share, then one each to members that may take one."""
        turn = 0
        for partition in left:
            if turn >= len(self.below):
                turn = 0
            if self.below:
                member_id = self.below[turn]
                turn += 1
            elif self.may_take_one:
                member_id = self.may_take_one.popleft()
            else:
                raise AssignorThrows("IllegalStateException", "No more unfilled consumers to be assigned.")
            self._give(partition, member_id)
            count = len(self.assigned[member_id])
            if count == self.least:
                turn -= 1
                del self.below[turn]
                self.may_take_one.append(member_id)
            elif count == self.most:
                self.over += 1

    def _give(self, partition: TopicPartition, member_id: str) -> None:
        self.assigned[member_id].append(partition)
        owner = self._given_up.get(partition)
        is_anothers = owner is not None and (owner != member_id or not self.version.sorts_owned)
        if is_anothers or partition in self.ownership.contested:
            self.transfers[partition] = member_id

    def verify(self) -> None:
        """Run Kafka's own check that every member has its share."""
        if not self.below:
            return
        if self.over != self.extras:
            reason = "We haven't reached the expected number of members with more than the minQuota partitions"
            raise AssignorThrows("IllegalStateException", reason)
        for member_id in self.below:
            if len(self.assigned[member_id]) != self.least:
                reason = f"Consumer: [{member_id}] doesn't reach minQuota partitions, and no more partitions to be assigned"
                raise AssignorThrows("IllegalStateException", reason)
