"""What all members of a group say at once: their topics, their partitions, their client ids, without an object for each of them.

A classic group names all of its members in every record, most of them as in the record before. Whoever looks through all records of a log
asks what the members have together, and seldom for one of them: a `MemberTable` answers that from columns, and has the subscriptions and
assignments of its members, each there once for all that sent the same bytes. `ClassicMembers` are made when one is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.classic_members import Assignment, Subscription, member_of, read_assignment, read_subscription
from exhume.analysis.memberships import Member, MemberName

_HEADER = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp_ms")
_Read = TypeVar("_Read", Subscription, Assignment)
_Protocol = tuple[str | None, str | None]
_Numbers = npt.NDArray[np.int32]
_FIELDS = ("member_id", "group_instance_id", "client_id", "client_host", "session_timeout_ms", "rebalance_timeout_ms")
_NO_STATE_TIMESTAMP_MS = -1
_NUMBER_BYTES = 4
#: What is kept of so many members and partitions is some ten megabytes.
_MAX_CACHED = 200_000


class _PayloadNumbers(Generic[_Read]):
    """What members said in bytes, numbered as it is met: read once for each protocol that it came by."""

    def __init__(self, read: Callable[[str | None, str | None, bytes], _Read]) -> None:
        self._read: Callable[[str | None, str | None, bytes], _Read] = read
        self.values: list[_Read] = []
        self._numbers: dict[_Protocol, dict[bytes, int]] = {}

    def numbers(self, column: pa.Array, protocols: Sequence[_Protocol], of_member: _Numbers) -> _Numbers:
        """The number of each of these bytes; `of_member` says by which of these protocols it came."""
        encoded = column.dictionary_encode()
        different, places = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        codes = pa.array(of_member.astype(np.int64) * max(len(different), 1) + places).dictionary_encode()
        known = [self._numbers.setdefault(protocol, {}) for protocol in protocols]
        found: list[int] = []
        for code in codes.dictionary.to_pylist():
            by, place = divmod(code, len(different))
            number = known[by].get(different[place])
            if number is None:
                number = known[by][different[place]] = len(self.values)
                protocol_type, protocol = protocols[by]
                self.values.append(self._read(protocol_type, protocol, different[place]))
            found.append(number)
        numbers: _Numbers = np.array(found, np.int32)[codes.indices.to_numpy()]
        return numbers


@dataclass(frozen=True, slots=True)
class _Columns:
    """Members of many records, one behind the other: for each of their fields the different values, and which of them each member has; and
    the numbers of what they asked for and got.
    """

    fields: Mapping[str, tuple[list[Any], _Numbers]]
    has_static_members: bool
    #: 32-bit numbers as they lie in memory: parts of arrays would cost more than what is done with them, and views cannot be shipped.
    subscriptions: bytes
    assignments: bytes
    payloads: MemberPayloads
    _listed: dict[str, list[Any]] = field(default_factory=dict, init=False)

    def __reduce__(self) -> tuple[type[_Columns], tuple[Any, ...]]:
        """What was listed follows from the rest, and is not shipped with it."""
        return _Columns, (self.fields, self.has_static_members, self.subscriptions, self.assignments, self.payloads)

    def listed(self, name: str) -> list[Any]:
        """This field of every member."""
        listed = self._listed.get(name)
        if listed is None:
            different, places = self.fields[name]
            listed = self._listed[name] = [different[place] for place in places.tolist()]
        return listed

    def value_of(self, name: str, at: int) -> Any:
        """This field of one member."""
        different, places = self.fields[name]
        return different[places[at]]


def _part(numbers: bytes, start: int, end: int) -> bytes:
    """Some of these 32-bit numbers."""
    return numbers[_NUMBER_BYTES * start : _NUMBER_BYTES * end]


def _read(numbers: bytes) -> list[int]:
    return memoryview(numbers).cast("i").tolist()


@dataclass(slots=True, eq=False)
class MemberTable:
    """A group metadata value: its fields in front of the members, and of these, in the order of the record, what they asked for and got."""

    header: Mapping[str, Any]
    _columns: _Columns
    _start: int
    _end: int

    def __len__(self) -> int:
        return self._end - self._start

    def column(self, name: str) -> list[Any]:
        """A field of each member, by its name in the layout."""
        return self._columns.listed(name)[self._start : self._end]

    @property
    def has_static_members(self) -> bool:
        """Whether any of them has an instance id."""
        return self._columns.has_static_members and any(instance is not None for instance in self.column("group_instance_id"))

    @property
    def subscriptions(self) -> Subscriptions:
        """What its members asked for."""
        return self._columns.payloads.subscriptions(_part(self._columns.subscriptions, self._start, self._end))

    @property
    def assignments(self) -> Assignments:
        """What its members got."""
        return self._columns.payloads.assignments(_part(self._columns.assignments, self._start, self._end))

    def member(self, place: int) -> Member:
        """The member in this place."""
        at = self._at(place)
        subscription, assignment = (
            _read(_part(numbers, at, at + 1))[0] for numbers in (self._columns.subscriptions, self._columns.assignments)
        )
        fields = {name: self._columns.value_of(name, at) for name in _FIELDS}
        return member_of(fields, self._columns.payloads.all_subscriptions[subscription], self._columns.payloads.all_assignments[assignment])

    def name(self, place: int) -> MemberName:
        """What the member in this place is called."""
        at = self._at(place)
        return MemberName(*(self._columns.value_of(name, at) for name in MemberName._fields))

    def _at(self, place: int) -> int:
        return range(self._start, self._end)[place]


class Subscriptions:
    """What the members of a record asked for, one behind the other; and of all of them together the topics, two subscriptions that have
    nothing in common, and whether two claim the same.
    """

    __slots__ = ("claimed", "disjoint", "is_claimed_twice", "subscribed", "topics")

    def __init__(self, subscriptions: Sequence[Subscription]) -> None:
        self.topics = [subscription.topics for subscription in subscriptions]
        self.claimed = [subscription.claimed for subscription in subscriptions]
        self.disjoint = disjoint(self.topics)
        self.subscribed = union(each_once(self.topics))
        self.is_claimed_twice = has_duplicates(self.claimed)


class Assignments:
    """What the members of a record got, one behind the other; and of all of them whether it is known, what they own together, what they own
    in sum, and how much more of it one has than another.
    """

    __slots__ = ("assigned", "difference", "is_known", "owned", "total", "union")

    def __init__(self, assignments: Sequence[Assignment]) -> None:
        self.assigned = [assignment.assigned for assignment in assignments]
        self.owned = [assignment.owned for assignment in assignments]
        self.is_known = None not in self.assigned
        self.union, self.total = union(self.owned), sum(map(len, self.owned))
        self.difference = difference(self.assigned)


class MemberPayloads:
    """What members of many records said, by its numbers: of records in which it is the same there once, as long as that is not too much."""

    def __init__(self, all_subscriptions: list[Subscription], all_assignments: list[Assignment]) -> None:
        self.all_subscriptions, self.all_assignments = all_subscriptions, all_assignments
        self._subscriptions: dict[bytes, Subscriptions] = {}
        self._assignments: dict[bytes, Assignments] = {}
        #: Members, and the partitions that they own.
        self._cached_size = 0

    def __reduce__(self) -> tuple[type[MemberPayloads], tuple[list[Subscription], list[Assignment]]]:
        """The rest follows."""
        return MemberPayloads, (self.all_subscriptions, self.all_assignments)

    def subscriptions(self, numbers: bytes) -> Subscriptions:
        """What these members asked for."""
        found = self._subscriptions.get(numbers)
        if found is None:
            found = Subscriptions([self.all_subscriptions[number] for number in _read(numbers)])
            self._evict_beyond_limit(len(found.topics))
            self._subscriptions[numbers] = found
        return found

    def assignments(self, numbers: bytes) -> Assignments:
        """What these members got."""
        found = self._assignments.get(numbers)
        if found is None:
            found = Assignments([self.all_assignments[number] for number in _read(numbers)])
            self._evict_beyond_limit(len(found.owned) + found.total)
            self._assignments[numbers] = found
        return found

    def _evict_beyond_limit(self, more: int) -> None:
        self._cached_size += more
        if self._cached_size > _MAX_CACHED:
            self._subscriptions.clear()
            self._assignments.clear()
            self._cached_size = more


class ClassicMembers(Mapping[str, Member]):
    """The members of a roster by member id, made when they are asked for."""

    __slots__ = ("_made", "assignments", "subscriptions", "table")

    def __init__(self, table: MemberTable) -> None:
        self.table, self.subscriptions, self.assignments = table, table.subscriptions, table.assignments
        self._made: dict[str, Member] | None = None

    @property
    def _members(self) -> dict[str, Member]:
        if self._made is None:
            made = map(self.table.member, range(len(self.table)))
            self._made = {member.member_id: member for member in made}
        return self._made

    def __len__(self) -> int:
        return len(self.assignments.owned)

    def __getitem__(self, member_id: str) -> Member:
        if self._made is not None:
            return self._made[member_id]
        try:
            return self.table.member(self.table.column("member_id").index(member_id))
        except ValueError:
            raise KeyError(member_id) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.table.column("member_id"))

    def __contains__(self, member_id: object) -> bool:
        return member_id in self.table.column("member_id")

    def values(self) -> ValuesView[Member]:
        return self._members.values()

    def items(self) -> ItemsView[str, Member]:
        return self._members.items()


class MemberTableReader:
    """Reads rosters; what their members asked for and got is kept once for all records."""

    def __init__(self) -> None:
        self._subscriptions, self._assignments = _PayloadNumbers(read_subscription), _PayloadNumbers(read_assignment)
        self._payloads = MemberPayloads(self._subscriptions.values, self._assignments.values)

    def read(self, groups: pa.RecordBatch) -> list[MemberTable | None]:
        """The roster of each of these records, rows of `schemas.decoded()["group_metadata"]`; None for tombstones, for what cannot be read
        to its last byte, and where a member id is there twice.
        """
        if not groups.num_rows:
            return []
        told = [groups[name].to_pylist() for name in _HEADER]
        counts = pc.fill_null(pc.list_value_length(groups["members"]), 0).to_numpy(zero_copy_only=False)
        members = groups["members"].flatten()
        protocols: dict[_Protocol, int] = {}
        numbered = [protocols.setdefault(protocol, len(protocols)) for protocol in zip(told[0], told[2], strict=True)]
        by_protocol, of_member = [*protocols], np.repeat(np.array(numbered, np.int32), counts)
        fields = {name: _encoded(members.field(name)) for name in _FIELDS}
        columns = _Columns(
            fields,
            # None is always among the different values.
            len(fields["group_instance_id"][0]) > 1,
            self._subscriptions.numbers(members.field("subscription"), by_protocol, of_member).tobytes(),
            self._assignments.numbers(members.field("assignment"), by_protocol, of_member).tobytes(),
            self._payloads,
        )
        is_plain = pc.and_(pc.equal(pc.list_value_length(groups["marks"]), 0), pc.is_valid(groups["members"])).to_numpy(
            zero_copy_only=False
        )
        is_plain = is_plain & ~_has_twice(fields["member_id"][1], counts)
        ends = np.cumsum(counts)
        found: list[MemberTable | None] = []
        for is_ok, start, end, *header in zip(is_plain.tolist(), (ends - counts).tolist(), ends.tolist(), *told, strict=True):
            if header[-1] is None:
                header[-1] = _NO_STATE_TIMESTAMP_MS
            found.append(MemberTable(dict(zip(_HEADER, header, strict=True)), columns, start, end) if is_ok else None)
        return found


def _encoded(column: pa.Array) -> tuple[list[Any], _Numbers]:
    """The different values, None behind them, and which of them each is."""
    encoded = column.dictionary_encode()
    different = [*encoded.dictionary.to_pylist(), None]
    return different, encoded.indices.fill_null(len(different) - 1).to_numpy()


def _has_twice(places: _Numbers, counts: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether one of so many values of each record is there twice."""
    flags = np.zeros(len(counts), np.bool_)
    records = np.repeat(np.arange(len(counts)), counts)
    span = int(places.max(initial=0)) + 1
    codes = np.sort(records * span + places)
    flags[codes[1:][codes[1:] == codes[:-1]] // span] = True
    return flags


# What many members say, in one.

_Item = TypeVar("_Item", bound=Hashable)


def each_once(values: Iterable[_Item]) -> tuple[_Item, ...]:
    """The different ones, in the order in which they come first."""
    return tuple(dict.fromkeys(values))


def union(plans: Iterable[Iterable[_Item] | None]) -> frozenset[_Item]:
    """What is in any of these."""
    return frozenset[_Item]().union(*filter(None, plans))


def disjoint(subscriptions: Iterable[tuple[str, ...] | None]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The first two of these subscriptions that have nothing in common, and that no third one brings together."""
    different = [subscribed for subscribed in each_once(subscriptions) if subscribed]
    # An earlier subscription that each hangs together with, or itself.
    earlier = [*range(len(different))]
    first_with: dict[str, int] = {}
    for place, subscribed in enumerate(different):
        for topic in subscribed:
            one, other = (_first(earlier, each) for each in (place, first_with.setdefault(topic, place)))
            earlier[max(one, other)] = min(one, other)
    firsts = [subscribed for place, subscribed in enumerate(different) if earlier[place] == place]
    return (firsts[0], firsts[1]) if len(firsts) > 1 else None


def _first(earlier: list[int], place: int) -> int:
    """The first of all that this one hangs together with; the way to it gets shorter."""
    while (before := earlier[place]) != place:
        earlier[place], place = earlier[before], before
    return place


def difference(plans: Iterable[Sequence[object] | None]) -> int:
    """How much longer one of these is than another."""
    sizes = [len(plan) for plan in plans if plan is not None]
    return max(sizes, default=0) - min(sizes, default=0)


def has_duplicates(plans: Iterable[Iterable[Hashable] | None]) -> bool:
    """Whether anything is in two of these plans, or twice in one."""
    everything = [*chain.from_iterable(filter(None, plans))]
    return len({*everything}) < len(everything)
