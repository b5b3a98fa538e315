"""What the expiry passes of a coordinator are about to remove, and the records that they would write."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from exhume.analysis.times import show_time
from exhume.arrow_rows import table_of
from exhume.codecs.record_types import RECORD_TYPES
from exhume.findings import Finding
from exhume.replay.expiry import Due, Tombstone, due_groups, due_offsets, expire
from exhume.replay.partition_load import PartitionLoad
from exhume.replay.partition_state import OffsetKey, PartitionState
from exhume.replay.profiles import BrokerProfile

#: One row per committed offset and per group, the group behind its offsets; `kind` is offset or group. `expires_at_ms` is the first time
#: of a pass that removes it if nothing changes; null: none does. `rule` and `base_timestamp_ms` say what that is counted by
#: (`replay.expiry.Rule`), `reason` why it is so, or why not. `record_offset` is the record that made the offset or the group.
FORECAST = pa.schema(
    [
        ("replica", pa.string()),
        ("offsets_partition", pa.int32()),
        ("kind", pa.string()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("committed_offset", pa.int64()),
        ("rule", pa.string()),
        ("base_timestamp_ms", pa.int64()),
        ("expires_at_ms", pa.int64()),
        ("is_past_due", pa.bool_()),
        ("reason", pa.string()),
        ("record_offset", pa.int64()),
    ]
)

#: One row per tombstone of the next pass, in the order of the log; values are null. Rows of one offsets partition with the same `append`
#: are written together. `topic` and `partition` are null for a group's own records.
TOMBSTONES = pa.schema(
    [
        ("replica", pa.string()),
        ("offsets_partition", pa.int32()),
        ("append", pa.int32()),
        ("record_type", pa.int16()),
        ("type", pa.string()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("reason", pa.string()),
    ]
)

#: The columns that say what a tombstone says.
_TOLD = tuple(each.name for each in fields(Tombstone))


@dataclass(frozen=True, slots=True)
class Expiry:
    """What passes are about to remove (`FORECAST`), what the next one writes (`TOMBSTONES`), and what keeps one from writing anything."""

    forecast: pa.Table
    tombstones: pa.Table
    findings: list[Finding]


def forecast_expiry(
    loads: Sequence[PartitionLoad], profile: BrokerProfile, now_ms: int, retention_ms: int, *, groups: Collection[str] | None = None
) -> Expiry:
    """What the passes of this release make of these loads, if the next one runs at `now_ms`; of these groups only, where they are given."""
    rows: list[dict[str, Any]] = []
    tombstones: list[dict[str, Any]] = []
    findings: list[Finding] = []
    for load in loads:
        origin, held = _origin(load), load.partition_state.whole()
        done = expire(held, now_ms, retention_ms, profile)
        rows += [origin | row for row in _rows(held, done.due_offsets, done.due_groups, now_ms, groups)]
        tombstones += [origin | _tombstone_row(each) for each in done.tombstones if groups is None or each.group in groups]
        if done.failure is not None:
            sentence = f"no pass of this release removes anything here: {done.failure}"
            findings.append(Finding(code="expiry_pass_fails", sentence=sentence, **origin))
    return Expiry(table_of(FORECAST, rows), table_of(TOMBSTONES, tombstones), findings)


def forecast(
    loads: Sequence[PartitionLoad], profile: BrokerProfile, now_ms: int, retention_ms: int, *, groups: Collection[str] | None = None
) -> pa.Table:
    """When passes of this release remove what these loads hold, as `FORECAST`; of these groups only, where they are given."""
    rows: list[dict[str, Any]] = []
    for load in loads:
        held = load.partition_state.whole(groups)
        offsets = due_offsets(held, retention_ms, profile)
        found = _rows(held, offsets, due_groups(held, offsets, now_ms, profile), now_ms, groups)
        rows += [_origin(load) | row for row in found]
    return table_of(FORECAST, rows)


def _origin(load: PartitionLoad) -> dict[str, Any]:
    return {"replica": load.partition.replica, "offsets_partition": load.partition.offsets_partition}


def forecast_sentence(expected: pa.Table) -> str:
    """What is past due and what comes next, in one sentence, for people."""
    rows = expected.select(["kind", "group", "expires_at_ms", "is_past_due"]).to_pylist()
    kinds = [row["kind"] for row in rows if row["is_past_due"]]
    counts = [f"{kinds.count(kind)} {kind}{'s' if kinds.count(kind) > 1 else ''}" for kind in ("offset", "group") if kind in kinds]
    coming = [row for row in rows if row["expires_at_ms"] is not None and not row["is_past_due"]]
    first = min(coming, key=lambda row: int(row["expires_at_ms"]), default=None)
    what = "nothing"
    if first is not None:
        kind = "an offset of group" if first["kind"] == "offset" else "group"
        what = f"{kind} {first['group']!r} at {show_time(first['expires_at_ms'])}"
    return f"past due: {', '.join(counts) or 'nothing'}; next: {what}"


def _rows(
    partition_state: PartitionState, offsets: Mapping[OffsetKey, Due], groups: Mapping[str, Due], now_ms: int, only: Collection[str] | None
) -> list[dict[str, Any]]:
    rows = []
    for (group, topic, partition), due in offsets.items():
        if only is None or group in only:
            commit = partition_state.offsets[group, topic, partition]
            row = {"kind": "offset", "group": group, "topic": topic, "partition": partition, "committed_offset": commit.committed_offset}
            rows.append(row | {"record_offset": commit.record_offset} | _columns(due, now_ms))
    for group, due in groups.items():
        if only is None or group in only:
            rows.append(
                {"kind": "group", "group": group, "record_offset": partition_state.groups[group].record_offset} | _columns(due, now_ms)
            )
    return sorted(rows, key=lambda row: (row["group"], row["kind"] == "group", row.get("topic"), row.get("partition")))


def _columns(due: Due, now_ms: int) -> dict[str, Any]:
    return {
        "rule": due.rule,
        "base_timestamp_ms": due.base_timestamp_ms,
        "expires_at_ms": due.expires_at_ms,
        "is_past_due": due.is_past(now_ms),
        "reason": due.reason,
    }


def _tombstone_row(tombstone: Tombstone) -> dict[str, Any]:
    return {name: getattr(tombstone, name) for name in _TOLD} | {"type": RECORD_TYPES[tombstone.record_type].name}
