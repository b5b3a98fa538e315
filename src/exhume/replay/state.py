"""The state of a coordinator of one release, as tables and as objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from exhume.errors import RequestError, near_by
from exhume.findings import Findings
from exhume.notebook import html_table
from exhume.replay.state_tables import SCHEMAS, AssignmentRow, GroupRow, MemberRow, OffsetRow
from exhume.replay.verdict import LOADED

#: Every group that a state has is in one of them.
NAMING_TABLES = ("groups", "offsets", "pending_offsets")


@dataclass(frozen=True, slots=True)
class GroupState:
    """One group as an object. Every field is a row, or a list of rows, of the table of its name; with its column names.

    `group` is None for an id that has offsets but no group (Java coordinator: the group was removed, its offsets were not).
    """

    name: str
    group: GroupRow | None
    members: list[MemberRow]
    assignments: list[AssignmentRow]
    offsets: list[OffsetRow]
    pending_offsets: list[OffsetRow]


class LazyTables(Mapping[str, pa.Table]):
    """Tables by name, each built on first access.

    A maker gets the wanted groups, None for all, and may leave out rows of other groups.
    """

    def __init__(self, makers: Mapping[str, Callable[[Collection[str] | None], pa.Table]], groups: Collection[str] | None = None) -> None:
        self._makers = makers
        self._groups = groups
        self._made: dict[str, pa.Table] = {}

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._made:
            made = self._makers[name](self._groups)
            self._made[name] = made if self._groups is None else _of_groups(name, made, self._groups)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def only(self, groups: Collection[str]) -> LazyTables:
        """The rows of these groups."""
        wanted = set(groups) if self._groups is None else set(groups) & set(self._groups)
        return LazyTables(self._makers, wanted)


def _of_groups(name: str, table: pa.Table, groups: Collection[str]) -> pa.Table:
    if "group" in SCHEMAS[name].names:
        return table.filter(pc.is_in(table["group"], value_set=pa.array(sorted(groups), pa.string())))
    if name == "open_transactions":
        return table.filter(pa.array([not set(groups).isdisjoint(touched) for touched in table["groups"].to_pylist()], pa.bool_()))
    return table


@dataclass(frozen=True, slots=True, repr=False)
class CoordinatorState:
    """The state tables of a load; their columns are `state_tables.SCHEMAS`. `findings` are the load's and the evidence's."""

    release: str
    mode: str
    tables: LazyTables
    findings: Findings

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.tables[name].num_rows:,} {name}" for name in ("groups", "members", "offsets"))
        return f"<CoordinatorState of {self.release}, {self.mode}: {counts}>"

    def _repr_html_(self) -> str:
        columns = ("group", "group_type", "group_state", "protocol", "generation", "group_epoch")
        rows = zip(*(self.groups[name].to_pylist() for name in columns), strict=True)
        return html_table(repr(self)[1:-1], columns, rows)

    @property
    def groups(self) -> pa.Table:
        return self.tables["groups"]

    @property
    def members(self) -> pa.Table:
        return self.tables["members"]

    @property
    def assignments(self) -> pa.Table:
        return self.tables["assignments"]

    @property
    def offsets(self) -> pa.Table:
        return self.tables["offsets"]

    @property
    def pending_offsets(self) -> pa.Table:
        return self.tables["pending_offsets"]

    @property
    def fetched_offsets(self) -> pa.Table:
        return self.tables["fetched_offsets"]

    @property
    def open_transactions(self) -> pa.Table:
        return self.tables["open_transactions"]

    @property
    def share_partitions(self) -> pa.Table:
        return self.tables["share_partitions"]

    @property
    def regular_expressions(self) -> pa.Table:
        return self.tables["regular_expressions"]

    @property
    def streams_topologies(self) -> pa.Table:
        return self.tables["streams_topologies"]

    @property
    def loads(self) -> pa.Table:
        return self.tables["loads"]

    def group(self, name: str) -> GroupState:
        """This group with everything that belongs to it.

        Raises:
            RequestError: no partition has a group or an offset of this name; lists the nearest names.
        """
        found = {
            table: self.tables[table].filter(pc.field("group") == name).to_pylist()
            for table in ("groups", "members", "assignments", "offsets", "pending_offsets")
        }
        if not any(found.values()):
            known = {*self.groups["group"].to_pylist(), *self.offsets["group"].to_pylist()}
            raise RequestError(f"no group {name!r} in this state", remedy=near_by(name, known))
        return GroupState(
            name,
            found["groups"][0] if found["groups"] else None,
            found["members"],
            found["assignments"],
            found["offsets"],
            found["pending_offsets"],
        )

    def only(self, groups: Collection[str]) -> CoordinatorState:
        """This state with the rows of these groups; open transactions that touch one of them, and every load, stay."""
        return replace(self, tables=self.tables.only(groups))


def refuse_unknown_groups(groups: Iterable[str], *states: CoordinatorState) -> None:
    """Raise `RequestError` for a group that none of these states has, with the nearest names. After a failed load any group may exist."""
    outcomes = {outcome for state in states for outcome in state.loads["outcome"].to_pylist()}
    if outcomes <= LOADED:
        known = {name for state in states for table in NAMING_TABLES for name in state.tables[table]["group"].unique().to_pylist()}
        for group in groups:
            if group not in known:
                where = "this state" if len(states) == 1 else "these states"
                raise RequestError(f"no group {group!r} in {where}", remedy=near_by(group, known))
