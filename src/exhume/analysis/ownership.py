"""Who owned which partition, when: intervals, from the record that gave a partition to a member to the one that took it away.

A classic group writes down who owns what when the leader's assignment is stored, and again with the next generation; that members had to
stop in between to join anew is not in the log, and neither are generations that never got an assignment. So an interval begins then, and
ends at its end or before it: `ended` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from exhume.analysis.log_spans import LogSpan, LogSpans
from exhume.analysis.member_changes import was_recreated
from exhume.analysis.memberships import Member, Membership, TopicPartition, is_before_cut
from exhume.arrow_rows import Int32, OfLog, Origin, schema_of, table_of
from exhume.codecs.wire import is_uuid


class OwnerRow(OfLog):
    """One row per interval: a partition, a group, and a member that had it all the time, or nobody.

    It begins with `from_record_offset` and ends in front of `to_record_offset`; null where it lasts to the end of the log, and
    `to_timestamp_ms` is the latest time in the log then. `generation` and `group_epoch` are those of the first record, `last_generation`
    and `last_group_epoch` of the last one that repeats it.

    `holding` is assigned, away (kept for a static member of a consumer group that left for now), pending_revocation (it has to give it up,
    and nobody else may have it yet), or nobody, with a `reason`: empty (the group has no member), unassigned, removed (the group is gone),
    unknown (members whose bytes tell nothing, or topics that go by ids without a name). Nobody is told only of partitions that somebody had
    before. `overlaps` are members that had it as well for a while, which is an error but in a share group. `began` is then, or earlier
    where records may be missing in front of it; `ended` is then, or earlier where generations without a record lie in between; null where
    it has not ended.
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


def owners(
    memberships: Iterable[Membership],
    spans: LogSpans,
    *,
    wanted: Callable[[str, int], bool] | None = None,
    ends: Mapping[Origin, int] | None = None,
) -> pa.Table:
    """Who had which partition when, as `OWNERS`, by group, topic, partition and time.

    `memberships` are the steps of any number of groups, those of each in the order of the log. `spans` say from where on logs are complete,
    and when they end. `wanted` says of which topic and partition; default: all. `ends`, where they are given, leave what holds where each
    log is cut off, in front of such a record offset; a log that is not among them is whole.
    """
    groups: dict[tuple[str | None, int | None, str], _GroupOwnership] = {}
    cuts: dict[Origin, int] = {}
    for step in memberships:
        slot = (*step.origin, step.group)
        if slot not in groups:
            groups[slot] = _GroupOwnership(wanted, spans.get(step.origin))
        groups[slot].take(step)
        if ends is not None and not is_before_cut(step, ends):
            cuts.setdefault(step.origin, step.record_offset)
    rows: list[OwnerRow] = []
    for life in groups.values():
        rows += life.finish()
    if ends is not None:
        rows = [row for row in rows if _holds(row, cuts.get((row["replica"], row["offsets_partition"])))]
    rows.sort(key=_place)
    return table_of(OWNERS, rows)


@dataclass(slots=True)
class _Interval:
    """An interval on its way to be a row, and the members that had the partition as well for a while."""

    row: OwnerRow
    overlaps: set[str] = field(default_factory=set)

    def ended(self, end_ms: int | None) -> OwnerRow:
        """The row of this interval, which ended at this time."""
        began_ms = self.row["from_timestamp_ms"]
        duration_ms = None if end_ms is None or began_ms is None else max(end_ms - began_ms, 0)
        return self.row | {"to_timestamp_ms": end_ms, "duration_ms": duration_ms, "overlaps": sorted(self.overlaps)}


def _holds(row: OwnerRow, cut: int | None) -> bool:
    """Whether this interval lasts where the log is cut off: in front of the step that begins here or, without one, at its end."""
    end = row["to_record_offset"]
    return end is None if cut is None else row["from_record_offset"] < cut and (end is None or end >= cut)


@dataclass(slots=True)
class _GroupOwnership:
    """One group on its way past: the intervals that are open, by partition and then by member id, None for nobody."""

    wanted: Callable[[str, int], bool] | None
    span: LogSpan | None
    rows: list[OwnerRow] = field(default_factory=list)
    _open: dict[TopicPartition, dict[str | None, _Interval]] = field(default_factory=dict)
    _before: Membership | None = None
    #: Topics by their names, or their ids where these are all that is known, of steps that have ids.
    _by_id: set[str] = field(default_factory=set)

    def take(self, step: Membership) -> None:
        owners = self._owners(step)
        began = "then" if self._is_seen_to_begin(step) else "earlier"
        if step.kind != "classic":
            self._by_id.update(topic for topic, _ in owners)
        has_nameless = bool(step.nameless_topics)
        ended = "earlier" if _has_gap(self._before, step) else "then"
        self._before = step
        for topic_partition in [*self._open, *(new for new in owners if new not in self._open)]:
            held = self._open.setdefault(topic_partition, {})
            reason = _reason(step, is_hidden=self._may_go_by_another_name(step, topic_partition[0], has_nameless=has_nameless))
            now: dict[str | None, tuple[Member | None, str]] = {**owners.get(topic_partition, {})}
            if not now and held:
                now = {None: (None, "nobody")}
            for member_id in [*held]:
                row = held[member_id].row
                if member_id not in now or row["holding"] != now[member_id][1] or (member_id is None and row["reason"] != reason):
                    self._end(held.pop(member_id), step, ended)
            new = now.keys() - held.keys()
            for member_id, (member, holding) in now.items():
                if member_id in held:
                    held[member_id].row |= {"last_generation": step.generation, "last_group_epoch": step.group_epoch}
                else:
                    row = _begun(step, topic_partition, member, holding)
                    held[member_id] = _Interval(row | {"began": began, "reason": reason if member is None else None})
            if new and len(now) > 1:
                for member_id, interval in held.items():
                    interval.overlaps.update(other for other in (now if member_id in new else new) if other not in (None, member_id))

    def finish(self) -> list[OwnerRow]:
        end_ms = None if self.span is None else self.span.last_timestamp_ms
        self.rows += [interval.ended(end_ms) for held in self._open.values() for interval in held.values()]
        return self.rows

    def _is_seen_to_begin(self, step: Membership) -> bool:
        """Whether no record is missing that could have given somebody what this step gives."""
        before = self._before
        if self.span is not None and self.span.is_complete_behind(None if before is None else before.record_offset):
            return True
        if before is None or before.is_tombstone:
            return step.is_beginning
        # A member of another kind may have got it within an epoch, by a record that a later one has replaced.
        return step.generation is not None and not _has_gap(before, step)

    def _may_go_by_another_name(self, step: Membership, topic: str, *, has_nameless: bool) -> bool:
        """Whether this step may mean the topic by its name where others mean it by its id, or the other way round."""
        if step.kind == "classic":
            return topic in self._by_id and is_uuid(topic)
        return has_nameless and topic not in self._by_id

    def _owners(self, step: Membership) -> dict[TopicPartition, dict[str | None, tuple[Member | None, str]]]:
        owners: dict[TopicPartition, dict[str | None, tuple[Member | None, str]]] = {}
        for member in step.members.values():
            for holding, partitions in (
                ("away" if member.is_away else "assigned", member.assigned or ()),
                ("pending_revocation", member.pending_revocation),
            ):
                for topic_partition in partitions:
                    if self.wanted is None or self.wanted(*topic_partition):
                        owners.setdefault(topic_partition, {})[member.member_id] = (member, holding)
        return owners

    def _end(self, interval: _Interval, step: Membership, how: str) -> None:
        self.rows.append(interval.ended(step.timestamp_ms) | {"to_record_offset": step.record_offset, "ended": how})


def _begun(step: Membership, topic_partition: TopicPartition, member: Member | None, holding: str) -> OwnerRow:
    return {
        "replica": step.replica,
        "offsets_partition": step.offsets_partition,
        "group": step.group,
        "group_type": step.kind,
        "topic": topic_partition[0],
        "partition": topic_partition[1],
        "from_record_offset": step.record_offset,
        "to_record_offset": None,
        "from_timestamp_ms": step.timestamp_ms,
        "to_timestamp_ms": None,
        "duration_ms": None,
        "holding": holding,
        "reason": None,
        "member_id": None if member is None else member.member_id,
        "group_instance_id": None if member is None else member.group_instance_id,
        "client_id": None if member is None else member.client_id,
        "client_host": None if member is None else member.client_host,
        "generation": step.generation,
        "last_generation": step.generation,
        "group_epoch": step.group_epoch,
        "last_group_epoch": step.group_epoch,
        "began": "then",
        "ended": None,
        "overlaps": [],
    }


def _reason(step: Membership, *, is_hidden: bool) -> str:
    """Why nobody has a partition; `is_hidden` where somebody may have it by the id of its topic."""
    if step.is_tombstone:
        return "removed"
    if step.is_empty:
        return "empty"
    return "unknown" if step.is_opaque or is_hidden else "unassigned"


def _has_gap(before: Membership | None, step: Membership) -> bool:
    """True where a classic group had generations in between that left no record."""
    if before is None or before.generation is None or step.generation is None:
        return False
    return step.generation > before.generation + 1 or was_recreated(before, step)


def _place(row: OwnerRow) -> tuple[str, str, str, int, int, str]:
    return (row["group"], str(row["replica"]), row["topic"], row["partition"], row["from_record_offset"], str(row["member_id"]))
