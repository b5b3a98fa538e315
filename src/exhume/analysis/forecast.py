"""The offsets and groups that the expiry task of a coordinator removes next, and the tombstones that it writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import pyarrow as pa

from exhume.arrow_rows import Int16, Int32, OfLog, of_log, schema_of, table_of
from exhume.codecs.record_types import RECORD_TYPES
from exhume.findings import Finding
from exhume.moments import show_time
from exhume.replay.expiry import Due, Tombstone, due_groups, due_offsets, expire
from exhume.replay.partition_load import PartitionLoad
from exhume.replay.partition_state import OffsetKey, PartitionState
from exhume.replay.profiles import BrokerProfile


class ForecastRow(OfLog):
    """One row per committed offset and per group; a group comes after its offsets. `kind` is offset or group.

    `expires_at_ms` is the first time at which the expiry task removes it if nothing changes; null: never. `rule` and `base_timestamp_ms`
    say how that is counted (`replay.expiry.Rule`), and `reason` why the task removes it, or why not. `record_offset` is the record of the
    offset or the group.
    """

    kind: str
    group: str
    topic: str | None
    partition: Int32 | None
    committed_offset: int | None
    rule: str | None
    base_timestamp_ms: int | None
    expires_at_ms: int | None
    is_past_due: bool
    reason: str
    record_offset: int | None


FORECAST = schema_of(ForecastRow)


class TombstoneRow(OfLog):
    """One row per tombstone of the next run of the expiry task, in log order; values are null.

    Rows of one offsets partition with the same `append` are written together. `topic` and `partition` are null for a group's own records.
    """

    append: Int32
    record_type: Int16
    type: str
    group: str
    topic: str | None
    partition: Int32 | None
    key: bytes
    reason: str


TOMBSTONES = schema_of(TombstoneRow)


@dataclass(frozen=True, slots=True)
class Expiry:
    """The next removals (`FORECAST`), the tombstones of the next run (`TOMBSTONES`), and findings about runs that cannot write."""

    forecast: pa.Table
    tombstones: pa.Table
    findings: list[Finding]


def forecast_expiry(
    loads: Sequence[PartitionLoad], profile: BrokerProfile, now_ms: int, retention_ms: int, *, groups: Collection[str] | None = None
) -> Expiry:
    """Return the removals by the expiry task of this release, if it next runs at `now_ms`; with `groups`, of these only."""
    rows: list[ForecastRow] = []
    tombstones: list[TombstoneRow] = []
    findings: list[Finding] = []
    for load in loads:
        origin, held = _origin(load), load.partition_state.whole()
        done = expire(held, now_ms, retention_ms, profile)
        rows += _rows(origin, held, done.due_offsets, done.due_groups, now_ms=now_ms, only=groups)
        tombstones += [_tombstone_row(origin, each) for each in done.tombstones if groups is None or each.group in groups]
        if done.failure is not None:
            sentence = f"the expiry task of this release removes nothing here: {done.failure}"
            findings.append(Finding(code="expiry_pass_fails", sentence=sentence, **origin))
    return Expiry(table_of(FORECAST, rows), table_of(TOMBSTONES, tombstones), findings)


def forecast(
    loads: Sequence[PartitionLoad], profile: BrokerProfile, now_ms: int, retention_ms: int, *, groups: Collection[str] | None = None
) -> pa.Table:
    """Return when the expiry task of this release removes offsets and groups of these loads, as `FORECAST`; or only of `groups`."""
    rows: list[ForecastRow] = []
    for load in loads:
        held = load.partition_state.whole(groups)
        offsets = due_offsets(held, retention_ms, profile)
        rows += _rows(_origin(load), held, offsets, due_groups(held, offsets, now_ms, profile), now_ms=now_ms, only=groups)
    return table_of(FORECAST, rows)


def _origin(load: PartitionLoad) -> OfLog:
    return of_log(load.partition.replica, load.partition.offsets_partition)


def forecast_sentence(expected: pa.Table) -> str:
    """Return the offsets and groups that are past due, and the next one, as one sentence."""
    rows: list[ForecastRow] = expected.select(["kind", "group", "expires_at_ms", "is_past_due"]).to_pylist()
    kinds = [row["kind"] for row in rows if row["is_past_due"]]
    counts = [f"{kinds.count(kind)} {kind}{'s' if kinds.count(kind) > 1 else ''}" for kind in ("offset", "group") if kind in kinds]
    coming = [(row["expires_at_ms"], row) for row in rows if row["expires_at_ms"] is not None and not row["is_past_due"]]
    what = "nothing"
    if coming:
        expires_at_ms, first = min(coming, key=itemgetter(0))
        kind = "an offset of group" if first["kind"] == "offset" else "group"
        what = f"{kind} {first['group']!r} at {show_time(expires_at_ms)}"
    return f"past due: {', '.join(counts) or 'nothing'}; next: {what}"


def _rows(
    origin: OfLog,
    partition_state: PartitionState,
    offsets: Mapping[OffsetKey, Due],
    groups: Mapping[str, Due],
    *,
    now_ms: int,
    only: Collection[str] | None,
) -> list[ForecastRow]:
    rows: list[ForecastRow] = []
    for key, due in sorted(offsets.items()):
        if only is None or key[0] in only:
            commit = partition_state.offsets[key]
            topic, partition, committed_offset = *key[1:], commit.committed_offset
            row = _row(origin, "offset", key[0], commit.record_offset, due=due, now_ms=now_ms)
            rows.append(row | {"topic": topic, "partition": partition, "committed_offset": committed_offset})
    for group, due in groups.items():
        if only is None or group in only:
            rows.append(_row(origin, "group", group, partition_state.groups[group].record_offset, due=due, now_ms=now_ms))
    # A group comes after its offsets; the sort is stable.
    return sorted(rows, key=lambda row: (row["group"], row["kind"] == "group"))


def _row(origin: OfLog, kind: str, group: str, record_offset: int | None, *, due: Due, now_ms: int) -> ForecastRow:
    return {
        **origin,
        "kind": kind,
        "group": group,
        "topic": None,
        "partition": None,
        "committed_offset": None,
        "rule": due.rule,
        "base_timestamp_ms": due.base_timestamp_ms,
        "expires_at_ms": due.expires_at_ms,
        "is_past_due": due.is_past(now_ms),
        "reason": due.reason,
        "record_offset": record_offset,
    }


def _tombstone_row(origin: OfLog, tombstone: Tombstone) -> TombstoneRow:
    return {
        **origin,
        "append": tombstone.append,
        "record_type": tombstone.record_type,
        "type": RECORD_TYPES[tombstone.record_type].name,
        "group": tombstone.group,
        "topic": tombstone.topic,
        "partition": tombstone.partition,
        "key": tombstone.key,
        "reason": tombstone.reason,
    }
