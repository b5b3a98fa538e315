"""Fields of all members of a group as columns: topics, partitions and client ids, without an object for each member.

A classic group lists all of its members in every record, most of them as in the record before. A reader of all records of a log mostly
needs the members together, and seldom one of them. A `MemberTable` answers from columns. Subscriptions and assignments with the same bytes
exist once. `ClassicMembers` makes a member when a caller takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field
from itertools import chain
from sys import intern
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.classic_members import Assignment, Subscription, member_of, read_assignment, read_subscription
from exhume.analysis.memberships import Member, MemberName
from exhume.analysis.number_columns import numbers_of
from exhume.codecs.columns.known_texts import KnownTexts
from exhume.codecs.columns.payloads import PayloadNumbers, Protocol

_HEADER = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp_ms")
_GENERATION = _HEADER.index("generation")
_Numbers = npt.NDArray[np.unsignedinteger]
_FIELDS = ("member_id", "group_instance_id", "client_id", "client_host", "session_timeout_ms", "rebalance_timeout_ms")
_NO_STATE_TIMESTAMP_MS = -1
_NUMBER_BYTES = 4
#: The limit of members and partitions in the cache, some ten megabytes.
_MAX_CACHED = 200_000
_Item = TypeVar("_Item", bound=Hashable)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Members of many records as columns: the distinct values of each field and the place of each member's value among them; and the
    numbers of subscriptions and assignments.
    """

    #: The fields before the members, of each record.
    headers: Sequence[Sequence[Any]]
    fields: Mapping[str, tuple[list[Any], _Numbers]]
    has_static_members: bool
    #: Raw 32-bit numbers: slices of arrays cost more than their use, and views cannot be pickled.
    subscriptions: bytes
    assignments: bytes
    payloads: MemberPayloads
    _listed: dict[object, list[Any]] = field(default_factory=dict, init=False)

    def __reduce__(self) -> tuple[type[_Columns], tuple[Any, ...]]:
        """Leave out the listed fields: they follow from the rest."""
        return _Columns, (self.headers, self.fields, self.has_static_members, self.subscriptions, self.assignments, self.payloads)

    def listed(self, name: str) -> list[Any]:
        """Return this field of every member."""
        listed = self._listed.get(name)
        if listed is None:
            different, places = self.fields[name]
            listed = self._listed[name] = [different[place] for place in places.tolist()]
        return listed

    def kinds(self, name: str, kind_of: Callable[[Any], _Item]) -> list[_Item]:
        """Return the kind of this field of every member. `kind_of` is called once for each distinct value."""
        listed = self._listed.get((name, kind_of))
        if listed is None:
            different, places = self.fields[name]
            kinds = [*map(kind_of, different)]
            listed = self._listed[name, kind_of] = [kinds[place] for place in places.tolist()]
        return listed

    def forget(self) -> None:
        """Drop everything that can be derived again."""
        self._listed.clear()
        self.payloads.forget()

    def value_of(self, name: str, at: int) -> Any:
        """Return this field of one member."""
        different, places = self.fields[name]
        return different[places[at]]


def _part(numbers: bytes, start: int, end: int) -> bytes:
    """Return a slice of these 32-bit numbers."""
    return numbers[_NUMBER_BYTES * start : _NUMBER_BYTES * end]


def _read(numbers: bytes) -> list[int]:
    return memoryview(numbers).cast("i").tolist()


@dataclass(slots=True, eq=False)
class MemberTable:
    """A group metadata value: its header fields, and the subscriptions and assignments of its members in the order of the record."""

    _columns: _Columns
    _record: int
    _start: int
    _end: int

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def header(self) -> Mapping[str, Any]:
        """The fields before the members, by their names in the layout."""
        return dict(zip(_HEADER, self._columns.headers[self._record], strict=True))

    @property
    def generation(self) -> int:
        """The generation of the group."""
        generation: int = self._columns.headers[self._record][_GENERATION]
        return generation

    def column(self, name: str) -> list[Any]:
        """Return a field of each member, by its name in the layout."""
        return self._columns.listed(name)[self._start : self._end]

    def kinds(self, name: str, kind_of: Callable[[Any], _Item]) -> list[_Item]:
        """Return the kind of a field of each member."""
        return self._columns.kinds(name, kind_of)[self._start : self._end]

    @property
    def has_static_members(self) -> bool:
        """True if a member has an instance id."""
        return self._columns.has_static_members and any(instance is not None for instance in self.column("group_instance_id"))

    @property
    def subscriptions(self) -> Subscriptions:
        """Return the subscriptions of its members."""
        return self._columns.payloads.subscriptions(_part(self._columns.subscriptions, self._start, self._end))

    @property
    def assignments(self) -> Assignments:
        """Return the assignments of its members."""
        return self._columns.payloads.assignments(_part(self._columns.assignments, self._start, self._end))

    def member(self, place: int) -> Member:
        """Return the member in this place."""
        at = self._at(place)
        subscription, assignment = (
            _read(_part(numbers, at, at + 1))[0] for numbers in (self._columns.subscriptions, self._columns.assignments)
        )
        fields = {name: self._columns.value_of(name, at) for name in _FIELDS}
        return member_of(fields, self._columns.payloads.all_subscriptions[subscription], self._columns.payloads.all_assignments[assignment])

    def forget(self) -> None:
        """Drop what was derived from these columns, for all records that share them."""
        self._columns.forget()

    def name(self, place: int) -> MemberName:
        """Return the name of the member in this place."""
        at = self._at(place)
        return MemberName(*(self._columns.value_of(name, at) for name in MemberName._fields))

    def _at(self, place: int) -> int:
        return range(self._start, self._end)[place]


class Subscriptions:
    """The subscriptions of the members of a record, in order.

    Of all together: the topics, two subscriptions that share no topic, and whether two members claim the same partition.
    """

    __slots__ = ("claimed", "disjoint", "is_claimed_twice", "subscribed", "topics")

    def __init__(self, subscriptions: Sequence[Subscription]) -> None:
        self.topics = [subscription.topics for subscription in subscriptions]
        self.claimed = [subscription.claimed for subscription in subscriptions]
        self.disjoint = disjoint(self.topics)
        self.subscribed = union(each_once(self.topics))
        self.is_claimed_twice = has_duplicates(self.claimed)


class Assignments:
    """The assignments of the members of a record, in order.

    Of all together: whether every one is known, the owned partitions, their number with repetitions, and the difference in size.
    """

    __slots__ = ("assigned", "difference", "is_known", "owned", "total", "union")

    def __init__(self, assignments: Sequence[Assignment]) -> None:
        self.assigned = [assignment.assigned for assignment in assignments]
        self.owned = [assignment.owned for assignment in assignments]
        self.is_known = None not in self.assigned
        self.union, self.total = union(self.owned), sum(map(len, self.owned))
        self.difference = difference(self.assigned)


class MemberPayloads:
    """The payloads of members of many records, by number. Records with the same payloads share one object, up to a limit."""

    def __init__(self, all_subscriptions: list[Subscription], all_assignments: list[Assignment]) -> None:
        self.all_subscriptions, self.all_assignments = all_subscriptions, all_assignments
        self._subscriptions: dict[bytes, Subscriptions] = {}
        self._assignments: dict[bytes, Assignments] = {}
        #: The number of cached members and owned partitions.
        self._cached_size = 0

    def __reduce__(self) -> tuple[type[MemberPayloads], tuple[list[Subscription], list[Assignment]]]:
        """Leave out the cache."""
        return MemberPayloads, (self.all_subscriptions, self.all_assignments)

    def subscriptions(self, numbers: bytes) -> Subscriptions:
        """Return the subscriptions with these numbers."""
        found = self._subscriptions.get(numbers)
        if found is None:
            found = Subscriptions([self.all_subscriptions[number] for number in _read(numbers)])
            self._evict_beyond_limit(len(found.topics))
            self._subscriptions[numbers] = found
        return found

    def assignments(self, numbers: bytes) -> Assignments:
        """Return the assignments with these numbers."""
        found = self._assignments.get(numbers)
        if found is None:
            found = Assignments([self.all_assignments[number] for number in _read(numbers)])
            self._evict_beyond_limit(len(found.owned) + found.total)
            self._assignments[numbers] = found
        return found

    def forget(self) -> None:
        """Drop the cache."""
        self._subscriptions.clear()
        self._assignments.clear()
        self._cached_size = 0

    def _evict_beyond_limit(self, more: int) -> None:
        if self._cached_size + more > _MAX_CACHED:
            self.forget()
        self._cached_size += more


class ClassicMembers(Mapping[str, Member]):
    """The members of a table by member id, made on demand."""

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
    """Reads member tables. Subscriptions and assignments are decoded once for all records."""

    def __init__(self) -> None:
        self._subscriptions, self._assignments = PayloadNumbers(read_subscription), PayloadNumbers(read_assignment)
        self._payloads = MemberPayloads(self._subscriptions.values, self._assignments.values)
        self._texts = KnownTexts()

    def read(self, groups: pa.RecordBatch) -> list[MemberTable | None]:
        """Return the member table of each record, given as rows of `schemas.decoded()["group_metadata"]`.

        None for tombstones, for values that cannot be read to the last byte, and for values with a member id twice.
        """
        if not groups.num_rows:
            return []
        headers = [_listed(groups[name]) for name in _HEADER]
        headers[-1] = [_NO_STATE_TIMESTAMP_MS if time_ms is None else time_ms for time_ms in headers[-1]]
        counts = pc.fill_null(pc.list_value_length(groups["members"]), 0).to_numpy(zero_copy_only=False)
        members = groups["members"].flatten()
        protocols: dict[Protocol, int] = {}
        numbered = [protocols.setdefault(protocol, len(protocols)) for protocol in zip(headers[0], headers[2], strict=True)]
        by_protocol, of_member = [*protocols], np.repeat(np.array(numbered, np.int32), counts)
        fields = {name: self._encoded(members.field(name)) for name in _FIELDS}
        columns = _Columns(
            [*zip(*headers, strict=True)],
            fields,
            # None is always among the distinct values.
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
        places = zip(is_plain.tolist(), (ends - counts).tolist(), ends.tolist(), strict=True)
        return [MemberTable(columns, record, start, end) if is_ok else None for record, (is_ok, start, end) in enumerate(places)]

    def _encoded(self, column: pa.Array) -> tuple[list[Any], _Numbers]:
        """Return the distinct values, followed by None, and the place of each value among them. Equal texts are one object everywhere."""
        if pa.types.is_string(column.type):
            # Most member ids occur once in a block, and again in later blocks.
            values, places = self._texts.encode(column)
        else:
            encoded = column.dictionary_encode()
            values, places = encoded.dictionary.to_pylist(), encoded.indices
        return [*values, None], numbers_of(places, len(values)).astype(np.min_scalar_type(len(values) + 1))


def _listed(column: pa.Array) -> list[Any]:
    """Return the values of a column as a list. Equal texts are one object."""
    values: list[Any] = column.to_pylist()
    return [None if text is None else intern(text) for text in values] if pa.types.is_string(column.type) else values


def _has_twice(places: _Numbers, counts: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return for each record whether a value occurs twice in it."""
    flags = np.zeros(len(counts), np.bool_)
    records = np.repeat(np.arange(len(counts)), counts)
    span = int(places.max(initial=0)) + 1
    codes = np.sort(records * span + places.astype(np.int64))
    flags[codes[1:][codes[1:] == codes[:-1]] // span] = True
    return flags


# Functions over the values of many members.


def each_once(values: Iterable[_Item]) -> tuple[_Item, ...]:
    """Return the distinct values, in the order of their first occurrence."""
    return tuple(dict.fromkeys(values))


def union(plans: Iterable[Iterable[_Item] | None]) -> frozenset[_Item]:
    """Return the union."""
    return frozenset[_Item]().union(*filter(None, plans))


def disjoint(subscriptions: Iterable[tuple[str, ...] | None]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return two subscriptions that share no topic, directly or through others; None if all are connected."""
    different = [subscribed for subscribed in each_once(subscriptions) if subscribed]
    # For each subscription, an earlier one that it is connected with, or itself.
    earlier = [*range(len(different))]
    first_with: dict[str, int] = {}
    for place, subscribed in enumerate(different):
        for topic in subscribed:
            one, other = (_first(earlier, each) for each in (place, first_with.setdefault(topic, place)))
            earlier[max(one, other)] = min(one, other)
    firsts = [subscribed for place, subscribed in enumerate(different) if earlier[place] == place]
    return (firsts[0], firsts[1]) if len(firsts) > 1 else None


def _first(earlier: list[int], place: int) -> int:
    """Return the first subscription that this one is connected with, and shorten the path to it."""
    while (before := earlier[place]) != place:
        earlier[place], place = earlier[before], before
    return place


def difference(plans: Iterable[Sequence[object] | None]) -> int:
    """Return the difference between the longest and the shortest."""
    sizes = [len(plan) for plan in plans if plan is not None]
    return max(sizes, default=0) - min(sizes, default=0)


def has_duplicates(plans: Iterable[Iterable[Hashable] | None]) -> bool:
    """True if a value occurs twice, in one plan or in two."""
    everything = [*chain.from_iterable(filter(None, plans))]
    return len({*everything}) < len(everything)
