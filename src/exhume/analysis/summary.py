"""A state, or what a log holds, in one screen: a row for each group, for what a member holds of a topic, for each record type."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from exhume.arrow_rows import table_of
from exhume.replay.state import CoordinatorState

#: One row per group, and one per id that has offsets but no group (`group_type` null). `epoch` is the generation of a classic group.
GROUP_SUMMARY = pa.schema(
    [
        ("replica", pa.string()),
        ("offsets_partition", pa.int32()),
        ("group", pa.string()),
        ("group_type", pa.string()),
        ("group_state", pa.string()),
        ("protocol_type", pa.string()),
        ("protocol", pa.string()),
        ("epoch", pa.int32()),
        ("members", pa.int64()),
        ("assigned_partitions", pa.int64()),
        ("offsets", pa.int64()),
        ("pending_offsets", pa.int64()),
        ("last_commit_timestamp_ms", pa.int64()),
    ]
)

#: One row per member, kind and topic (streams groups: subtopology and role), with the partitions in order.
ASSIGNMENT_SUMMARY = pa.schema(
    [
        ("group", pa.string()),
        ("member_id", pa.string()),
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("subtopology_id", pa.string()),
        ("task_role", pa.string()),
        ("partitions", pa.list_(pa.int32())),
    ]
)

#: One row per record type. `value_versions` are those of values; `partition_count` says in how many partitions the type occurs.
RECORD_TYPE_SUMMARY = pa.schema(
    [
        ("record_type", pa.int16()),
        ("type", pa.string()),
        ("value_versions", pa.list_(pa.int16())),
        ("record_count", pa.int64()),
        ("tombstone_count", pa.int64()),
        ("transactional_count", pa.int64()),
        ("marked_count", pa.int64()),
        ("partition_count", pa.int64()),
    ]
)

_ORIGIN = ("replica", "offsets_partition")
_GROUP_KEY = (*_ORIGIN, "group")
_Key = tuple[str | None, int | None, str]


def summarize_groups(state: CoordinatorState) -> pa.Table:
    """The groups of a state with the number of what they hold, as `GROUP_SUMMARY`, ordered by replica and group."""
    members, pending = _counted(state.members), _counted(state.pending_offsets)
    assigned = _counted(state.assignments.filter(pc.field("kind") == "assigned"))
    commits = state.offsets.group_by(_GROUP_KEY).aggregate([([], "count_all"), ("commit_timestamp_ms", "max")]).to_pylist()
    offsets = Counter({_key(row): row["count_all"] for row in commits})
    last_commit = {_key(row): row["commit_timestamp_ms_max"] for row in commits}
    groups: dict[_Key, dict[str, Any]] = {_key(row): row for row in state.groups.to_pylist()}
    rows = []
    for key in sorted({*groups, *offsets, *pending}, key=lambda key: (key[0] or "", key[2], key[1] or 0)):
        group = groups.get(key, {})
        rows.append(
            {
                "replica": key[0],
                "offsets_partition": key[1],
                "group": key[2],
                **{name: group.get(name) for name in ("group_type", "group_state", "protocol_type", "protocol")},
                "epoch": group.get("generation") if group.get("group_type") == "classic" else group.get("group_epoch"),
                "members": members[key],
                "assigned_partitions": assigned[key],
                "offsets": offsets[key],
                "pending_offsets": pending[key],
                "last_commit_timestamp_ms": last_commit.get(key),
            }
        )
    return table_of(GROUP_SUMMARY, rows)


def summarize_assignments(state: CoordinatorState) -> pa.Table:
    """The assignments of a state as `ASSIGNMENT_SUMMARY`, in their own order."""
    columns = ASSIGNMENT_SUMMARY.names[:-1]
    partitions: dict[tuple[Any, ...], list[int]] = {}
    for row in state.assignments.to_pylist():
        partitions.setdefault(tuple(row[column] for column in columns), []).append(row["partition"])
    rows = [dict(zip(columns, key, strict=True)) | {"partitions": sorted(held)} for key, held in partitions.items()]
    return table_of(ASSIGNMENT_SUMMARY, rows)


def notable_loads(state: CoordinatorState) -> pa.Table:
    """The rows of `loads` that did not simply go well, and those of the partitions that hold something of this state's groups."""
    tables = (state.groups, state.offsets, state.pending_offsets)
    held = {_origin(row) for table in tables for row in table.group_by(_ORIGIN).aggregate([]).to_pylist()}
    return state.loads.filter(pa.array([row["outcome"] != "loaded" or _origin(row) in held for row in state.loads.to_pylist()], pa.bool_()))


def summarize_record_types(record_types: pa.Table) -> pa.Table:
    """The table `record_types` of an inspection as `RECORD_TYPE_SUMMARY`, ordered by number; control records come first."""
    counted: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in record_types.to_pylist():
        counted.setdefault((-1 if row["record_type"] is None else row["record_type"], row["type"]), []).append(row)
    return table_of(RECORD_TYPE_SUMMARY, [_summarize_type(counted[key]) for key in sorted(counted)])


def _summarize_type(rows: list[dict[str, Any]]) -> dict[str, Any]:
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
    """How many rows each group has."""
    return Counter({_key(row): row["count_all"] for row in table.group_by(_GROUP_KEY).aggregate([([], "count_all")]).to_pylist()})


def _origin(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["replica"], row["offsets_partition"]


def _key(row: dict[str, Any]) -> _Key:
    return row["replica"], row["offsets_partition"], row["group"]
