"""Gather facts about a group from the tables of other analyses, for each offsets partition that has records of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.completeness import grade_at_end
from exhume.analysis.explanation.facts import GroupFacts, Held, until
from exhume.analysis.explanation.sentences import Commands
from exhume.analysis.history import HISTORY, HistoryRow
from exhume.analysis.log_extent import LogExtent, LogExtents
from exhume.analysis.memberships import Membership
from exhume.analysis.rebalances import rebalances
from exhume.arrow_rows import Origin, table_of
from exhume.findings import Finding, Findings
from exhume.replay.profiles import BrokerProfile
from exhume.replay.state import CoordinatorState
from exhume.replay.state_tables import LoadRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The tables about one group.

    `state`, `why` and `forecast` are of the moment; `history` is cut by `history_until`; `memberships` are all of the group. `ends` are
    `cuts`. `completeness` is None at the end of the logs. `extents` are those of all logs, `end_times_ms` the times of the last records of
    a past moment.
    """

    group: str
    state: CoordinatorState
    history: pa.Table
    ends: Mapping[Origin, int | None]
    memberships: Sequence[Membership]
    why: pa.Table
    forecast: pa.Table
    completeness: pa.Table | None
    extents: LogExtents
    end_times_ms: Mapping[Origin, int | None]
    findings: Findings
    diagnosed: Iterable[Finding]
    profile: BrokerProfile
    retention_ms: int
    release: str | None
    moment: tuple[str, ...]


def cuts(state: CoordinatorState) -> dict[Origin, int | None]:
    """Return the last record offset up to the moment in each log: -1 for none, None for the end of the log.

    A load that is aborted does not reach its moment: pass a state of a lenient load.
    """
    found: dict[Origin, int | None] = {}
    for load in state.loads.to_pylist():
        is_past = load["at_offset"] is not None or load["at_time_ms"] is not None
        last = -1 if load["last_record_offset"] is None else load["last_record_offset"]
        found[load["replica"], load["offsets_partition"]] = last if is_past else None
    return found


def history_until(history: pa.Table, ends: Mapping[Origin, int | None]) -> pa.Table:
    """Return this `HISTORY` as it was at these `cuts`."""
    if set(ends.values()) == {None}:
        return history
    rows: list[HistoryRow] = []
    for origin, own in _by_origin(history.to_pylist()).items():
        rows += until(own, ends.get(origin))
    return table_of(HISTORY, rows)


def facts_of(gathered: Gathered, origins: Sequence[Origin]) -> Iterator[GroupFacts]:
    """Yield the facts for each of these offsets partitions."""
    state, group = gathered.state, gathered.group
    loads = {(row["replica"], row["offsets_partition"]): row for row in state.loads.to_pylist()}
    held = _held(state, group)
    history = _by_origin(gathered.history.to_pylist())
    why, forecast = (_by_origin(table.to_pylist()) for table in (gathered.why, gathered.forecast))
    ends = gathered.ends
    for origin in origins:
        steps = [step for step in gathered.memberships if step.origin == origin and is_in(step.last_record_offset, ends[origin])]
        own: Held = {
            "groups": held["groups"].get(origin, []),
            "members": held["members"].get(origin, []),
            "assignments": held["assignments"].get(origin, []),
            "offsets": held["offsets"].get(origin, []),
            "pending_offsets": held["pending_offsets"].get(origin, []),
            "open_transactions": held["open_transactions"].get(origin, []),
        }
        extent = gathered.extents[origin]
        grade, reason, missing = _grade(gathered, origin, loads[origin], extent)
        is_past = ends[origin] is not None
        yield GroupFacts(
            group=group,
            origin=origin,
            load=loads[origin],
            held=own,
            history=history.get(origin, []),
            steps=steps,
            rebalances=rebalances(steps, gathered.extents).to_pylist(),
            why=why.get(origin, []),
            forecast=forecast.get(origin, []),
            findings=[finding for finding in _findings(gathered, origin) if is_in(finding.last_record_offset or 0, ends[origin])],
            damage=[*_damage(gathered, origin)],
            grade=grade,
            grade_reason=reason,
            missing_offsets=missing,
            complete_from=extent.complete_from_offset,
            last_record_offset=_last_record_offset(loads[origin], ends[origin]),
            end_ms=gathered.end_times_ms.get(origin) if is_past else extent.last_timestamp_ms,
            is_past=is_past,
            profile=gathered.profile,
            retention_ms=gathered.retention_ms,
            commands=Commands(group, origin[1], gathered.release, gathered.moment),
        )


def _last_record_offset(load: LoadRow, end: int | None) -> int | None:
    if end is not None:
        return end if end >= 0 else None
    return load["last_record_offset"]


def _held(state: CoordinatorState, group: str) -> dict[str, dict[Origin, list[Any]]]:
    """Return the rows of this group, by table and log."""
    tables = {name: state.tables[name].filter(pc.field("group") == group) for name in Held.__annotations__ if name != "open_transactions"}
    rows = {name: table.to_pylist() for name, table in tables.items()}
    rows["open_transactions"] = [row for row in state.open_transactions.to_pylist() if group in row["groups"]]
    return {name: _by_origin(found) for name, found in rows.items()}


def is_in(record_offset: int, end: int | None) -> bool:
    """Return True if this record offset counts at one of the `cuts`."""
    return end is None or record_offset <= end


def _by_origin(rows: Sequence[Any]) -> dict[Origin, list[Any]]:
    found: dict[Origin, list[Any]] = {}
    for row in rows:
        found.setdefault((row["replica"], row["offsets_partition"]), []).append(row)
    return found


def _grade(gathered: Gathered, origin: Origin, load: LoadRow, extent: LogExtent) -> tuple[str, str, int]:
    """Return the grade, its reason, and the number of record offsets without a record up to the moment."""
    if gathered.completeness is not None:
        rows = [row for row in gathered.completeness.to_pylist() if (row["replica"], row["offsets_partition"]) == origin]
        own = next((row for row in rows if row["group"] == gathered.group), None)
        if own is not None:
            return own["grade"], own["reason"], own["missing_offsets"]
        # Its first record is later, and no earlier one is missing.
        return "certain", "every record up to it that counted is there", rows[0]["missing_offsets"] if rows else 0
    has_damage = any(_damage(gathered, origin))
    grade, reason = grade_at_end(load, extent, has_damage=has_damage)
    # Findings report the records in damaged batches.
    return grade, reason, max(extent.missing_after_start - extent.damaged_offsets, 0)


def _findings(gathered: Gathered, origin: Origin) -> Iterator[Finding]:
    """Yield the findings about the group in this log. A finding of several replicas belongs to the first of them."""
    for finding in chain(gathered.diagnosed, gathered.findings):
        here = finding.offsets_partition in (None, origin[1]) and finding.replica in (None, origin[0])
        is_own = finding.group == gathered.group or (finding.group is None and finding.offsets_partition is not None)
        if is_own and here and finding.severity != "info" and not finding.is_damage:
            yield finding


def _damage(gathered: Gathered, origin: Origin) -> Iterator[Finding]:
    """Yield the findings that make this log partial."""
    places = (origin, (origin[0], None), (None, None))
    return (finding for finding in gathered.findings if finding.is_damage and (finding.replica, finding.offsets_partition) in places)
