"""What all members of a group say at once: their topics, their partitions, their client ids, without an object for each of them.

A classic group names all of its members in every record, most of them as in the record before. Whoever looks through all records of a log
asks what the members have together, and seldom for one of them: a `Roster` answers that from columns, and has the subscriptions and
assignments of its members, each there once for all that sent the same bytes. `ClassicMembers` are made when one is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, ValuesView
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.classic_members import Gift, Wish, gift_of, member_of, wish_of
from exhume.analysis.memberships import Member, Membership, TopicPartition

_FRONT = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp_ms")
_Read = TypeVar("_Read", Wish, Gift)
_FIELDS = ("member_id", "group_instance_id", "client_id", "client_host", "session_timeout_ms", "rebalance_timeout_ms")
_NO_STATE_TIMESTAMP_MS = -1


@dataclass(frozen=True, slots=True)
class _Columns:
    """Members of many records, one behind the other: a list for each of their fields, and what they asked for and got."""

    fields: Mapping[str, list[Any]]
    wishes: list[Wish]
    gifts: list[Gift]


@dataclass(frozen=True, slots=True)
class Roster:
    """A group metadata value: its fields in front of the members, and of these, in the order of the record, what they asked for and got."""

    front: Mapping[str, Any]
    _columns: _Columns = field(repr=False)
    _start: int
    _end: int

    def __len__(self) -> int:
        return self._end - self._start

    def told(self, name: str) -> list[Any]:
        """A field of each member, by its name in the layout."""
        return self._columns.fields[name][self._start : self._end]

    @property
    def wishes(self) -> list[Wish]:
        return self._columns.wishes[self._start : self._end]

    @property
    def gifts(self) -> list[Gift]:
        return self._columns.gifts[self._start : self._end]

    def member(self, place: int) -> Member:
        """The member in this place."""
        at = range(self._start, self._end)[place]
        fields = {name: column[at] for name, column in self._columns.fields.items()}
        return member_of(fields, self._columns.wishes[at], self._columns.gifts[at])


class ClassicMembers(Mapping[str, Member]):
    """The members of a roster by member id, made when they are asked for."""

    __slots__ = ("_made", "roster")

    def __init__(self, roster: Roster) -> None:
        self.roster = roster
        self._made: dict[str, Member] | None = None

    @property
    def _members(self) -> dict[str, Member]:
        if self._made is None:
            made = map(self.roster.member, range(len(self.roster)))
            self._made = {member.member_id: member for member in made}
        return self._made

    def __len__(self) -> int:
        return len(self.roster)

    def __getitem__(self, member_id: str) -> Member:
        return self._members[member_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self.roster.told("member_id"))

    def __contains__(self, member_id: object) -> bool:
        return member_id in self.roster.told("member_id")

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
    ends = np.cumsum(counts)
    members = groups["members"].flatten()
    protocols = [*zip(groups["protocol_type"].to_pylist(), groups["protocol"].to_pylist(), counts.tolist(), strict=True)]
    columns = _Columns(
        {name: _listed(members.field(name)) for name in _FIELDS},
        _read(members.field("subscription"), wish_of, protocols),
        _read(members.field("assignment"), gift_of, protocols),
    )
    found: list[Roster | None] = []
    for is_ok, front, start, end in zip(is_clean.to_pylist(), fronts, (ends - counts).tolist(), ends.tolist(), strict=True):
        if front["current_state_timestamp_ms"] is None:
            front["current_state_timestamp_ms"] = _NO_STATE_TIMESTAMP_MS
        is_plain = is_ok and len({*columns.fields["member_id"][start:end]}) == end - start
        found.append(Roster(front, columns, start, end) if is_plain else None)
    return found


def _listed(column: pa.Array) -> list[Any]:
    """These values, equal ones as one object."""
    encoded = column.dictionary_encode()
    different = [*encoded.dictionary.to_pylist(), None]
    return [different[place] for place in encoded.indices.fill_null(len(different) - 1).to_pylist()]


def _read(
    column: pa.Array, read: Callable[[str | None, str | None, bytes], _Read], protocols: Iterable[tuple[str | None, str | None, int]]
) -> list[_Read]:
    """What these bytes say, each read once for each protocol that it came by. `protocols` are protocol type, protocol and number of members
    of each group.
    """
    encoded = column.dictionary_encode()
    different, places = encoded.dictionary.to_pylist(), encoded.indices.to_pylist()
    known: dict[tuple[str | None, str | None], dict[int, _Read]] = {}
    found: list[_Read] = []
    for (protocol_type, protocol), run in groupby(protocols, key=lambda group: group[:2]):
        own: list[int] = places[len(found) : len(found) + sum(count for _, _, count in run)]
        already = known.setdefault((protocol_type, protocol), {})
        already.update({place: read(protocol_type, protocol, different[place]) for place in {*own}.difference(already)})
        found += [already[place] for place in own]
    return found


# What members say, of steps of any kind: one entry for each member, in the order of the record.


def assigned_of(step: Membership) -> list[tuple[TopicPartition, ...] | None]:
    """`Member.assigned` of each."""
    if isinstance(step.members, ClassicMembers):
        return [gift.assigned for gift in step.members.roster.gifts]
    return [member.assigned for member in step.members.values()]


def is_opaque(step: Membership) -> bool:
    """`Membership.is_opaque`."""
    return bool(step.members) and all(assigned is None for assigned in assigned_of(step))


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


def client_ids_of(step: Membership) -> list[str | None]:
    """`Member.client_id` of each."""
    if isinstance(step.members, ClassicMembers):
        return step.members.roster.told("client_id")
    return [member.client_id for member in step.members.values()]


def instance_ids_of(step: Membership) -> list[str | None]:
    """`Member.group_instance_id` of each."""
    if isinstance(step.members, ClassicMembers):
        return step.members.roster.told("group_instance_id")
    return [member.group_instance_id for member in step.members.values()]


def member_at(step: Membership, place: int) -> Member:
    """The member in this place."""
    if isinstance(step.members, ClassicMembers):
        return step.members.roster.member(place)
    return next(islice(step.members.values(), place, None))
