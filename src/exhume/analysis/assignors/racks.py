"""When racks matter, and which members are in the rack of a replica.

Racks matter if a member and a replica share one, unless every partition has a replica in every rack.

Source: AbstractPartitionAssignor.useRackAwareAssignment, Kafka 3.5 to 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from exhume.analysis.assignors.group import GroupSpec, MemberSpec, TopicPartition


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
    """Return the racks of these members, and of every partition of these topics."""
    return RackView(
        {member.member_id: member.rack_id for member in members if member.rack_id},
        {(topic, partition): _racks_of(spec, topic, partition) for topic in topics for partition in range(spec.partition_counts[topic])},
    )


def racks_that_matter(spec: GroupSpec, members: Iterable[MemberSpec], topics: Iterable[str]) -> RackView:
    """Return the racks of these members and topics, or none if racks do not matter."""
    racks = all_racks(spec, members, topics)
    return racks if racks.matter() else RackView()


def _racks_of(spec: GroupSpec, topic: str, partition: int) -> frozenset[str]:
    racks = spec.racks.get(topic, ())
    return racks[partition] if partition < len(racks) else frozenset()
