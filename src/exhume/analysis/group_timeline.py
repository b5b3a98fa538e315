"""The history of groups: their records folded, in log order, into steps.

A record of a classic group is a step of its own. For a consumer, share or streams group a batch is a step: states between two records of
one batch were never in force. A conversion between kinds of groups happens within a batch, too: the step names the kind before.

Only the latest state of each group is in memory, and nothing of the log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.classic_members import classic_group
from exhume.analysis.member_tables import ClassicMembers, MemberTable
from exhume.analysis.memberships import Kind, Member, Membership
from exhume.analysis.modern_members import ModernGroupRecords
from exhume.codecs.record_types import (
    GROUP_METADATA,
    MODERN_FAMILIES,
    RECORD_TYPES,
    Decoded,
    Family,
    decode_record,
    group_family,
    numbers,
    role_of,
)
from exhume.replay.topic_names import TopicNames, tells_topic_names

_COLUMNS = ("replica", "offsets_partition", "path", "byte_position", "record_offset", "timestamp_ms", "key", "value")
#: The first fields of a step: replica, offsets partition, group, kind, first and last record offset, time, path, byte position.
_StepPlace = tuple[str | None, int | None, str, Kind, int, int, int | None, str, int]
_NOWHERE: _StepPlace = (None, None, "", "classic", 0, 0, None, "", 0)
_EMPTY = Membership(*_NOWHERE, {})
_REMOVED = Membership(*_NOWHERE, {}, is_tombstone=True)
#: The place of a batch: replica, offsets partition, path, byte position.
Place = tuple[str | None, int | None, str, int]


def group_record_names(families: Collection[Family] = ("classic", *MODERN_FAMILIES)) -> list[str]:
    """Return the names of the record types of groups of these families. One record in a hundred is of such a type."""
    return [row.name for row in RECORD_TYPES.values() if row.family in families]


def group_timeline(batches: Iterable[pa.RecordBatch], names: TopicNames | None = None) -> Iterator[Membership]:
    """Yield every step of every group, in log order.

    `batches` have rows of `schemas.RECORDS` in log order, one partition after the other; other record types than `group_record_names` are
    skipped. `names` are names of topic ids; names from the records are added.
    """
    fold = GroupFold(names if names is not None else TopicNames())
    types = pa.array(sorted(numbers(family=("classic", *MODERN_FAMILIES))), pa.int16())
    for batch in batches:
        wanted = batch.filter(pc.and_(pc.invert(batch["is_control"]), pc.is_in(batch["record_type"], value_set=types)))
        columns = [wanted.column(name).to_pylist() for name in _COLUMNS]
        for replica, offsets_partition, path, byte_position, *record in zip(*columns, strict=True):
            yield from fold.begin_batch((replica, offsets_partition, path, byte_position))
            yield from fold.take(*record)
    yield from fold.end_batch()


def steps_of_records(
    records: Iterable[tuple[Place, int, int | None, bytes, bytes | None, MemberTable | None]], names: TopicNames
) -> Iterator[Membership]:
    """Yield steps as `group_timeline`, from records: place, record offset, time, key, value and, if there is one, member table of each.

    Control records must be left out.
    """
    fold = GroupFold(names)
    for place, record_offset, timestamp_ms, key, value, member_table in records:
        if group_family(int.from_bytes(key[:2], "big", signed=True)) is not None:
            yield from fold.begin_batch(place)
            yield from fold.take(record_offset, timestamp_ms, key, value, member_table)
    yield from fold.end_batch()


def steps_of_member_tables(
    group: str,
    origin: tuple[str | None, int | None],
    records: Iterable[tuple[int, int | None, str, int, MemberTable | None]],
) -> list[Membership]:
    """Return steps as `steps_of_records`, for a group that was always classic, with one record per batch.

    A record is its offset, time, path, byte position and member table; None is a tombstone.
    """
    steps: list[Membership] = []
    for record_offset, timestamp_ms, path, byte_position, table in records:
        place: _StepPlace = (*origin, group, "classic", record_offset, record_offset, timestamp_ms, path, byte_position)
        if table is None:
            steps.append(Membership(*place, {}, is_tombstone=True))
        else:
            steps.append(_classic_step_at(place, table.header, ClassicMembers(table)))
    return steps


@lru_cache(maxsize=65_536)
def decoded_key(key: bytes) -> Decoded:
    """Decode this key. A group has many records with the same key."""
    return decode_record(key, None)


@dataclass(slots=True)
class _Touched:
    """The changes of the present batch to a group."""

    first_record_offset: int
    last_record_offset: int
    timestamp_ms: int | None
    #: The kind of the group when the batch began.
    before: Kind | None
    #: A step that waits for the rest of this batch, without its place: of a classic group, or any removal.
    waiting: Membership | None = None
    has_modern: bool = False


@dataclass(slots=True)
class GroupFold:
    """The latest state of every group; gives steps: call `begin_batch`, then `take` for each record, then `end_batch`."""

    names: TopicNames
    place: Place | None = None
    #: (replica, offsets partition, group) -> the state in force.
    _groups: dict[tuple[str | None, int | None, str], ModernGroupRecords | Kind] = field(default_factory=dict)
    _touched: dict[str, _Touched] = field(default_factory=dict)

    def begin_batch(self, place: Place) -> Iterator[Membership]:
        """Go to the batch at this place. Yields the steps of the batch before, if it was another one."""
        if place != self.place:
            yield from self.end_batch()
            self.place = place

    def take(
        self, record_offset: int, timestamp_ms: int | None, key: bytes, value: bytes | None, member_table: MemberTable | None = None
    ) -> Iterator[Membership]:
        """Take a record of the present batch, with its member table if known. Yields a step if the record ends one."""
        decoded = decoded_key(key)
        group, number = decoded.key.get("group"), decoded.number
        if group is None or number is None or "undecodable_key" in decoded.marks:
            return
        assert self.place is not None
        kind = self._kind(group)
        if number == GROUP_METADATA:
            step = _REMOVED if value is None else _classic_step(key, value, member_table)
            if step is None:
                return
            touched = self._touch(group, record_offset, timestamp_ms)
            if touched.waiting is not None and touched.waiting.kind == "classic":
                yield self._step(group, touched, touched.waiting)
                touched.first_record_offset, touched.before = record_offset, "classic"
            if value is None:
                self._groups.pop((*self.place[:2], group), None)
                touched.waiting = step._replace(kind=kind or "classic")
            else:
                self._groups[(*self.place[:2], group)] = "classic"
                converted = touched.before if touched.before not in (None, "classic") else None
                touched.waiting = step._replace(converted_from=converted)
            touched.has_modern = False
            return
        record = decode_record(key, value)
        if value is not None and (record.value is None or "undecodable_value" in record.marks):
            return
        if tells_topic_names(number) and value is not None:
            self._learn(number, record)
        self._take_modern(group, kind, record, record_offset, timestamp_ms)

    def _take_modern(self, group: str, kind: Kind | None, record: Decoded, record_offset: int, timestamp_ms: int | None) -> None:
        assert self.place is not None
        assert record.number is not None
        own, slot = group_family(record.number), (*self.place[:2], group)
        assert own is not None
        held = self._groups.get(slot)
        is_tombstone = record.value is None
        if not isinstance(held, ModernGroupRecords) or held.kind != own:
            # A tombstone of an earlier kind of this group: the group has been converted since.
            if is_tombstone and not (role_of(record.number) == "group" and kind is None):
                return
            held = ModernGroupRecords(own, self.names)
        touched = self._touch(group, record_offset, timestamp_ms)
        held.apply(record)
        if is_tombstone and role_of(record.number) == "group":
            self._groups.pop(slot, None)
            touched.waiting, touched.has_modern = _REMOVED._replace(kind=own), False
        else:
            self._groups[slot] = held
            touched.has_modern = True

    def end_batch(self) -> Iterator[Membership]:
        """Yield the steps of the present batch, group by group."""
        for group, touched in self._touched.items():
            assert self.place is not None
            held = self._groups.get((*self.place[:2], group))
            if touched.has_modern and isinstance(held, ModernGroupRecords):
                yield self._step(group, touched, _modern_step(held, touched.before))
            elif touched.waiting is not None:
                yield self._step(group, touched, touched.waiting)
        self._touched.clear()

    def _kind(self, group: str) -> Kind | None:
        assert self.place is not None
        held = self._groups.get((*self.place[:2], group))
        return held.kind if isinstance(held, ModernGroupRecords) else held

    def _touch(self, group: str, record_offset: int, timestamp_ms: int | None) -> _Touched:
        touched = self._touched.get(group)
        if touched is None:
            touched = self._touched[group] = _Touched(record_offset, record_offset, timestamp_ms, self._kind(group))
        touched.last_record_offset, touched.timestamp_ms = record_offset, timestamp_ms
        return touched

    def _learn(self, number: int, record: Decoded) -> None:
        self.names.learn_from_record(number, record.key, record.value)
        for held in self._groups.values():
            if isinstance(held, ModernGroupRecords):
                held.discard_members()

    def _step(self, group: str, touched: _Touched, step: Membership) -> Membership:
        assert self.place is not None
        replica, offsets_partition, path, byte_position = self.place
        return step._replace(
            replica=replica,
            offsets_partition=offsets_partition,
            group=group,
            record_offset=touched.first_record_offset,
            last_record_offset=touched.last_record_offset,
            timestamp_ms=touched.timestamp_ms,
            path=path,
            byte_position=byte_position,
        )


def _classic_step(key: bytes, value: bytes, member_table: MemberTable | None) -> Membership | None:
    if member_table is not None:
        return _classic_step_at(_NOWHERE, member_table.header, ClassicMembers(member_table))
    read = classic_group(key, value)
    return None if read is None else _classic_step_at(_NOWHERE, *read)


def _classic_step_at(place: _StepPlace, front: Mapping[str, Any], members: Mapping[str, Member]) -> Membership:
    state_timestamp_ms = front.get("current_state_timestamp_ms", -1)
    return Membership(
        *place,
        members,
        generation=front["generation"],
        protocol_type=front["protocol_type"] or None,
        protocol=front.get("protocol"),
        leader=front.get("leader"),
        state_timestamp_ms=None if state_timestamp_ms == -1 else state_timestamp_ms,
        is_placeholder=not members and not front["protocol_type"] and front["generation"] == 0,
    )


def _modern_step(group: ModernGroupRecords, before: Kind | None) -> Membership:
    topology = group.topology or {}
    return _EMPTY._replace(
        kind=group.kind,
        members=group.members(),
        group_epoch=group.epochs.get("group_epoch"),
        target_epoch=group.target_epoch,
        assignment_timestamp_ms=group.assignment_timestamp_ms,
        topic_metadata=(group.epochs.get("metadata_hash"), group.topics),
        initialized=group.initialized,
        topology_epoch=topology.get("topology_epoch"),
        subtopologies=group.subtopologies(),
        standby_replicas=group.standby_replicas(),
        converted_from=before if before not in (None, group.kind) else None,
    )
