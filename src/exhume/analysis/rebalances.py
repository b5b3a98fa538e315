"""Rebalances: every generation or group epoch of a group, its causes as far as the log shows them, the changed members, and moved
partitions.

A classic group writes a record when its leader's assignment is stored, and when its last member has left. Joins, waiting, and generations
without an assignment leave only a gap in the numbers. A consumer, share or streams group has an epoch for every change and a target
assignment for it a little later; it is reconciled when every member has its target. Such an epoch is one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from exhume.analysis.log_extent import LogExtent, LogExtents
from exhume.analysis.member_changes import MemberChanges, client_of, member_changes, moved_partitions, was_recreated
from exhume.analysis.memberships import Member, Membership, TopicPartition
from exhume.analysis.rebalance_rows import REBALANCES, RebalanceRow, storm_rows
from exhume.arrow_rows import table_of

#: Events that increase the generation or epoch.
REBALANCE_EVENTS = ("rebalance", "emptied", "converted")
#: Protocols whose members keep their partitions, or tasks, while they rebalance.
_COOPERATIVE = ("cooperative-sticky", "stream", "compatible", "sessioned")


def rebalances(memberships: Iterable[Membership], extents: LogExtents) -> pa.Table:
    """Return the rebalances of these groups as `REBALANCES`, group by group.

    `memberships` are the steps of any number of groups, those of each in log order. `extents` say from which offset logs are complete; a
    log that is not in it is complete nowhere.
    """
    groups: dict[tuple[str | None, int | None, str], _GroupRebalances] = {}
    for step in memberships:
        slot = (*step.origin, step.group)
        if slot not in groups:
            groups[slot] = _GroupRebalances(extents.get(step.origin))
        groups[slot].take(step)
    rows: list[RebalanceRow] = []
    for life in groups.values():
        rows += storm_rows(life.finish())
    rows.sort(key=lambda row: (row["group"], str(row["replica"]), row["record_offset"]))
    return table_of(REBALANCES, rows)


@dataclass(slots=True)
class _GroupRebalances:
    """The rows of one group, step by step."""

    extent: LogExtent | None
    rows: list[RebalanceRow] = field(default_factory=list)
    before: Membership | None = None
    #: The time since which the group has no member; None if a missing record may have had members.
    empty_since_ms: int | None = None
    _epoch: _Epoch | None = None

    def take(self, step: Membership) -> None:
        before, self.before = self.before, step
        if step.is_tombstone:
            self._end_epoch()
            self.empty_since_ms = None
            self.rows.append(self._row(step, before, "removed"))
        elif step.kind == "classic":
            self._end_epoch()
            self.rows.append(self._classic_row(step, before))
        else:
            self._take_modern(step, before)

    def finish(self) -> list[RebalanceRow]:
        self._end_epoch()
        return self.rows

    def _row(self, step: Membership, before: Membership | None, event: str) -> RebalanceRow:
        is_complete = self.extent is not None and self.extent.is_complete_after(None if before is None else before.record_offset)
        return {
            "replica": step.replica,
            "offsets_partition": step.offsets_partition,
            "record_offset": step.record_offset,
            "last_record_offset": step.last_record_offset,
            "timestamp_ms": step.timestamp_ms,
            "group": step.group,
            "group_type": step.kind,
            "event": event,
            "causes": [],
            "generation": step.generation,
            "group_epoch": step.group_epoch,
            "skipped": None,
            "is_complete": is_complete,
            "protocol": step.protocol,
            "leader": step.leader,
            "members": len(step.members),
            "joined": None,
            "left": None,
            "joined_clients": None,
            "left_clients": None,
            "partitions": None,
            "partitions_moved": None,
            "partitions_lost": None,
            "no_assignment_ms": None,
            "no_assignment_is": None,
            "target_epoch": None,
            "target_record_offset": None,
            "reconciled_record_offset": None,
            "reconciliation_ms": None,
            "waiting": None,
            "is_storm": False,
            "path": step.path,
            "byte_position": step.byte_position,
        }

    def _classic_row(self, step: Membership, before: Membership | None) -> RebalanceRow:
        if step.is_placeholder:
            return self._row(step, before, "created") | {"causes": ["converted"] if step.converted_from else []}
        known = None if before is None or was_recreated(before, step) else before
        changes = member_changes(known, step)
        is_new_group = known is None or known.is_tombstone or known.is_placeholder
        event = _classic_event(step, None if is_new_group else known, changes)
        row = _changed(self._row(step, before, event), changes)
        row["skipped"] = _skipped(step, known)
        if is_new_group and (known is not None or row["is_complete"]):
            # The generations of a new group begin at 0.
            row["skipped"] = max((step.generation or 0) - 1, 0)
        _note_moves(row, known, step, changes)
        row["causes"] = _classic_causes(step, known, changes, row) if event in REBALANCE_EVENTS else []
        self._note_hidden(row)
        if event == "rebalance" and (self.empty_since_ms is not None or step.protocol not in _COOPERATIVE):
            _note_no_assignment(row, self.empty_since_ms, step.state_timestamp_ms, step.timestamp_ms)
        if not step.is_empty:
            self.empty_since_ms = None
        elif self.empty_since_ms is None:
            self.empty_since_ms = step.timestamp_ms if step.state_timestamp_ms is None else step.state_timestamp_ms
        return row

    def _note_hidden(self, row: RebalanceRow) -> None:
        """Forget `empty_since_ms` if generations or epochs before this row may be lost: members may have owned partitions in them."""
        if not row["is_complete"] and row["skipped"] != 0:
            self.empty_since_ms = None

    def _take_modern(self, step: Membership, before: Membership | None) -> None:
        epoch = self._epoch
        if step.group_epoch is None:
            # Compaction has left some of its records: a member that seems to join now was there all the time.
            return
        if before is not None and before.group_epoch is None and not before.is_tombstone and before.kind == step.kind:
            before = None
        if epoch is None or step.group_epoch != epoch.group_epoch or step.kind != epoch.kind:
            epoch = self._begin_epoch(step, before)
        elif before is not None:
            self._note_static_members(step, before, epoch)
        epoch.take(step)
        if step.is_empty:
            self.empty_since_ms = step.timestamp_ms if self.empty_since_ms is None else self.empty_since_ms
        elif step.owners() or step.is_opaque:
            self.empty_since_ms = None

    def _begin_epoch(self, step: Membership, before: Membership | None) -> _Epoch:
        baseline = before if self._epoch is None else self._epoch.known
        changes = member_changes(baseline, step)
        event = "converted" if step.converted_from else "emptied" if step.is_empty else "rebalance"
        row = _changed(self._row(step, baseline, event), changes)
        row["skipped"] = _skipped(step, baseline)
        row["causes"] = _modern_causes(step, baseline, changes, row)
        self._note_hidden(row)
        self._end_epoch()
        owners_before = {} if before is None else before.owners()
        self._epoch = _Epoch(step, step.group_epoch, step.kind, row, owners_before, self.empty_since_ms, step, changes.restarted)
        return self._epoch

    def _note_static_members(self, step: Membership, before: Membership, epoch: _Epoch) -> None:
        """Add a row if static members left for now, or returned under new member ids, within this epoch."""
        changes = member_changes(before, step)
        away = [member for member in step.members.values() if member.is_away and not _was_away(before, member)]
        if changes.restarted or away:
            event = "static_replacement" if changes.restarted else "static_away"
            self.rows.append(_changed(self._row(step, before, event), changes))
            epoch.note_restarted(changes.restarted, step)

    def _end_epoch(self) -> None:
        if self._epoch is not None:
            self.rows.append(self._epoch.finish())
            self._epoch = None


@dataclass(slots=True)
class _Epoch:
    """One group epoch of a modern group, until the next one."""

    opened_by: Membership
    group_epoch: int | None
    kind: str
    row: RebalanceRow
    owners_before: Mapping[TopicPartition, list[Member]]
    empty_since_ms: int | None
    #: `opened_by`, with restarted members under their new member ids.
    known: Membership
    #: Member ids before this epoch -> the new ids of members that have restarted since.
    restarted: Mapping[str, str]
    latest: Membership | None = None

    def note_restarted(self, restarted: Mapping[str, str], step: Membership) -> None:
        """Note members that returned under new member ids. They have a row of their own, and do not join or leave with the next epoch."""
        self.restarted = {**{old: restarted.get(new, new) for old, new in self.restarted.items()}, **restarted}
        members = [
            step.members[restarted[member_id]] if member_id in restarted else member for member_id, member in self.known.members.items()
        ]
        self.known = self.known._replace(members={member.member_id: member for member in members})

    def take(self, step: Membership) -> None:
        self.latest = step
        if self.group_epoch is None or step.target_epoch is None:
            return
        if self.row["target_record_offset"] is None and step.target_epoch >= self.group_epoch:
            targets = _targets(step)
            self.row |= {"target_epoch": step.target_epoch, "target_record_offset": step.record_offset, "partitions": len(targets)}
            is_comparable = "converted" not in self.row["causes"] or not step.nameless_topics
            if self.kind != "share" and self.owners_before and is_comparable:
                moved, lost = moved_partitions(_ids(self.owners_before), targets, self.restarted)
                self.row |= {"partitions_moved": moved, "partitions_lost": lost}
        if self.row["reconciled_record_offset"] is None and step.members and not waiting_members(step):
            began_ms, done_ms = self.opened_by.timestamp_ms, step.timestamp_ms
            self.row["reconciled_record_offset"] = step.record_offset
            self.row["reconciliation_ms"] = None if began_ms is None or done_ms is None else max(done_ms - began_ms, 0)
        if self.row["no_assignment_ms"] is None and not self.owners_before and step.owners():
            _note_no_assignment(self.row, self.empty_since_ms, self.opened_by.timestamp_ms, step.timestamp_ms)

    def finish(self) -> RebalanceRow:
        if self.latest is not None:
            if self.row["target_record_offset"] is None:
                self.row["target_epoch"] = self.latest.target_epoch
            if self.row["reconciled_record_offset"] is None:
                self.row["waiting"] = [member.member_id for member in waiting_members(self.latest)]
        return self.row


def waiting_members(step: Membership) -> list[Member]:
    """Return the members of a modern group that have not reached the target of its present epoch; all if the epoch has no target yet."""
    is_assigned = step.target_epoch is not None and step.target_epoch == step.group_epoch
    return [
        member
        for member in step.members.values()
        if not member.is_away and not (is_assigned and member.member_epoch == step.target_epoch and member.member_state == "stable")
    ]


def _was_away(step: Membership, member: Member) -> bool:
    known = step.members.get(member.member_id)
    return known is not None and known.is_away


def _changed(row: RebalanceRow, changes: MemberChanges) -> RebalanceRow:
    return row | {
        "joined": [member.member_id for member in changes.joined],
        "left": [member.member_id for member in changes.left],
        "joined_clients": [client_of(member) for member in changes.joined],
        "left_clients": [client_of(member) for member in changes.left],
    }


def _classic_event(step: Membership, before: Membership | None, changes: MemberChanges) -> str:
    """Return the event of this record of a classic group. `before` is the record before it of the same group; None if the group is new."""
    if step.converted_from:
        return "converted"
    if before is not None and before.generation == step.generation:
        return "static_replacement" if changes.restarted else "rewritten"
    return "emptied" if step.is_empty else "rebalance"


def _skipped(step: Membership, before: Membership | None) -> int | None:
    """Return the number of generations or epochs between the two; None before the first, and after the group was created again."""
    if before is None or before.is_tombstone or before.epoch is None or step.epoch is None or step.epoch < before.epoch:
        return None
    return max(step.epoch - before.epoch - 1, 0)


def _note_no_assignment(row: RebalanceRow, empty_since_ms: int | None, began_ms: int | None, done_ms: int | None) -> None:
    """Note the time without an assignment: since the group became Empty, or since this rebalance began, until it is done."""
    since_ms, how = (began_ms, "at_least") if empty_since_ms is None else (empty_since_ms, "exactly")
    if since_ms is not None and done_ms is not None:
        row |= {"no_assignment_ms": max(done_ms - since_ms, 0), "no_assignment_is": how}


def _note_moves(row: RebalanceRow, before: Membership | None, step: Membership, changes: MemberChanges) -> None:
    if step.is_opaque:
        return
    owners = _ids(step.owners())
    row["partitions"] = len(owners)
    if before is not None and not before.is_opaque and not before.nameless_topics:
        moved, lost = moved_partitions(_ids(before.owners()), owners, changes.restarted)
        row |= {"partitions_moved": moved, "partitions_lost": lost}


def _ids(owners: Mapping[TopicPartition, list[Member]]) -> dict[TopicPartition, set[str]]:
    return {topic_partition: {member.member_id for member in members} for topic_partition, members in owners.items()}


def _targets(step: Membership) -> dict[TopicPartition, set[str]]:
    targets: dict[TopicPartition, set[str]] = {}
    for member in step.members.values():
        for topic_partition in member.target or ():
            targets.setdefault(topic_partition, set()).add(member.member_id)
    return targets


def _classic_causes(step: Membership, before: Membership | None, changes: MemberChanges, row: RebalanceRow) -> list[str]:
    if before is None or before.is_tombstone or before.is_placeholder:
        is_first = step.is_beginning or row["is_complete"] or (before is not None and before.is_placeholder)
        return ["group_began" if is_first else "first_seen"]
    causes = ["converted"] if step.converted_from else []
    causes += changes.causes
    if before.protocol != step.protocol and before.protocol is not None and step.protocol is not None:
        causes.append("protocol_changed")
    if before.leader != step.leader and before.leader is not None and step.leader is not None:
        causes.append("leader_changed")
    if not causes and any(topic_partition in step.owners() for topic_partition in _given_up(before)):
        causes.append("cooperative_follow_up")
    return causes or ["unknown"]


def _given_up(step: Membership) -> set[TopicPartition]:
    """Return the partitions that members claimed when they joined this generation, and that no member owns in it."""
    return {topic_partition for member in step.members.values() for topic_partition in member.claimed or ()} - step.owners().keys()


def _modern_causes(step: Membership, before: Membership | None, changes: MemberChanges, row: RebalanceRow) -> list[str]:
    if before is None or before.is_tombstone:
        return ["group_began" if step.is_beginning or row["is_complete"] else "first_seen"]
    causes = ["converted"] if step.converted_from else []
    causes += changes.causes
    if before.topology_epoch is not None and step.topology_epoch != before.topology_epoch:
        causes.append("topology_changed")
    if step.initialized is not None and before.initialized is not None and step.initialized - before.initialized:
        causes.append("partitions_initialized")
    if not causes and step.topic_metadata != before.topic_metadata:
        causes.append("topics_changed")
    return causes or ["unknown"]


def rebalances_sentence(table: pa.Table) -> str:
    """Return the number of rebalances as one sentence."""
    every_row: list[RebalanceRow] = table.to_pylist()
    rows = [row for row in every_row if row["event"] in REBALANCE_EVENTS]
    skipped = sum(row["skipped"] or 0 for row in rows if row["is_complete"])
    unsure = sum(row["skipped"] or 0 for row in rows if not row["is_complete"])
    groups = len({row["group"] for row in rows})
    parts = [f"{len(rows)} {'rebalance' if len(rows) == 1 else 'rebalances'} of {groups} {'group' if groups == 1 else 'groups'}"]
    if skipped:
        parts.append(f"{skipped} more never got an assignment")
    if unsure:
        parts.append(f"{unsure} more were never stored, or their records are gone")
    return "; ".join(parts)
