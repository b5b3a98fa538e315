"""A state in one screen: a row for each group, and what members hold in a row for each topic."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

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

_Key = tuple[str | None, int | None, str]


def summarize_groups(state: CoordinatorState) -> pa.Table:
    """The groups of a state with the number of what they hold, as `GROUP_SUMMARY`, ordered by replica and group."""
    members = Counter(_key(row) for row in state.members.to_pylist())
    assigned = Counter(_key(row) for row in state.assignments.to_pylist() if row["kind"] == "assigned")
    pending = Counter(_key(row) for row in state.pending_offsets.to_pylist())
    offsets: Counter[_Key] = Counter()
    last_commit: dict[_Key, int] = {}
    for row in state.offsets.to_pylist():
        key = _key(row)
        offsets[key] += 1
        last_commit[key] = max(last_commit.get(key, row["commit_timestamp_ms"]), row["commit_timestamp_ms"])
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


def _key(row: dict[str, Any]) -> _Key:
    return row["replica"], row["offsets_partition"], row["group"]
