"""0.11.0.0 installs all groups and offsets again after each chunk (KAFKA-5600).

The first installed object of a group stays. Until a newer record of the group is read, later chunks add offsets to it or overwrite them,
and never remove one. A newer record, or a group with offsets only, creates a new object each time, and the cache refuses it: the group
keeps its old metadata, and its offsets no longer change.

Source: GroupMetadataManager.doLoadGroupsAndOffsets, Kafka 0.11.0.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from exhume.replay.partition_state import ClassicGroupState, Commit, Group, OffsetKey, OpenTransaction, PartitionState


@dataclass(slots=True)
class PerChunkInstall:
    """The cache after the chunks so far."""

    _groups: dict[str, ClassicGroupState] = field(default_factory=dict)
    _offsets: dict[OffsetKey, Commit] = field(default_factory=dict)

    def install(
        self, groups: Mapping[str, ClassicGroupState], offsets: Mapping[OffsetKey, Commit], transactions: Mapping[int, OpenTransaction]
    ) -> None:
        """Install the groups and offsets up to the end of a chunk."""
        for name, group in groups.items():
            if self._groups.setdefault(name, group) is group:
                self._offsets.update({key: commit for key, commit in offsets.items() if key[0] == name})
        pending = {key: commit for transaction in transactions.values() for key, commit in transaction.offsets.items()}
        for name in sorted({key[0] for key in (*offsets, *pending)} - set(groups) - set(self._groups)):
            own = {key: commit for key, commit in offsets.items() if key[0] == name}
            first = min(commit.record_offset for commit in (own or {k: c for k, c in pending.items() if k[0] == name}).values())
            self._groups[name] = ClassicGroupState(name, first)
            self._offsets.update(own)

    def is_unexpected(self, group_id: str, offsets: Mapping[OffsetKey, Commit]) -> bool:
        """Return True if a group with a tombstone is in the cache, and has no offsets that explain it."""
        return group_id in self._groups and not any(key[0] == group_id for key in offsets)

    def partition_state(self, transactions: Mapping[int, OpenTransaction]) -> PartitionState:
        """The contents of the cache."""
        groups: dict[str, Group] = dict(self._groups)
        return PartitionState(groups, dict(self._offsets), dict(transactions))
