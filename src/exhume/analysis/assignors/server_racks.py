"""Racks as the coordinator of 3.7 uses them; no later release does.

Source: AbstractUniformAssignmentBuilder.RackInfo, Kafka 3.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from exhume.analysis.assignors.coordinator_view import CoordinatorView, Held
from exhume.analysis.assignors.group import AssignorThrows, TopicPartition
from exhume.analysis.assignors.java_order import hash_order, string_hash
from exhume.analysis.assignors.racks import all_racks


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
