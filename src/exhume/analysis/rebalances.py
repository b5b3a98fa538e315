"""Rebalances: every generation, or group epoch, of a group; why it came as far as the log shows, who came and went, what moved.

A classic group writes a record when its leader's assignment is stored, and when its last member is gone. Joining, waiting and generations
that never got an assignment leave nothing but a gap in the numbers. A consumer, share or streams group has an epoch for every change, a
target for it a little later, and is reconciled when every member has what its target says: these are one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pyarrow as pa

from exhume.analysis.log_spans import LogSpan, LogSpans
from exhume.analysis.member_changes import MemberChanges, began_anew, client_of, member_changes, moved_partitions
from exhume.analysis.memberships import Member, Membership, TopicPartition
from exhume.analysis.storms import storm_rows, storms
from exhume.arrow_rows import table_of
from exhume.findings import Finding

#: One row per generation of a classic group that was stored, one per epoch of another, and one for each other event of its life.
#:
#: `event` is rebalance, emptied (the last member went), static_replacement (a static member came back under another member id, nothing was
#: shared out anew), static_away (it left for now), rewritten (the same once more), created (a record without anybody), converted (to this
#: group type), or removed.
#:
#: `causes` are, as far as two records tell: group_began, first_seen (what was before, if anything, is not in the log), member_joined,
#: member_left, member_restarted (the same client and host, or instance, under another member id), subscription_changed, protocol_changed,
#: leader_changed, cooperative_follow_up (partitions given up in the generation before find their owners), topics_changed,
#: topology_changed, partitions_initialized (a share group has more partitions to give), converted, unknown. The number of `skipped`
#: generations, or epochs, between this row and the one before: where `is_complete` says that nothing can be missing in between, they are
#: rebalances that never got an assignment.
#:
#: `joined` and `left` are member ids, beside them their clients: `#instance`, or client id and host. `partitions` are assigned, or in the
#: target; `partitions_moved` have another owner than before, `partitions_lost` none any more.
#:
#: `no_assignment_ms` is for how long nobody had a partition: `exactly`, from the moment the group became Empty on; `at_least`, from the
#: choice of the leader on (what came before it, while members joined, is not in the log). `reconciliation_ms` counts from the epoch to the
#: batch in which every member had reached its target; where that never came, `waiting` are the members that had not, at the next epoch or
#: at the end. A row is part of a storm where generations rose by one a minute or faster for ten minutes, and somebody came and went, or
#: most of them came without any change.
REBALANCES = pa.schema(
    [
        ("replica", pa.string()),
        ("offsets_partition", pa.int32()),
        ("record_offset", pa.int64()),
        ("last_record_offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("group", pa.string()),
        ("group_type", pa.string()),
        ("event", pa.string()),
        ("causes", pa.list_(pa.string())),
        ("generation", pa.int32()),
        ("group_epoch", pa.int32()),
        ("skipped", pa.int64()),
        ("is_complete", pa.bool_()),
        ("protocol", pa.string()),
        ("leader", pa.string()),
        ("members", pa.int32()),
        ("joined", pa.list_(pa.string())),
        ("left", pa.list_(pa.string())),
        ("joined_clients", pa.list_(pa.string())),
        ("left_clients", pa.list_(pa.string())),
        ("partitions", pa.int32()),
        ("partitions_moved", pa.int32()),
        ("partitions_lost", pa.int32()),
        ("no_assignment_ms", pa.int64()),
        ("no_assignment_is", pa.string()),
        ("target_epoch", pa.int32()),
        ("target_record_offset", pa.int64()),
        ("reconciled_record_offset", pa.int64()),
        ("reconciliation_ms", pa.int64()),
        ("waiting", pa.list_(pa.string())),
        ("is_storm", pa.bool_()),
        ("path", pa.string()),
        ("byte_position", pa.int64()),
    ]
)

#: Events that raise the generation or epoch.
REBALANCE_EVENTS = ("rebalance", "emptied", "converted")

_Row = dict[str, Any]


def rebalances(memberships: Iterable[Membership], spans: LogSpans) -> pa.Table:
    """The rebalances of these groups as `REBALANCES`, group by group.

    `memberships` are the steps of any number of groups, those of each in the order of the log. `spans` say from which offset on logs are
    complete; a log that is not in it is nowhere.
    """
    groups: dict[tuple[str | None, int | None, str], _GroupRebalances] = {}
    for step in memberships:
        slot = (*step.origin, step.group)
        if slot not in groups:
            groups[slot] = _GroupRebalances(spans.get(step.origin))
        groups[slot].take(step)
    rows: list[_Row] = []
    for life in groups.values():
        rows += storm_rows(life.finish())
    return table_of(REBALANCES, sorted(rows, key=lambda row: (row["group"], str(row["replica"]), row["record_offset"])))


def storm_findings(table: pa.Table) -> Iterator[Finding]:
    """A finding for each storm in `REBALANCES`."""
    for _, rows in groupby(table.to_pylist(), key=lambda row: (row["group"], row["replica"], row["offsets_partition"])):
        for storm in storms(rows):
            first, last = storm.rows[0], storm.rows[-1]
            yield Finding(
                code="rebalance_storm",
                severity="warn",
                confidence="proof" if storm.flappers else "likely",
                replica=first["replica"],
                offsets_partition=first["offsets_partition"],
                group=first["group"],
                first_record_offset=first["record_offset"],
                last_record_offset=last["last_record_offset"],
                first_timestamp_ms=first["timestamp_ms"],
                last_timestamp_ms=last["timestamp_ms"],
                sentence=storm.sentence,
                evidence=[{"record_offset": row["record_offset"], "generation": row["generation"]} for row in storm.rows],
            )


@dataclass(slots=True)
class _GroupRebalances:
    """One group on its way past."""

    span: LogSpan | None
    rows: list[_Row] = field(default_factory=list)
    before: Membership | None = None
    #: Since when the group has had no member, and nobody can have been in it unseen.
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

    def finish(self) -> list[_Row]:
        self._end_epoch()
        return self.rows

    def _row(self, step: Membership, before: Membership | None, event: str, **more: Any) -> _Row:
        is_complete = self.span is not None and self.span.is_complete_behind(None if before is None else before.record_offset)
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
            "is_complete": is_complete,
            "protocol": step.protocol,
            "leader": step.leader,
            "members": len(step.members),
            "path": step.path,
            "byte_position": step.byte_position,
            **more,
        }

    def _classic_row(self, step: Membership, before: Membership | None) -> _Row:
        if step.is_placeholder:
            return self._row(step, before, "created", causes=["converted"] if step.converted_from else [])
        known = None if before is None or began_anew(before, step) else before
        changes = member_changes(known, step)
        is_new_life = known is None or known.is_tombstone or known.is_placeholder
        if step.converted_from:
            event = "converted"
        elif known is not None and not is_new_life and known.generation == step.generation:
            event = "static_replacement" if changes.restarted else "rewritten"
        else:
            event = "emptied" if step.is_empty else "rebalance"
        row = self._row(step, before, event, skipped=_skipped(step, known), **_changed(changes))
        if is_new_life and (known is not None or row["is_complete"]):
            # The count of a life begins at 0.
            row["skipped"] = max((step.generation or 0) - 1, 0)
        row |= _moves(known, step, changes)
        row["causes"] = _classic_causes(step, known, changes, row) if event in REBALANCE_EVENTS else []
        self._note_hidden(row)
        if step.is_empty:
            if self.empty_since_ms is None:
                self.empty_since_ms = step.timestamp_ms if step.state_timestamp_ms is None else step.state_timestamp_ms
        else:
            if event == "rebalance":
                row |= _no_assignment(self.empty_since_ms, step.state_timestamp_ms, step.timestamp_ms)
            self.empty_since_ms = None
        return row

    def _note_hidden(self, row: _Row) -> None:
        """Where generations, or epochs, in front of this row may be lost, somebody may have had partitions in them."""
        if not row["is_complete"] and row["skipped"] != 0:
            self.empty_since_ms = None

    def _take_modern(self, step: Membership, before: Membership | None) -> None:
        epoch = self._epoch
        if step.group_epoch is None:
            # Compaction has left some of its records: who seems to come now was there all the time.
            return
        if before is not None and before.group_epoch is None and not before.is_tombstone and before.kind == step.kind:
            before = None
        if epoch is None or step.group_epoch != epoch.group_epoch or step.kind != epoch.kind:
            baseline = epoch.known if epoch is not None else before
            changes = member_changes(baseline, step)
            event = "converted" if step.converted_from else "emptied" if step.is_empty else "rebalance"
            row = self._row(step, baseline, event, skipped=_skipped(step, baseline), **_changed(changes))
            row["causes"] = _modern_causes(step, baseline, changes, row)
            self._note_hidden(row)
            self._end_epoch()
            owners_before = {} if before is None else before.owners()
            self._epoch = epoch = _Epoch(
                step, step.group_epoch, step.kind, row, owners_before, self.empty_since_ms, step, changes.restarted
            )
        elif before is not None:
            changes = member_changes(before, step)
            away = [member for member in step.members.values() if member.is_away and not _was_away(before, member)]
            if changes.restarted or away:
                event = "static_replacement" if changes.restarted else "static_away"
                self.rows.append(self._row(step, before, event, **_changed(changes)))
                epoch.note_restarted(changes.restarted, step)
        epoch.take(step)
        if step.is_empty:
            self.empty_since_ms = step.timestamp_ms if self.empty_since_ms is None else self.empty_since_ms
        elif step.owners() or step.is_opaque:
            self.empty_since_ms = None

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
    row: _Row
    owners_before: Mapping[TopicPartition, list[Member]]
    empty_since_ms: int | None
    #: As `opened_by`, with members that came back since under the member ids that they have now.
    known: Membership
    #: Member ids that came back since the step in front of this epoch, to those that they have now.
    restarted: Mapping[str, str]
    latest: Membership | None = None

    def note_restarted(self, restarted: Mapping[str, str], step: Membership) -> None:
        """Members came back under other member ids, which a row of its own tells: they neither join nor leave with the next epoch."""
        self.restarted = {**{old: restarted.get(new, new) for old, new in self.restarted.items()}, **restarted}
        members = [
            step.members[restarted[member_id]] if member_id in restarted else member for member_id, member in self.known.members.items()
        ]
        self.known = self.known._replace(members={member.member_id: member for member in members})

    def take(self, step: Membership) -> None:
        self.latest = step
        if self.group_epoch is None or step.target_epoch is None:
            return
        if "target_record_offset" not in self.row and step.target_epoch >= self.group_epoch:
            targets = _targets(step)
            self.row |= {"target_epoch": step.target_epoch, "target_record_offset": step.record_offset, "partitions": len(targets)}
            is_comparable = "converted" not in self.row["causes"] or not step.nameless_topics
            if self.kind != "share" and self.owners_before and is_comparable:
                self.row |= moved_partitions(_ids(self.owners_before), targets, self.restarted)
        if "reconciled_record_offset" not in self.row and step.members and not waiting_members(step):
            began_ms, done_ms = self.opened_by.timestamp_ms, step.timestamp_ms
            self.row["reconciled_record_offset"] = step.record_offset
            self.row["reconciliation_ms"] = None if began_ms is None or done_ms is None else max(done_ms - began_ms, 0)
        if "no_assignment_ms" not in self.row and not self.owners_before and step.owners():
            self.row |= _no_assignment(self.empty_since_ms, self.opened_by.timestamp_ms, step.timestamp_ms)

    def finish(self) -> _Row:
        if self.latest is not None:
            self.row.setdefault("target_epoch", self.latest.target_epoch)
            if "reconciled_record_offset" not in self.row:
                self.row["waiting"] = [member.member_id for member in waiting_members(self.latest)]
        return self.row


def waiting_members(step: Membership) -> list[Member]:
    """The members of a modern group that have not reached the target of its present epoch; all, while there is no such target."""
    is_assigned = step.target_epoch is not None and step.target_epoch == step.group_epoch
    return [
        member
        for member in step.members.values()
        if not member.is_away and not (is_assigned and member.member_epoch == step.target_epoch and member.member_state == "stable")
    ]


def _was_away(step: Membership, member: Member) -> bool:
    known = step.members.get(member.member_id)
    return known is not None and known.is_away


def _changed(changes: MemberChanges) -> _Row:
    return {
        "joined": [member.member_id for member in changes.joined],
        "left": [member.member_id for member in changes.left],
        "joined_clients": [client_of(member) for member in changes.joined],
        "left_clients": [client_of(member) for member in changes.left],
    }


def _skipped(step: Membership, before: Membership | None) -> int | None:
    """How many generations or epochs lie between the two; None in front of the first, and where the count began anew."""
    if before is None or before.is_tombstone or before.epoch is None or step.epoch is None or step.epoch < before.epoch:
        return None
    return max(step.epoch - before.epoch - 1, 0)


def _no_assignment(empty_since_ms: int | None, began_ms: int | None, done_ms: int | None) -> _Row:
    """From when the group was Empty, or else from when this rebalance is known to have begun, until it is done."""
    since_ms, how = (began_ms, "at_least") if empty_since_ms is None else (empty_since_ms, "exactly")
    if since_ms is None or done_ms is None:
        return {}
    return {"no_assignment_ms": max(done_ms - since_ms, 0), "no_assignment_is": how}


def _moves(before: Membership | None, step: Membership, changes: MemberChanges) -> _Row:
    if step.is_opaque:
        return {}
    owners = _ids(step.owners())
    row: _Row = {"partitions": len(owners)}
    if before is not None and not before.is_opaque and not before.nameless_topics:
        row |= moved_partitions(_ids(before.owners()), owners, changes.restarted)
    return row


def _ids(owners: Mapping[TopicPartition, list[Member]]) -> dict[TopicPartition, set[str]]:
    return {topic_partition: {member.member_id for member in members} for topic_partition, members in owners.items()}


def _targets(step: Membership) -> dict[TopicPartition, set[str]]:
    targets: dict[TopicPartition, set[str]] = {}
    for member in step.members.values():
        for topic_partition in member.target or ():
            targets.setdefault(topic_partition, set()).add(member.member_id)
    return targets


def _classic_causes(step: Membership, before: Membership | None, changes: MemberChanges, row: _Row) -> list[str]:
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
    """What members had when they joined this generation, and nobody got in it."""
    return {topic_partition for member in step.members.values() for topic_partition in member.claimed or ()} - step.owners().keys()


def _modern_causes(step: Membership, before: Membership | None, changes: MemberChanges, row: _Row) -> list[str]:
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
    """How many rebalances these are, in one sentence, for people."""
    rows = [row for row in table.to_pylist() if row["event"] in REBALANCE_EVENTS]
    skipped = sum(row["skipped"] or 0 for row in rows if row["is_complete"])
    unsure = sum(row["skipped"] or 0 for row in rows if not row["is_complete"])
    groups = len({row["group"] for row in rows})
    parts = [f"{len(rows)} {'rebalance' if len(rows) == 1 else 'rebalances'} of {groups} {'group' if groups == 1 else 'groups'}"]
    if skipped:
        parts.append(f"{skipped} more never got an assignment")
    if unsure:
        parts.append(f"{unsure} more were never stored, or their records are gone")
    return "; ".join(parts)
