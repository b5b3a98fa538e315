"""When racks matter, and which members are in the rack of a replica.

Racks matter if a member and a replica share one, unless every partition has a replica in every rack. `ServerRacks` are the racks as the
coordinator of 3.7 uses them; no later release does.

Source: AbstractPartitionAssignor.useRackAwareAssignment, Kafka 3.5 to 4.4; AbstractUniformAssignmentBuilder.RackInfo, Kafka 3.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from exhume.analysis.assignors.coordinator_view import CoordinatorView, Held
from exhume.analysis.assignors.group import AssignorThrows, GroupSpec, MemberSpec, TopicPartition
from exhume.analysis.assignors.java_order import hash_order, string_hash


@dataclass(frozen=True, slots=True)
class RackView:
    """The racks of members, and of the replicas of partitions."""

    member_racks: Mapping[str, str] = field(default_factory=dict)
    partition_racks: Mapping[TopicPartition, frozenset[str]] = field(default_factory=dict)

    def matter(self) -> bool:
        """True if racks decide: some member is in the rack of a replica, and not every partition has a replica in every rack."""
        everywhere = frozenset[str]().union(*self.partition_racks.values())
        return not everywhere.isdisjoint(self.member_racks.values()) and any(racks != everywhere for racks in self.partition_racks.values())

    def mismatch(self, member_id: str, partition: TopicPartition) -> bool:
        """True if the member has a rack and no replica of the partition is in it."""
        rack = self.member_racks.get(member_id)
        return rack is not None and rack not in self.partition_racks.get(partition, ())

    def first_in_rack(self, partition: TopicPartition, member_ids: Sequence[str], start: int) -> int | None:
        """Return the position of the first member in a rack of this partition, searching from `start` and wrapping around."""
        racks = self.partition_racks.get(partition, frozenset())
        for step in range(len(member_ids)):
            position = (start + step) % len(member_ids)
            if self.member_racks.get(member_ids[position]) in racks:
                return position
        return None

    def members_in_racks(self, partition: TopicPartition) -> int:
        """Return how many members are in the racks of this partition."""
        racks = self.partition_racks.get(partition, frozenset())
        return sum(rack in racks for rack in self.member_racks.values())


def all_racks(spec: GroupSpec, members: Iterable[MemberSpec], topics: Iterable[str]) -> RackView:
    """Return the racks of these members, and, if racks may matter, those of every partition of these topics."""
    member_racks = {member.member_id: member.rack_id for member in members if member.rack_id}
    # Without racks of members, those of partitions decide nothing.
    racked = list(topics) if member_racks and spec.racks else []
    partition_racks = {
        (topic, partition): _racks_of(spec, topic, partition) for topic in racked for partition in range(spec.partition_counts[topic])
    }
    return RackView(member_racks, partition_racks)


def racks_that_matter(spec: GroupSpec, members: Iterable[MemberSpec], topics: Iterable[str]) -> RackView:
    """Return the racks of these members and topics, or none if racks do not matter."""
    racks = all_racks(spec, members, topics)
    return racks if racks.matter() else RackView()


def _racks_of(spec: GroupSpec, topic: str, partition: int) -> frozenset[str]:
    racks = spec.racks.get(topic, ())
    return racks[partition] if partition < len(racks) else frozenset()


class ServerRacks:
    """The racks of a group.

    Attributes:
        matter: True if racks count here.
    """

    def __init__(self, view: CoordinatorView, topics: Sequence[str]) -> None:
        self._racks = all_racks(view.spec, view.members, topics)
        self.matter = self._racks.matter()
        self._view = view
        self._near: dict[TopicPartition, list[str]] = {}
        by_rack: dict[str, list[str]] = {}
        for member in view.members:
            if member.rack_id:
                by_rack.setdefault(member.rack_id, []).append(member.member_id)
        for partition, racks in self._racks.partition_racks.items():
            listed = (member_id for rack in hash_order(sorted(racks), string_hash) for member_id in by_rack.get(rack, ()))
            self._near[partition] = list(dict.fromkeys(listed))

    def rack_of(self, member_id: str) -> str | None:
        return self._racks.member_racks.get(member_id)

    def racks_of(self, partition: TopicPartition) -> frozenset[str]:
        return self._racks.partition_racks[partition]

    def mismatch(self, member_id: str, partition: TopicPartition) -> bool:
        """True unless a replica is in the rack of this member. A member without a rack always mismatches."""
        rack = self.rack_of(member_id)
        return rack is None or rack not in self._racks.partition_racks.get(partition, ())

    def by_members_in_rack(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions with a replica in the rack of a member, those with the fewest such members first."""
        near = [partition for partition in partitions if self._near.get(partition)]
        return sorted(near, key=lambda each: (len(self._near[each]), self._view.topic_order(each[0]), each[1]))

    def members_near(self, partition: TopicPartition, held: Mapping[str, Held]) -> list[str]:
        """Return the members in a rack of this partition, sorted by load; members with equal load keep the order of the last call."""

        def size(member_id: str) -> int:
            if member_id not in held:
                raise AssignorThrows("NullPointerException", f"member {member_id} has no target")
            return sum(map(len, held[member_id].values()))

        listed = self._near[partition]
        if len(listed) > 1:
            listed.sort(key=size)
        return list(listed)
