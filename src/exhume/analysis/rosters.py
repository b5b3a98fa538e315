"""What all members of a group say at once: their topics, their partitions, their client ids, without an object for each of them.

A classic group names all of its members in every record, most of them as in the record before. Whoever looks through all records of a log
asks what the members have together, and seldom for one of them: a `Roster` answers that from columns, and has the subscriptions and
assignments of its members, each there once for all that sent the same bytes. `ClassicMembers` are decoded when one is asked for.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.classic_members import Gift, Wish, classic_group, gift_of, wish_of
from exhume.analysis.memberships import Member, Membership, TopicPartition

_FRONT = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp_ms")
_NO_STATE_TIMESTAMP_MS = -1


@dataclass(frozen=True, slots=True)
class Roster:
    """A group metadata value: its fields in front of the members, and of these, in the order of the record, what they asked for and got."""

    front: Mapping[str, Any]
    member_ids: Sequence[str]
    wishes: Sequence[Wish]
    gifts: Sequence[Gift]
    client_ids: Sequence[str]
    instance_ids: Sequence[str | None]


class ClassicMembers(Mapping[str, Member]):
    """The members of a group metadata value by member id, decoded when one of them is asked for; how many there are is known before."""

    __slots__ = ("_key", "_made", "_value", "roster")

    def __init__(self, key: bytes, value: bytes, roster: Roster) -> None:
        self._key, self._value, self.roster = key, value, roster
        self._made: dict[str, Member] | None = None

    @property
    def _members(self) -> dict[str, Member]:
        if self._made is None:
            read = classic_group(self._key, self._value)
            assert read is not None
            self._made = read[1]
        return self._made

    def __len__(self) -> int:
        return len(self.roster.member_ids)

    def __getitem__(self, member_id: str) -> Member:
        return self._members[member_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self.roster.member_ids)

    def __contains__(self, member_id: object) -> bool:
        return member_id in self.roster.member_ids

    def values(self) -> ValuesView[Member]:
        return self._members.values()

    def items(self) -> ItemsView[str, Member]:
        return self._members.items()


def rosters(groups: pa.RecordBatch) -> list[Roster | None]:
    """The roster of each of these records, rows of `schemas.DECODED["group_metadata"]`; None for tombstones, for what cannot be read to its
    last byte, and where a member id is there twice.
    """
    if not groups.num_rows:
        return []
    is_clean = pc.and_(pc.equal(pc.list_value_length(groups["marks"]), 0), pc.is_valid(groups["members"]))
    fronts = [dict(zip(_FRONT, row, strict=True)) for row in zip(*(groups[name].to_pylist() for name in _FRONT), strict=True)]
    counts = pc.fill_null(pc.list_value_length(groups["members"]), 0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(counts).tolist()
    members = groups["members"].flatten()
    member_ids, client_ids, instance_ids = (members.field(name).to_pylist() for name in ("member_id", "client_id", "group_instance_id"))
    wishes, gifts = (_Told(members.field(name), make) for name, make in (("subscription", wish_of), ("assignment", gift_of)))
    found: list[Roster | None] = []
    for is_ok, front, count, end in zip(is_clean.to_pylist(), fronts, counts.tolist(), ends, strict=True):
        own = slice(end - count, end)
        own_ids = member_ids[own]
        if not is_ok or len({*own_ids}) < count:
            found.append(None)
            continue
        if front["current_state_timestamp_ms"] is None:
            front["current_state_timestamp_ms"] = _NO_STATE_TIMESTAMP_MS
        protocols = (front["protocol_type"], front["protocol"])
        found.append(Roster(front, own_ids, wishes.of(protocols, own), gifts.of(protocols, own), client_ids[own], instance_ids[own]))
    return found


class _Told:
    """A column of bytes that members sent, each read once for each protocol that it came by."""

    def __init__(self, column: pa.Array, make: Any) -> None:
        encoded = column.dictionary_encode()
        self._different: list[bytes] = encoded.dictionary.to_pylist()
        self._places: list[int] = encoded.indices.to_pylist()
        self._make = make
        self._read: dict[tuple[str | None, str | None], dict[int, Any]] = {}

    def of(self, protocols: tuple[str | None, str | None], own: slice) -> list[Any]:
        """What these rows say, sent by members of a group of this protocol type and protocol."""
        read = self._read.setdefault(protocols, {})
        places = self._places[own]
        for place in places:
            if place not in read:
                read[place] = self._make(*protocols, self._different[place])
        return [read[place] for place in places]


# What members say, of steps of any kind: one entry for each member, in the order of the record.


def assigned_of(step: Membership) -> list[tuple[TopicPartition, ...] | None]:
    """`Member.assigned` of each."""
    if isinstance(step.members, ClassicMembers):
        return [gift.assigned for gift in step.members.roster.gifts]
    return [member.assigned for member in step.members.values()]


def owned_of(step: Membership) -> list[tuple[TopicPartition, ...]]:
    """`Member.owned` of each."""
    if isinstance(step.members, ClassicMembers):
        return [gift.assigned or () for gift in step.members.roster.gifts]
    return [member.owned for member in step.members.values()]


def claimed_of(step: Membership) -> list[tuple[TopicPartition, ...] | None]:
    """`Member.claimed` of each."""
    if isinstance(step.members, ClassicMembers):
        return [wish.claimed for wish in step.members.roster.wishes]
    return [member.claimed for member in step.members.values()]


def subscriptions_of(step: Membership) -> list[tuple[str, ...] | None]:
    """`Member.subscribed_topics` of each."""
    if isinstance(step.members, ClassicMembers):
        return [wish.topics for wish in step.members.roster.wishes]
    return [member.subscribed_topics for member in step.members.values()]


def client_ids_of(step: Membership) -> Sequence[str | None]:
    """`Member.client_id` of each."""
    if isinstance(step.members, ClassicMembers):
        return step.members.roster.client_ids
    return [member.client_id for member in step.members.values()]


def instance_ids_of(step: Membership) -> Sequence[str | None]:
    """`Member.group_instance_id` of each."""
    if isinstance(step.members, ClassicMembers):
        return step.members.roster.instance_ids
    return [member.group_instance_id for member in step.members.values()]
