"""Build state tables from the loads of all partitions; some of them on first access."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pyarrow as pa

from exhume.arrow_rows import OfLog
from exhume.findings import Finding
from exhume.replay import load_findings
from exhume.replay.member_columns import LaterMemberTables, MemberTableName, in_group_order
from exhume.replay.offset_fetch import fetched_table
from exhume.replay.partition_state import ClassicGroupState, OffsetKey, PartitionState
from exhume.replay.profiles import BrokerProfile
from exhume.replay.state import LazyTables
from exhume.replay.state_rows import later_groups, state_rows
from exhume.replay.state_tables import SCHEMAS, LoadRow, Row, table
from exhume.replay.topic_names import TopicNames

#: Makes the rows of one partition, of these groups only if that saves work; the builder filters out other groups afterwards.
_Part = Callable[[Collection[str] | None], pa.Table]
_LATER: tuple[MemberTableName, ...] = ("members", "assignments")


class StateTables:
    """Takes the state of one partition after the other. `findings` are those about the rows."""

    def __init__(self, names: TopicNames) -> None:
        self._names = names
        self._parts: dict[str, list[_Part]] = {name: [] for name in SCHEMAS}
        self.findings: list[Finding] = []

    def add(self, origin: OfLog, partition_state: PartitionState, load: LoadRow) -> None:
        """Add the rows of a partition; `origin` are its columns."""
        rows: dict[str, Sequence[Row]] = {"loads": [load | origin]}
        for name, part in state_rows(partition_state, self._names).items():
            rows[name] = [{**row, **origin} for row in part]
        for name, part in rows.items():
            self.findings.extend(load_findings.invalid_utf8(name, part))
            self._parts[name].append(_maker(name, part))
        if later := later_groups(partition_state):
            for name in _LATER:
                self._parts[name][-1] = _later_maker(name, origin, later, rows[name])
        if partition_state.offset_columns is not None:
            in_columns = partition_state.offset_columns.table(origin)
            in_rows = table("offsets", rows["offsets"])
            merged = _merged(in_columns, in_rows) if rows["offsets"] else in_columns
            self._parts["offsets"][-1] = lambda _: merged

    def add_fetches(self, origin: OfLog, shown: PartitionState, held: PartitionState, profile: BrokerProfile) -> None:
        """Add the answers to requests for the offsets of a partition: see `offset_fetch.fetched_table`."""
        self._parts["fetched_offsets"].append(lambda groups: fetched_table(shown, held, profile, origin, groups))

    def tables(self) -> LazyTables:
        """All tables, with the rows of every partition that was added."""
        return LazyTables({name: _joined(name, parts) for name, parts in self._parts.items()})


def _maker(name: str, rows: Sequence[Row]) -> _Part:
    return lambda _: table(name, rows)


def _later_maker(name: MemberTableName, origin: OfLog, later: Sequence[ClassicGroupState], others: Sequence[Row]) -> _Part:
    def made(groups: Collection[str] | None) -> pa.Table:
        wanted = [group for group in later if groups is None or group.group in groups]
        return in_group_order([LaterMemberTables(wanted).table(name, origin), table(name, others)])

    return made


def _joined(name: str, parts: list[_Part]) -> _Part:
    return lambda groups: pa.concat_tables([SCHEMAS[name].empty_table(), *(part(groups) for part in parts)])


def _merged(many: pa.Table, few: pa.Table) -> pa.Table:
    """Merge two tables of offsets in the order of their keys."""
    places = [_place(many, key) for key in zip(*(few[column].to_pylist() for column in ("group", "topic", "partition")), strict=True)]
    order: list[pa.Table] = []
    start = 0
    for row, place in enumerate(places):
        order += [many.slice(start, place - start), few.slice(row, 1)]
        start = place
    return pa.concat_tables([*order, many.slice(start)])


def _place(many: pa.Table, key: OffsetKey) -> int:
    low, high = 0, many.num_rows
    while low < high:
        middle = (low + high) // 2
        if tuple(many[column][middle].as_py() for column in ("group", "topic", "partition")) < key:
            low = middle + 1
        else:
            high = middle
    return low
