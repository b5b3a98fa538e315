"""The facts that the log gives about a group up to a moment, gathered for one offsets partition of one replica."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict, cast

from exhume.analysis.explanation.sentences import Commands
from exhume.analysis.forecast import ForecastRow
from exhume.analysis.history import Fate, HistoryRow
from exhume.analysis.memberships import Kind, Membership
from exhume.analysis.rebalance_rows import RebalanceRow
from exhume.analysis.why import WhyRow
from exhume.arrow_rows import Origin
from exhume.codecs.record_types import OFFSET_COMMIT_TYPES
from exhume.findings import Finding
from exhume.replay.profiles import BrokerProfile
from exhume.replay.state_tables import AssignmentRow, GroupRow, LoadRow, MemberRow, OffsetRow, OpenTransactionRow
from exhume.replay.verdict import LOADED_IN_MEMORY


class Held(TypedDict):
    """The rows of state tables, by table name."""

    groups: list[GroupRow]
    members: list[MemberRow]
    assignments: list[AssignmentRow]
    offsets: list[OffsetRow]
    pending_offsets: list[OffsetRow]
    open_transactions: list[OpenTransactionRow]


@dataclass(frozen=True)
class GroupFacts:
    """One group in one offsets partition of one replica, at a moment.

    Attributes:
        load: the row of `loads`.
        held: the rows of the other state tables by name.
        history: rows of `HISTORY` up to the moment, in log order.
        steps: the memberships of the group up to the moment, in log order.
        rebalances: rows of `REBALANCES` up to the moment, in log order.
        why: rows of `WHY` at the moment.
        forecast: rows of `FORECAST` at the moment.
        findings: findings about the group.
        damage: findings of damage in the log.
        grade: how much of the moment the log still has.
        missing_offsets: the number of record offsets up to the moment without a record.
        complete_from: the record offset from which no record is missing.
        last_record_offset: the last record of any group up to the moment, or up to the end of the load.
        end_ms: the time of the last record up to the moment.
    """

    group: str
    origin: Origin
    load: LoadRow
    held: Held
    history: Sequence[HistoryRow]
    steps: Sequence[Membership]
    rebalances: Sequence[RebalanceRow]
    why: Sequence[WhyRow]
    forecast: Sequence[ForecastRow]
    findings: Sequence[Finding]
    damage: Sequence[Finding]
    grade: str
    grade_reason: str
    missing_offsets: int
    complete_from: int
    last_record_offset: int | None
    end_ms: int | None
    is_past: bool
    profile: BrokerProfile
    retention_ms: int
    commands: Commands

    @property
    def is_loaded(self) -> bool:
        """True if the load of this log reached its end with something loaded."""
        return self.load["outcome"] in LOADED_IN_MEMORY

    @property
    def is_complete(self) -> bool:
        """True if the log has every record up to the moment, from record 0 on."""
        return not self.missing_offsets and not self.complete_from and self.grade == "certain"

    @property
    def group_row(self) -> GroupRow | None:
        """Return the row of `groups`; None if the coordinator has no group of this name."""
        return next(iter(self.held["groups"]), None)

    @property
    def step(self) -> Membership | None:
        """Return the last membership."""
        return self.steps[-1] if self.steps else None

    @cached_property
    def kind(self) -> Kind | None:
        """Return the last known kind of the group; None if the log shows only offsets of it."""
        row = self.group_row
        if row is not None and any(not step.is_placeholder for step in self.steps):
            return cast("Kind", row["group_type"])
        lived = [step for step in self.steps if not step.is_placeholder]
        return next((step.kind for step in reversed(lived) if not step.is_tombstone), lived[-1].kind if lived else None)

    @cached_property
    def commits(self) -> list[HistoryRow]:
        """Return the commits of its history: values, no tombstones."""
        return [row for row in self.history if row["record_type"] in OFFSET_COMMIT_TYPES and not row["is_tombstone"]]

    @cached_property
    def assigned(self) -> dict[str, dict[str, list[AssignmentRow]]]:
        """Return rows of `assignments` by member id and kind."""
        found: dict[str, dict[str, list[AssignmentRow]]] = {}
        for row in self.held["assignments"]:
            found.setdefault(row["member_id"], {}).setdefault(row["kind"], []).append(row)
        return found


def until(history: Sequence[HistoryRow], last_record_offset: int | None) -> list[HistoryRow]:
    """Return these rows of `HISTORY` without the effect of records and markers after this record offset.

    None returns them unchanged.
    """
    if last_record_offset is None:
        return list(history)
    return [_until(row, last_record_offset) for row in history if row["record_offset"] <= last_record_offset]


def _until(row: HistoryRow, last_record_offset: int) -> HistoryRow:
    marker, ended_by = row["marker_record_offset"], row["ended_by_record_offset"]
    if marker is not None and marker > last_record_offset:
        open_again = row | {"transaction_outcome": "open", "fate": Fate.PENDING, "ended_by_record_offset": None}
        return open_again | {"marker_record_offset": None, "marker_timestamp_ms": None}
    if ended_by is not None and ended_by > last_record_offset:
        return row | {"fate": Fate.LIVE, "ended_by_record_offset": None}
    return row
