"""A plan that returns groups to offsets they had, in the format of Kafka's own reset tool.

`kafka-consumer-groups.sh --reset-offsets --from-file FILE` reads CSV without a header, one line per offset: `topic,partition,offset` if the
command names one group, `group,topic,partition,offset` for several. It sets the listed offsets and no others, refuses groups that have
members, writes neither metadata nor leader epoch, and replaces an offset outside of a topic by the nearest end. (Source: CsvUtils.java and
ConsumerGroupCommand.java of Kafka 4.3; CsvUtils and ConsumerGroupCommand.scala of 2.8.)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict, get_args

import pyarrow as pa

from exhume.analysis.positions import Position
from exhume.arrow_rows import Int16, Int32, OfLog, Origin, of_log, schema_of, table_of
from exhume.codecs.layout import Fields
from exhume.codecs.record_types import OFFSET_COMMIT, RECORD_TYPES, encode_key, encode_value
from exhume.codecs.wire import REPLACEMENT
from exhume.errors import RequestError
from exhume.findings import Finding
from exhume.moments import show_time
from exhume.replay.state import CoordinatorState
from exhume.replay.state_tables import GroupRow, MemberRow, OffsetRow

Action = Literal["restored", "unchanged", "pending", "not_restorable"]


class ResetPlanRow(OfLog):
    """One row per position of the plan, sorted by group, topic and partition.

    `action` is restored, unchanged, pending (left alone: an open transaction has a commit for it), or not_restorable. `committed_offset` is
    the offset that the plan sets, or would set. `record_offset` committed it; `ended_by_record_offset` is the rewind or the removal after
    it. `newest_committed_offset` is the offset at the end of the log, null if there is none, and `committed_offset_delta` the difference to
    it. For a moment, `cut_record_offset` is the last record that counts, and `cut_timestamp_ms` its time.
    """

    group: str
    topic: str
    partition: Int32
    action: Action
    newest_committed_offset: int | None
    committed_offset: int | None
    committed_offset_delta: int | None
    record_offset: int | None
    commit_timestamp_ms: int | None
    newest_record_offset: int | None
    ended_by_record_offset: int | None
    cut_record_offset: int | None
    cut_timestamp_ms: int | None
    reason: str


RESET_PLAN = schema_of(ResetPlanRow)


class ResetRecordRow(TypedDict):
    """One row per restored position: the same offset commit as a coordinator would write it."""

    offsets_partition: Int32 | None
    record_type: Int16
    type: str
    group: str
    topic: str
    partition: Int32
    committed_offset: int
    value_version: Int16
    key: bytes
    value: bytes


RESET_RECORDS = schema_of(ResetRecordRow)

#: The change to undo: a rewind of committed offsets, or their removal.
TakenBack = Literal["before_rewind", "lost"]
_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_PLAIN_CELL = re.compile(r"[a-zA-Z0-9._-]+")
#: By replica and offsets partition: the last record that counts, and its time.
Cuts = Mapping[Origin, tuple[int | None, int | None]]


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """The positions to restore: `table` is `RESET_PLAN`, `text` the file for Kafka's tool, `records` the same as `RESET_RECORDS`."""

    groups: tuple[str, ...]
    table: pa.Table
    text: str
    records: pa.Table
    findings: list[Finding]

    def sentences(self) -> Iterator[str]:
        """Yield the plan as sentences: the counts, each restored position, then each that cannot be restored, with the reason."""
        rows: list[ResetPlanRow] = self.table.to_pylist()
        actions = [row["action"] for row in rows]
        counts = ", ".join(f"{actions.count(action)} {_COUNTED_AS[action]}" for action in _ACTIONS if action in actions)
        yield f"{counts or 'nothing to restore'}{_cuts(rows)}"
        for action in ("restored", "pending", "not_restorable"):
            yield from (_sentence(row) for row in rows if row["action"] == action)


_ACTIONS: tuple[Action, ...] = get_args(Action)
_COUNTED_AS = {"restored": "to restore", "unchanged": "unchanged", "pending": "pending", "not_restorable": "not restorable"}


def plan_reset(
    groups: Sequence[str],
    wanted: Sequence[Position],
    newest: CoordinatorState,
    *,
    now_ms: int,
    cuts: Cuts | None = None,
    doubtful: Collection[str] = (),
    include_pending: bool = False,
    never_back: bool = False,
) -> ResetPlan:
    """Plan to return these groups to the wanted positions, compared with the newest state of the same log.

    Args:
        groups: the groups of the plan; each must be in one offsets partition of one replica.
        wanted: positions of these groups.
        newest: the state at the end of the log.
        now_ms: the commit timestamp of `records`.
        cuts: for a moment, by replica and offsets partition: the last record offset that counts, and its time.
        doubtful: groups that may have had more at the moment than the log shows.
        include_pending: restore keys with a commit of an open transaction, then or at the end, as well.
        never_back: leave a key alone if it has a higher offset since, to undo rewinds only.

    Raises:
        RequestError: a group is in two places; or one of several groups has a line feed in its name, which the format cannot carry.
    """
    offsets: list[OffsetRow] = newest.offsets.to_pylist()
    held = {(row["group"], row["topic"], row["partition"]): row for row in offsets}
    pending = {(row["group"], row["topic"], row["partition"]) for row in newest.pending_offsets.to_pylist()}
    _refuse_two_places(wanted, newest)
    topic_ids = {(row["group"], row["topic"]): row["topic_id"] for row in held.values() if row["topic_id"] is not None}
    rows: list[ResetPlanRow] = []
    restored: list[Position] = []
    for position in sorted(wanted, key=lambda position: position.key):
        now = held.get(position.key)
        is_pending = (position.is_pending or position.key in pending) and not include_pending
        action, reason = _decide(position, now, topic_ids.get(position.key[:2]), is_pending=is_pending, never_back=never_back)
        rows.append(_row(position, now, cuts or {}, action, reason))
        if action == "restored":
            restored.append(position)
    if cuts is not None:
        planned_keys = {position.key for position in wanted}
        rows += [_came_later(row, cuts, is_doubtful=row["group"] in doubtful) for key, row in held.items() if key not in planned_keys]
    rows.sort(key=lambda row: (row["group"], row["topic"], row["partition"]))
    table = table_of(RESET_PLAN, rows)
    text = _text(groups, restored)
    return ResetPlan(tuple(groups), table, text, _records(restored, now_ms), _findings(restored, newest))


def _decide(position: Position, now: OffsetRow | None, topic_id: str | None, *, is_pending: bool, never_back: bool) -> tuple[Action, str]:
    """Return the action for a position, and the reason."""
    wanted, held = position.committed_offset, None if now is None else now["committed_offset"]
    problem = _problem(position, topic_id)
    if wanted is not None and wanted == held:
        return "unchanged", f"{position.reason}; the group has it again" if never_back else "the group has it already"
    if is_pending and wanted is not None:
        return "pending", f"{position.reason}; an open transaction has a commit for it"
    if problem is not None:
        return "not_restorable", problem
    if never_back and wanted is not None and held is not None and held > wanted:
        return "unchanged", f"{position.reason}; the group has committed a higher offset since"
    return "restored", position.reason


def _problem(position: Position, topic_id: str | None) -> str | None:
    """Return why this position cannot be restored; None if it can."""
    if position.committed_offset is None:
        return position.reason
    if position.committed_offset < 0:
        return f"no group can commit offset {position.committed_offset}"
    if not _LEGAL_TOPIC.fullmatch(position.topic) or position.topic in (".", ".."):
        return "no topic can have this name"
    if not position.group or REPLACEMENT in position.group:
        return "the name of its group is empty" if not position.group else "the name of its group is not UTF-8, so no request can name it"
    if None not in (topic_id, position.topic_id) and topic_id != position.topic_id:
        return f"the topic was created again: its id was {position.topic_id} and is {topic_id} now"
    return None


def _row(position: Position, now: OffsetRow | None, cuts: Cuts, action: Action, reason: str) -> ResetPlanRow:
    wanted, held = position.committed_offset, None if now is None else now["committed_offset"]
    cut = cuts.get((position.replica, position.offsets_partition), (None, None))
    return {
        "replica": position.replica,
        "offsets_partition": position.offsets_partition,
        "group": position.group,
        "topic": position.topic,
        "partition": position.partition,
        "action": action,
        "newest_committed_offset": held,
        "committed_offset": wanted,
        "committed_offset_delta": None if held is None or wanted is None else wanted - held,
        "record_offset": position.record_offset,
        "commit_timestamp_ms": position.commit_timestamp_ms,
        "newest_record_offset": None if now is None else now["record_offset"],
        "ended_by_record_offset": position.ended_by_record_offset,
        "cut_record_offset": cut[0],
        "cut_timestamp_ms": cut[1],
        "reason": reason,
    }


def _came_later(row: OffsetRow, cuts: Cuts, *, is_doubtful: bool) -> ResetPlanRow:
    """Return the row of an offset that the group has at the end but not at the moment: the tool can set offsets, not remove them."""
    then = "the log does not show if the group had it then, or which offset" if is_doubtful else "the group did not have it then"
    cut = cuts.get((row["replica"], row["offsets_partition"]), (None, None))
    return {
        **of_log(row["replica"], row["offsets_partition"]),
        "group": row["group"],
        "topic": row["topic"],
        "partition": row["partition"],
        "action": "not_restorable",
        "newest_committed_offset": row["committed_offset"],
        "committed_offset": None,
        "committed_offset_delta": None,
        "record_offset": None,
        "commit_timestamp_ms": None,
        "newest_record_offset": row["record_offset"],
        "ended_by_record_offset": None,
        "cut_record_offset": cut[0],
        "cut_timestamp_ms": cut[1],
        "reason": f"{then}; a reset sets offsets and removes none",
    }


def _refuse_two_places(wanted: Sequence[Position], newest: CoordinatorState) -> None:
    found = {(position.group, position.replica, position.offsets_partition) for position in wanted}
    for table in (newest.groups, newest.offsets, newest.pending_offsets):
        found |= {(row["group"], row["replica"], row["offsets_partition"]) for row in table.to_pylist()}
    for group in sorted({place[0] for place in found}):
        places = sorted((place[1:] for place in found if place[0] == group), key=str)
        if len(places) > 1:
            listed = ", ".join(f"partition {number} of replica {replica}" for replica, number in places)
            raise RequestError(f"group {group!r} is in {listed}", remedy="Name the directory of the right one")


def _text(groups: Sequence[str], restored: Sequence[Position]) -> str:
    if len(groups) == 1:
        return "".join(f"{_cell(each.topic)},{each.partition},{each.committed_offset}\n" for each in restored)
    for each in restored:
        if "\n" in each.group:
            # The tool splits the file at line feeds before it reads quotes.
            raise RequestError(
                f"group {each.group!r} has a line feed in its name, which a plan of several groups cannot carry",
                remedy="Plan this group alone: such a file has no group names",
            )
    return "".join(f"{_cell(each.group)},{_cell(each.topic)},{each.partition},{each.committed_offset}\n" for each in restored)


def _cell(text: str) -> str:
    return text if _PLAIN_CELL.fullmatch(text) else '"' + text.replace('"', '""') + '"'


def _records(restored: Sequence[Position], now_ms: int) -> pa.Table:
    return table_of(RESET_RECORDS, [_record(position, now_ms) for position in restored])


def _record(position: Position, now_ms: int) -> ResetRecordRow:
    version = 3 if position.value_version is None else position.value_version
    # Fields that the version does not have are left out.
    assert position.committed_offset is not None
    value: Fields = {"committed_offset": position.committed_offset, "metadata": position.metadata, "commit_timestamp_ms": now_ms}
    if position.leader_epoch is not None:
        value["leader_epoch"] = position.leader_epoch
    if position.topic_id is not None:
        value["topic_id"] = position.topic_id
    key = {"group": position.group, "topic": position.topic, "partition": position.partition}
    return {
        "offsets_partition": position.offsets_partition,
        "record_type": OFFSET_COMMIT,
        "type": RECORD_TYPES[OFFSET_COMMIT].name,
        "group": position.group,
        "topic": position.topic,
        "partition": position.partition,
        "committed_offset": position.committed_offset,
        "value_version": version,
        "key": encode_key(OFFSET_COMMIT, key),
        "value": encode_value(OFFSET_COMMIT, version, value),
    }


def _findings(restored: Sequence[Position], newest: CoordinatorState) -> list[Finding]:
    planned = {position.group for position in restored}
    findings = []
    members: list[MemberRow] = newest.members.to_pylist()
    groups: list[GroupRow] = newest.groups.to_pylist()
    for row in groups:
        count = sum(member["group"] == row["group"] for member in members)
        if row["group"] in planned and count:
            who = f"group {row['group']!r} has {count} {'member' if count == 1 else 'members'}"
            findings.append(
                Finding(
                    code="group_is_active",
                    sentence=f"{who} at the end of the log: Kafka's tool refuses it",
                    replica=row["replica"],
                    offsets_partition=row["offsets_partition"],
                    group=row["group"],
                    first_record_offset=row["record_offset"],
                    remedy="Stop its consumers, then plan again from a copy that has their last commits",
                )
            )
    for group in sorted({position.group for position in restored if position.metadata}):
        count = sum(position.group == group and bool(position.metadata) for position in restored)
        findings.append(
            Finding(
                code="metadata_is_lost",
                sentence=f"Kafka's tool does not write the metadata of {count} {'offset' if count == 1 else 'offsets'} of group {group!r}",
                group=group,
                remedy="Look at it with `exhume dump --type offset_commit`; Kafka Streams keeps its stream time there",
            )
        )
    return findings


def _cuts(rows: Sequence[ResetPlanRow]) -> str:
    cuts = sorted({(row["offsets_partition"], row["cut_record_offset"], row["cut_timestamp_ms"]) for row in rows}, key=str)
    known = [(partition, offset, time_ms) for partition, offset, time_ms in cuts if offset is not None]
    if not known:
        return ""
    records = [
        f"record {offset} of offsets partition {partition}{'' if time_ms is None else f' ({show_time(time_ms)})'}"
        for partition, offset, time_ms in known
    ]
    return f"; as of {', '.join(records)}"


def _sentence(row: ResetPlanRow) -> str:
    place = f"{row['group']} {row['topic']}-{row['partition']}"
    before = "nothing" if row["newest_committed_offset"] is None else row["newest_committed_offset"]
    if row["action"] == "restored":
        delta = "" if row["committed_offset_delta"] is None else f" ({row['committed_offset_delta']:+d})"
        return f"{place}: {before} -> {row['committed_offset']}{delta}, by record {row['record_offset']}; {row['reason']}"
    return f"{place}: stays at {before}; {row['reason']}"
