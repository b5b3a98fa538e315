"""A state, or the contents of a log, in one screen: a row for each group, for each topic of a member, for each record type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.number_columns import RowGroups
from exhume.arrow_rows import Int16, Int32, OfLog, Origin, schema_of, table_of
from exhume.replay.state import CoordinatorState
from exhume.replay.state_tables import GroupRow

if TYPE_CHECKING:
    from exhume.analysis.inspection import RecordTypeRow


class GroupSummaryRow(OfLog):
    """One row per group, and one per group id that has offsets but no group (`group_type` null).

    `epoch` is the generation of a classic group.
    """

    group: str
    group_type: str | None
    group_state: str | None
    protocol_type: str | None
    protocol: str | None
    epoch: Int32 | None
    members: int
    assigned_partitions: int
    offsets: int
    pending_offsets: int
    last_commit_timestamp_ms: int | None


GROUP_SUMMARY = schema_of(GroupSummaryRow)


class AssignmentSummaryRow(TypedDict):
    """One row per member, kind and topic (streams groups: subtopology and role), with the partitions in order."""

    group: str
    member_id: str
    kind: str
    topic: str | None
    topic_id: str | None
    subtopology_id: str | None
    task_role: str | None
    partitions: list[Int32]


ASSIGNMENT_SUMMARY = schema_of(AssignmentSummaryRow)


class RecordTypeSummaryRow(TypedDict):
    """One row per record type. `value_versions` are those of values; `partition_count` says in how many partitions the type occurs."""

    record_type: Int16 | None
    type: str
    value_versions: list[Int16]
    record_count: int
    tombstone_count: int
    transactional_count: int
    marked_count: int
    partition_count: int


RECORD_TYPE_SUMMARY = schema_of(RecordTypeSummaryRow)

_ORIGIN = ("replica", "offsets_partition")
_GROUP_KEY = (*_ORIGIN, "group")
_Key = tuple[str | None, int | None, str]


def summarize_groups(state: CoordinatorState) -> pa.Table:
    """Return the groups of a state with their counts, as `GROUP_SUMMARY`, sorted by replica and group."""
    members, pending = _counted(state.members), _counted(state.pending_offsets)
    assigned = _counted(state.assignments.filter(pc.equal(state.assignments["kind"], "assigned")))
    commits = RowGroups(state.offsets, _GROUP_KEY)
    offsets = Counter(dict(zip(commits.keys, commits.counts(), strict=True)))
    last_commit = dict(zip(commits.keys, commits.greatest("commit_timestamp_ms"), strict=True))
    held: list[GroupRow] = state.groups.to_pylist()
    groups = {_key(row): row for row in held}

    def made(key: _Key) -> GroupSummaryRow:
        group: GroupRow = groups.get(key, {})
        return {
            "replica": key[0],
            "offsets_partition": key[1],
            "group": key[2],
            "group_type": group.get("group_type"),
            "group_state": group.get("group_state"),
            "protocol_type": group.get("protocol_type"),
            "protocol": group.get("protocol"),
            "epoch": group.get("generation") if group.get("group_type") == "classic" else group.get("group_epoch"),
            "members": members[key],
            "assigned_partitions": assigned[key],
            "offsets": offsets[key],
            "pending_offsets": pending[key],
            "last_commit_timestamp_ms": last_commit.get(key),
        }

    keys = sorted({*groups, *offsets, *pending}, key=lambda key: (key[0] or "", key[2], key[1] or 0))
    return table_of(GROUP_SUMMARY, map(made, keys))


def summarize_assignments(state: CoordinatorState) -> pa.Table:
    """Return the assignments of a state as `ASSIGNMENT_SUMMARY`, in their own order."""
    columns = ASSIGNMENT_SUMMARY.names[:-1]
    partitions: dict[tuple[Any, ...], list[int]] = {}
    for row in state.assignments.to_pylist():
        partitions.setdefault(tuple(row[column] for column in columns), []).append(row["partition"])
    rows = [dict(zip(columns, key, strict=True)) | {"partitions": sorted(held)} for key, held in partitions.items()]
    return table_of(ASSIGNMENT_SUMMARY, rows)


def notable_loads(state: CoordinatorState) -> pa.Table:
    """Return the rows of `loads` with a problem, and those of the partitions that have something of this state's groups."""
    tables = (state.groups, state.offsets, state.pending_offsets)
    held = {origin for table in tables for origin in RowGroups(table, _ORIGIN).keys}
    return state.loads.filter(pa.array([row["outcome"] != "loaded" or _origin(row) in held for row in state.loads.to_pylist()], pa.bool_()))


def summarize_record_types(record_types: pa.Table) -> pa.Table:
    """Return the table `record_types` of an inspection as `RECORD_TYPE_SUMMARY`, sorted by number; control records come first."""
    counted: dict[tuple[int, str], list[RecordTypeRow]] = {}
    rows: list[RecordTypeRow] = record_types.to_pylist()
    for row in rows:
        counted.setdefault((-1 if row["record_type"] is None else row["record_type"], row["type"]), []).append(row)
    return table_of(RECORD_TYPE_SUMMARY, [_summarize_type(counted[key]) for key in sorted(counted)])


def _summarize_type(rows: list[RecordTypeRow]) -> RecordTypeSummaryRow:
    return {
        "record_type": rows[0]["record_type"],
        "type": rows[0]["type"],
        "value_versions": sorted({row["value_version"] for row in rows if row["value_version"] is not None}),
        "record_count": sum(row["record_count"] for row in rows),
        "tombstone_count": sum(row["record_count"] for row in rows if row["is_tombstone"]),
        "transactional_count": sum(row["record_count"] for row in rows if row["is_transactional"]),
        "marked_count": sum(row["marked_count"] for row in rows),
        "partition_count": len({_origin(row) for row in rows}),
    }


def _counted(table: pa.Table) -> Counter[_Key]:
    """Return the number of rows of each group."""
    rows = RowGroups(table, _GROUP_KEY)
    return Counter(dict(zip(rows.keys, rows.counts(), strict=True)))


def _origin(row: OfLog) -> Origin:
    return row["replica"], row["offsets_partition"]


def _key(row: Mapping[str, Any]) -> _Key:
    return row["replica"], row["offsets_partition"], row["group"]
