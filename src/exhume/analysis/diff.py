"""What differs between two states: two moments of one log, or two copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.table_comparison import differ, match, rows_of, texts_of
from exhume.arrow_rows import Int32, Json, schema_of
from exhume.codecs.json_values import to_json
from exhume.replay.state import CoordinatorState
from exhume.replay.state_tables import SCHEMAS


class DiffRow(TypedDict):
    """One row per value that differs. `table` is the state table, `key` what tells its rows apart besides the columns that stand here for
    themselves (null where that is nothing). `change` is added, removed or changed. Of a row that was added or removed, `column` is the one
    that says most about it, null where the key says all. Values are JSON, null where there is none. The record offsets are those of the
    records that made the two rows; `replica` and `offsets_partition` are null where the two sides do not agree on them.
    """

    table: str
    change: str
    replica: str | None
    offsets_partition: Int32 | None
    group: str | None
    member_id: str | None
    topic: str | None
    partition: Int32 | None
    key: Json | None
    column: str | None
    before: Json | None
    after: Json | None
    before_record_offset: int | None
    after_record_offset: int | None


DIFF = schema_of(DiffRow)

_Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Compared:
    """How rows of one table are told apart, which column speaks for a row that has no counterpart, and what is not compared."""

    key: tuple[str, ...]
    speaker: str | None
    left_out: tuple[str, ...] = ()


# What follows from other tables is not compared (`fetched_offsets`).
# An offset is named by its topic: the id is there or not by the version of the commit. An assignment too, as long as the name is known.
COMPARED: Mapping[str, Compared] = {
    "loads": Compared((), None, tuple(name for name in SCHEMAS["loads"].names if name not in ("outcome", "reason"))),
    "groups": Compared(("group",), "group_state"),
    "members": Compared(("group", "member_id"), "client_id"),
    "assignments": Compared(
        ("group", "member_id", "kind", "topic", "partition", "subtopology_id", "task_role"), None, ("topic_id", "topic_name_source")
    ),
    "offsets": Compared(("group", "topic", "partition"), "committed_offset"),
    "pending_offsets": Compared(("group", "topic", "partition", "producer_id"), "committed_offset"),
    "open_transactions": Compared(("producer_id", "first_record_offset"), "groups", ("pending_partitions",)),
    "share_partitions": Compared(("group", "topic", "partition"), "status", ("topic_id",)),
    "regular_expressions": Compared(("group", "regular_expression"), "topics"),
    "streams_topologies": Compared(("group", "subtopology_id"), "topology_epoch"),
}
_OWN_COLUMNS = ("group", "member_id", "topic", "partition")
_ORIGIN = ("replica", "offsets_partition", "record_offset")
_NO_ROW = -1


def diff_states(before: CoordinatorState, after: CoordinatorState) -> pa.Table:
    """What has to be said about `after` to somebody who knows `before`, as `DIFF`, ordered by table and key; no rows where they are equal.

    Rows are matched by their key within an offsets partition, and within a replica where a side holds more than one: the replicas of two
    copies may have any labels. A record that says again what another one said makes no difference.
    """
    by_replica = any(len(set(state.loads["replica"].to_pylist())) > 1 for state in (before, after))
    place = ("replica", "offsets_partition") if by_replica else ("offsets_partition",)
    parts = [_TableDiff(name, place, before.tables[name], after.tables[name]).table() for name in COMPARED]
    return pa.concat_tables(parts).combine_chunks()


class _TableDiff:
    """What differs between two tables of one name: worked out in columns, since most rows of most states are the same."""

    def __init__(self, name: str, place: tuple[str, ...], before: pa.Table, after: pa.Table) -> None:
        self._name, self._before, self._after = name, before, after
        self._compared = COMPARED[name]
        key = (*place, *self._compared.key)
        self._keys = pa.concat_tables([_key_columns(table, key) for table in (before, after)])
        self._match = match(self._keys, before.num_rows)

    def table(self) -> pa.Table:
        """As `DIFF`, in order."""
        found, compared = self._match, self._compared
        skipped = (*_ORIGIN, *compared.key, *compared.left_out)
        pieces = [
            self._piece("removed", compared.speaker, found.removed, np.full(len(found.removed), _NO_ROW)),
            self._piece("added", compared.speaker, np.full(len(found.added), _NO_ROW), found.added),
        ]
        for column in (name for name in SCHEMAS[self._name].names if name not in skipped):
            changed = differ(rows_of(self._before[column], found.old), rows_of(self._after[column], found.new))
            pieces.append(self._piece("changed", column, found.old[changed], found.new[changed]))
        every = pa.concat_tables(pieces)
        # Stable: columns stay in their order.
        order = np.argsort(self._match.ranks[every["row"].to_numpy()], kind="stable")
        return every.drop_columns("row").take(pa.array(order)).cast(DIFF)

    def _piece(self, change: str, column: str | None, old: _Rows, new: _Rows) -> pa.Table:
        """A difference for each pair of a row before and a row after, `_NO_ROW` where there is none; `row` is a row of `_keys`."""
        row = np.where(old == _NO_ROW, new + self._before.num_rows, old)
        own = {name: rows_of(self._keys[name], row) for name in self._compared.key if name in _OWN_COLUMNS}
        values = {
            "table": pa.repeat(self._name, len(row)),
            "change": pa.repeat(change, len(row)),
            **{name: self._place(name, old, new) for name in ("replica", "offsets_partition")},
            **own,
            "key": self._rest_of_key(row),
            "column": pa.repeat(pa.scalar(column, pa.string()), len(row)),
            "before": None if column is None else texts_of(rows_of(self._before[column], old)),
            "after": None if column is None else texts_of(rows_of(self._after[column], new)),
            "before_record_offset": rows_of(self._before["record_offset"], old),
            "after_record_offset": rows_of(self._after["record_offset"], new),
        }
        return pa.table({**{field.name: _or_nulls(values.get(field.name), field.type, len(row)) for field in DIFF}, "row": row})

    def _place(self, name: str, old: _Rows, new: _Rows) -> pa.ChunkedArray:
        """Where a row lies; null where the sides do not agree."""
        one, other = rows_of(self._before[name], old), rows_of(self._after[name], new)
        if len(old) and old[0] != _NO_ROW and new[0] != _NO_ROW:
            return pc.if_else(pc.equal(one, other), one, None)
        return pc.coalesce(one, other)

    def _rest_of_key(self, row: _Rows) -> pa.Array | None:
        """What of the key has no column of its own, as JSON."""
        names = [name for name in self._compared.key if name not in _OWN_COLUMNS]
        if not names:
            return None
        texts: dict[tuple[Any, ...], str | None] = {}
        values = [*zip(*(rows_of(self._keys[name], row).to_pylist() for name in names), strict=True)]
        for value in {*values}:
            rest = {name: part for name, part in zip(names, value, strict=True) if part is not None}
            texts[value] = to_json(rest) if rest else None
        return pa.array([texts[value] for value in values], pa.string())


def _key_columns(table: pa.Table, key: tuple[str, ...]) -> pa.Table:
    columns = {name: table[name] for name in key}
    if "topic" in columns:
        columns["topic"] = pc.coalesce(table["topic"], table["topic_id"])
    return pa.table(columns)


def _or_nulls(values: Any, data_type: pa.DataType, size: int) -> Any:
    return pa.nulls(size, pa.string() if isinstance(data_type, pa.JsonType) else data_type) if values is None else values
