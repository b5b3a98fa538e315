"""The owners of partitions over time: intervals from the record that assigned a partition to a member to the record that took it away.

A classic group stores its owners with the leader's assignment, and again with the next generation. The log does not show that members
stopped in between to join again, nor generations without an assignment. So an interval begins with the record, and ends with the next one
or earlier: `ended` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa

from exhume.analysis.log_extent import LogExtent, LogExtents
from exhume.analysis.member_changes import was_recreated
from exhume.analysis.memberships import Kind, MemberName, Membership, TopicPartition, is_before_cut
from exhume.arrow_rows import Int32, OfLog, Origin, batches_of, schema_of, table_of
from exhume.codecs.wire import is_uuid


class OwnerRow(OfLog):
    """One row per interval: a partition, a group, and the member that owned it all the time, or none.

    The interval begins with `from_record_offset` and ends before `to_record_offset`. At the end of the log that is null, and
    `to_timestamp_ms` is the latest time in the log. `generation` and `group_epoch` are those of the first record, `last_generation` and
    `last_group_epoch` of the last one that repeats it.

    `holding` is assigned, away (kept for a static member of a consumer group that left for now), pending_revocation (the member has to give
    it up, and no other member may own it yet), or, without an owner, the fourth value with a `reason`: empty (the group has no member),
    unassigned, removed (the group is gone), unknown (unreadable assignments, or topics whose ids have no known name). An interval without
    an owner follows one with an owner. `overlaps` are members that owned it as well for a while, which is an error except in a share group.
    `began` is then, or earlier if records before it may be missing; `ended` is then, or earlier if generations without a record came in
    between, and null if the interval has not ended.
    """

    group: str
    group_type: str
    topic: str
    partition: Int32
    from_record_offset: int
    to_record_offset: int | None
    from_timestamp_ms: int | None
    to_timestamp_ms: int | None
    duration_ms: int | None
    holding: str
    reason: str | None
    member_id: str | None
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None
    generation: Int32 | None
    last_generation: Int32 | None
    group_epoch: Int32 | None
    last_group_epoch: Int32 | None
    began: str
    ended: str | None
    overlaps: list[str]


OWNERS = schema_of(OwnerRow)

#: A group of one log: replica, offsets partition, group.
_Slot = tuple[str | None, int | None, str]


def owners(
    memberships: Iterable[Membership],
    extents: LogExtents,
    *,
    wanted: Callable[[str, int], bool] | None = None,
    ends: Mapping[Origin, int] | None = None,
) -> pa.Table:
    """Return the owners of partitions over time, as `OWNERS`, sorted by group, topic, partition and time.

    `memberships` are the steps of any number of groups, those of each in log order. `extents` say from which record offset logs are
    complete, and when they end. `wanted` selects topics and partitions; default: all. With `ends`, only the intervals that hold before the
    given record offset of each log; a log that is not in `ends` is whole.
    """
    groups: dict[_Slot, _GroupOwnership] = {}
    cuts: dict[Origin, int] = {}
    for step in memberships:
        slot = (*step.origin, step.group)
        if slot not in groups:
            groups[slot] = _GroupOwnership(wanted, extents.get(step.origin))
        groups[slot].take(step)
        if ends is not None and not is_before_cut(step, ends):
            cuts.setdefault(step.origin, step.record_offset)
    rows = _rows(groups)
    if ends is not None:
        rows = (row for row in rows if _holds(row, cuts.get((row["replica"], row["offsets_partition"]))))
    return pa.Table.from_batches(batches_of(OWNERS, rows), schema=OWNERS)


def _rows(groups: dict[_Slot, _GroupOwnership]) -> Iterator[OwnerRow]:
    """Yield the rows of these groups in the order of the table. Takes the groups away one by one: a topic has many."""
    for _, slots in groupby(sorted(groups, key=_name_of), key=_name_of):
        for interval in sorted((each for slot in slots for each in groups.pop(slot).finish()), key=_place):
            yield interval.row()


def _name_of(slot: _Slot) -> tuple[str, str]:
    return slot[2], str(slot[0])


class _Begin(NamedTuple):
    """The step with which intervals begin: what their rows have of it, once for all of them."""

    replica: str | None
    offsets_partition: int | None
    group: str
    kind: Kind
    record_offset: int
    timestamp_ms: int | None
    generation: int | None
    group_epoch: int | None


class _Holder(NamedTuple):
    """What a step says of one owner of a partition, or, without a name, that it has none and why."""

    holding: str
    name: MemberName | None
    reason: str | None


@dataclass(slots=True)
class _Interval:
    """An interval before it becomes a row, which takes ten times the memory.

    `last` are generation and group epoch of the last record that repeats the interval; `overlaps` are the members that owned the partition
    at the same time. The interval ended before the record `end`, where the log has one.
    """

    begin: _Begin
    topic_partition: TopicPartition
    holder: _Holder
    began: str
    last: tuple[int | None, int | None]
    overlaps: frozenset[str] = frozenset()
    end: int | None = None
    end_ms: int | None = None
    ended: str | None = None

    def row(self) -> OwnerRow:
        """Return the row of this interval."""
        begin, end_ms = self.begin, self.end_ms
        duration_ms = None if end_ms is None or begin.timestamp_ms is None else max(end_ms - begin.timestamp_ms, 0)
        name = (None, None, None, None) if self.holder.name is None else self.holder.name
        return {
            "replica": begin.replica,
            "offsets_partition": begin.offsets_partition,
            "group": begin.group,
            "group_type": begin.kind,
            "topic": self.topic_partition[0],
            "partition": self.topic_partition[1],
            "from_record_offset": begin.record_offset,
            "to_record_offset": self.end,
            "from_timestamp_ms": begin.timestamp_ms,
            "to_timestamp_ms": end_ms,
            "duration_ms": duration_ms,
            "holding": self.holder.holding,
            "reason": self.holder.reason,
            "member_id": name[0],
            "group_instance_id": name[1],
            "client_id": name[2],
            "client_host": name[3],
            "generation": begin.generation,
            "last_generation": self.last[0],
            "group_epoch": begin.group_epoch,
            "last_group_epoch": self.last[1],
            "began": self.began,
            "ended": self.ended,
            "overlaps": sorted(self.overlaps),
        }


def _holds(row: OwnerRow, cut: int | None) -> bool:
    """True if this interval lasts at the cut of its log: before the step at the cut, or at the end of the log without such a step."""
    end = row["to_record_offset"]
    return end is None if cut is None else row["from_record_offset"] < cut and (end is None or end >= cut)


#: The owners of one partition by member id. The key None stands for no owner.
_Holders = dict[str | None, _Holder]


@dataclass(slots=True)
class _GroupOwnership:
    """The open intervals of one group, by partition and then by member id; None stands for no owner."""

    wanted: Callable[[str, int], bool] | None
    extent: LogExtent | None
    _ended: list[_Interval] = field(default_factory=list)
    _open: dict[TopicPartition, dict[str | None, _Interval]] = field(default_factory=dict)
    _before: Membership | None = None
    #: Topics of steps that have topic ids: by name, or by id if no name is known.
    _by_id: set[str] = field(default_factory=set)

    def take(self, step: Membership) -> None:
        owners = self._owners(step)
        began = "then" if self._begins_here(step) else "earlier"
        ended = "earlier" if _has_gap(self._before, step) else "then"
        if step.kind != "classic":
            self._by_id.update(topic for topic, _ in owners)
        has_nameless = bool(step.nameless_topics)
        begin, last = _Begin(*step[:5], step.timestamp_ms, step.generation, step.group_epoch), (step.generation, step.group_epoch)
        self._before = step
        for topic_partition in [*self._open, *(new for new in owners if new not in self._open)]:
            held = self._open.setdefault(topic_partition, {})
            now = owners.get(topic_partition, {})
            if not now and held:
                is_hidden = self._may_have_another_name(step, topic_partition[0], has_nameless=has_nameless)
                now = {None: _Holder("nobody", None, _reason(step, is_hidden=is_hidden))}  # plain: a value of the column holding
            for member_id in [*held]:
                if not _goes_on(held[member_id].holder, now.get(member_id)):
                    self._end(held.pop(member_id), step, ended)
            new = now.keys() - held.keys()
            for member_id, holder in now.items():
                if member_id in held:
                    held[member_id].last = last
                else:
                    held[member_id] = _Interval(begin, topic_partition, holder, began, last)
            _note_overlaps(held, new)

    def _end(self, interval: _Interval, step: Membership, how: str) -> None:
        interval.end, interval.end_ms, interval.ended = step.record_offset, step.timestamp_ms, how
        self._ended.append(interval)

    def finish(self) -> list[_Interval]:
        """Return all intervals. Those that are open last to the end of the log."""
        is_open = [interval for held in self._open.values() for interval in held.values()]
        for interval in is_open:
            interval.end_ms = None if self.extent is None else self.extent.last_timestamp_ms
        return self._ended + is_open

    def _begins_here(self, step: Membership) -> bool:
        """True if no record is missing that could have given these partitions to their owners earlier."""
        before = self._before
        if self.extent is not None and self.extent.is_complete_after(None if before is None else before.record_offset):
            return True
        if before is None or before.is_tombstone:
            return step.is_beginning
        # A member of a modern group may have got it within the epoch, by a record that a later one has replaced.
        return step.generation is not None and not _has_gap(before, step)

    def _may_have_another_name(self, step: Membership, topic: str, *, has_nameless: bool) -> bool:
        """True if this step may name the topic where others have its id, or the other way round."""
        if step.kind == "classic":
            return topic in self._by_id and is_uuid(topic)
        return has_nameless and topic not in self._by_id

    def _owners(self, step: Membership) -> dict[TopicPartition, _Holders]:
        owners: dict[TopicPartition, _Holders] = {}
        for member in step.members.values():
            for holding, partitions in (
                ("away" if member.is_away else "assigned", member.assigned or ()),
                ("pending_revocation", member.pending_revocation),
            ):
                holder = _Holder(holding, member.name, None)
                for topic_partition in partitions:
                    if self.wanted is None or self.wanted(*topic_partition):
                        owners.setdefault(topic_partition, {})[member.member_id] = holder
        return owners


def _goes_on(before: _Holder, now: _Holder | None) -> bool:
    """Return True if a step that says `now` of the owner continues the interval. A member may get another client or host."""
    return now is not None and before.holding == now.holding and before.reason == now.reason


def _note_overlaps(held: Mapping[str | None, _Interval], new: set[str | None]) -> None:
    """Note the other owners in each interval, if one of these owners is new and not the only one."""
    if not new or len(held) == 1:
        return
    for member_id, interval in held.items():
        interval.overlaps |= {other for other in (held if member_id in new else new) if other is not None and other != member_id}


def _reason(step: Membership, *, is_hidden: bool) -> str:
    """Return why a partition has no owner. `is_hidden`: a member may own it under the id of its topic."""
    if step.is_tombstone:
        return "removed"
    if step.is_empty:
        return "empty"
    return "unknown" if step.is_opaque or is_hidden else "unassigned"


def _has_gap(before: Membership | None, step: Membership) -> bool:
    """True if a classic group had generations without a record between the two steps."""
    if before is None or before.generation is None or step.generation is None:
        return False
    return step.generation > before.generation + 1 or was_recreated(before, step)


def _place(interval: _Interval) -> tuple[str, str, str, int, int, str]:
    begin, name = interval.begin, interval.holder.name
    return (begin.group, str(begin.replica), *interval.topic_partition, begin.record_offset, str(name and name.member_id))


def within(table: pa.Table, from_ms: int | None, to_ms: int | None) -> pa.Table:
    """Return the intervals of `OWNERS` that hold at some time of this range, both ends included; those without a time stay."""
    rows: list[OwnerRow] = table.to_pylist()
    kept = [
        place
        for place, row in enumerate(rows)
        if (from_ms is None or row["to_timestamp_ms"] is None or row["to_timestamp_ms"] >= from_ms)
        and (to_ms is None or row["from_timestamp_ms"] is None or row["from_timestamp_ms"] <= to_ms)
    ]
    return table.take(pa.array(kept, pa.int64()))


def clipped(table: pa.Table, from_ms: int | None, to_ms: int | None) -> pa.Table:
    """Return `within` with intervals that begin and end in the range: one that goes on after it has no end, as at the end of a log."""
    rows: list[OwnerRow] = within(table, from_ms, to_ms).to_pylist()
    for row in rows:
        begin, end = row["from_timestamp_ms"], row["to_timestamp_ms"]
        if from_ms is not None and begin is not None and begin < from_ms:
            row["from_timestamp_ms"] = from_ms
        if to_ms is not None and end is not None and end > to_ms:
            row["to_timestamp_ms"], row["to_record_offset"], row["ended"] = to_ms, None, None
    return table_of(OWNERS, rows)
