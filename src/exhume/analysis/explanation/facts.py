"""What the log tells about a group up to a moment, gathered for one offsets partition of one replica."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict, cast

from exhume.analysis.explanation.commands import Commands
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
    """The rows of state tables, by the name of the table."""

    groups: list[GroupRow]
    members: list[MemberRow]
    assignments: list[AssignmentRow]
    offsets: list[OffsetRow]
    pending_offsets: list[OffsetRow]
    open_transactions: list[OpenTransactionRow]


@dataclass(frozen=True)
class GroupFacts:
    """One group in one offsets partition of one replica, as of a moment.

    `load` is the row of `loads`, `held` the rows of the other state tables by name. `history` are rows of `HISTORY`, `steps` the group's
    memberships, `rebalances` rows of `REBALANCES`, all up to the moment and in the order of the log. `why` are rows of `WHY`, `forecast` of
    `FORECAST`, both of the moment; `findings` is what was found about the group, `damage` about the log. `grade` says how much the log
    still knows of the moment, `missing_offsets` how many record offsets up to it no record holds, `complete_from` from which record offset
    on every record is there. `last_record_offset` is the last record of any group up to the moment, or that a load came to, `end_ms` the
    time of the last one up to the moment.
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
        """Whether the load of this log came to an end with something held."""
        return self.load["outcome"] in LOADED_IN_MEMORY

    @property
    def is_complete(self) -> bool:
        """Whether every record of the log up to the moment is there, from record 0 on."""
        return not self.missing_offsets and not self.complete_from and self.grade == "certain"

    @property
    def group_row(self) -> GroupRow | None:
        """The row of `groups`; None where no group of this name is held."""
        return next(iter(self.held["groups"]), None)

    @property
    def step(self) -> Membership | None:
        """The last step of its life."""
        return self.steps[-1] if self.steps else None

    @cached_property
    def kind(self) -> Kind | None:
        """What kind of group it is, or was last; None where it is nothing but offsets, as far as the log shows."""
        row = self.group_row
        if row is not None and any(not step.is_placeholder for step in self.steps):
            return cast("Kind", row["group_type"])
        lived = [step for step in self.steps if not step.is_placeholder]
        return next((step.kind for step in reversed(lived) if not step.is_tombstone), lived[-1].kind if lived else None)

    @cached_property
    def commits(self) -> list[HistoryRow]:
        """The commits of its history: values, no tombstones."""
        return [row for row in self.history if row["record_type"] in OFFSET_COMMIT_TYPES and not row["is_tombstone"]]

    @cached_property
    def assigned(self) -> dict[str, dict[str, list[AssignmentRow]]]:
        """Rows of `assignments` by member id and kind."""
        found: dict[str, dict[str, list[AssignmentRow]]] = {}
        for row in self.held["assignments"]:
            found.setdefault(row["member_id"], {}).setdefault(row["kind"], []).append(row)
        return found


def until(history: Sequence[HistoryRow], last_record_offset: int | None) -> list[HistoryRow]:
    """These rows of `HISTORY` as they were with this record as the last one: later records and markers had not come yet.

    None takes them as they are.
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
