"""The differences between two states: two moments of one log, or two copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from exhume.arrow_rows import Int32, Json, schema_of
from exhume.codecs.json_values import to_json
from exhume.replay.state import CoordinatorState
from exhume.replay.state_tables import SCHEMAS

_Rows = npt.NDArray[np.int64]
_Marks = npt.NDArray[np.bool_]

#: Ranks are renumbered before their product exceeds this.
_MOST = 2**62


@dataclass(frozen=True, slots=True)
class Match:
    """The rows of two tables with the same key. Of rows of one table with the same key only the last counts.

    `old[i]` and `new[i]` have the same key; `removed` are rows of the first table alone, `added` of the second, each in the order of keys.
    `ranks` are the places of all rows, those of the first table first, among the distinct keys.
    """

    ranks: _Rows
    old: _Rows
    new: _Rows
    removed: _Rows
    added: _Rows


def match(keys: pa.Table, old_rows: int) -> Match:
    """Match the rows of two tables; `keys` are the keys of the first table, which has `old_rows` rows, followed by those of the second.

    Keys are sorted column by column: null first, numbers and texts as in Python. A null matches a null.
    """
    ranks = _ranks(keys)
    old, new = _last_of_each(ranks[:old_rows]), _last_of_each(ranks[old_rows:])
    old_ranks, new_ranks = ranks[:old_rows][old], ranks[old_rows:][new]
    _, of_old, of_new = np.intersect1d(old_ranks, new_ranks, assume_unique=True, return_indices=True)
    return Match(ranks, old[of_old], new[of_new], np.delete(old, of_old), np.delete(new, of_new))


def _ranks(keys: pa.Table) -> _Rows:
    """Return the place of each row in the order of keys; the same place for the same key."""
    ranks, most = np.zeros(keys.num_rows, np.int64), 1
    for column in keys.columns:
        if not keys.num_rows:
            break
        encoded = column.combine_chunks().dictionary_encode()
        places = np.zeros(len(encoded.dictionary) + 1, np.int64)
        places[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(1, len(places))
        # The last place is that of null, which sorts first.
        own = places[encoded.indices.fill_null(len(places) - 1).to_numpy()]
        if most * len(places) > _MOST:
            _, ranks = np.unique(ranks, return_inverse=True)
            most = keys.num_rows
        ranks, most = ranks * len(places) + own, most * len(places)
    return ranks


def _last_of_each(ranks: _Rows) -> _Rows:
    """Return the last row of each rank, in the order of ranks."""
    order = np.argsort(ranks, kind="stable")
    is_last = np.append(np.diff(ranks[order]) != 0, [True] * bool(len(ranks)))
    return order[is_last.astype(np.bool_)]


def rows_of(column: pa.ChunkedArray, rows: _Rows) -> pa.ChunkedArray:
    """Return the values of these rows; null for a negative row."""
    return column.take(pa.array(rows, mask=rows < 0))


def differ(one: pa.ChunkedArray, other: pa.ChunkedArray) -> _Marks:
    """True where values of these columns differ; a null equals a null only."""
    if len(one) == 0:
        return np.zeros(0, np.bool_)
    return _differ(_storage(one), _storage(other))


def _differ(one: pa.Array, other: pa.Array) -> _Marks:
    found: _Marks = np.asarray(pc.not_equal(one.is_null(), other.is_null()))
    if pa.types.is_struct(one.type):
        for mine, theirs in zip(one.flatten(), other.flatten(), strict=True):
            found = found | _differ(mine, theirs)
    elif pa.types.is_list(one.type):
        sizes, other_sizes = (np.asarray(pc.list_value_length(each).fill_null(0)) for each in (one, other))
        found = found | (sizes != other_sizes)
        as_long = np.flatnonzero(~found)
        mine, theirs = (each.take(pa.array(as_long)) for each in (one, other))
        items = _differ(mine.flatten(), theirs.flatten())
        found[as_long[np.asarray(pc.list_parent_indices(mine))[items]]] = True
    else:
        found = found | np.asarray(pc.not_equal(one, other).fill_null(False))
    return found


def texts_of(column: pa.ChunkedArray) -> pa.Array:
    """Return these values as `to_json` writes them; null stays null."""
    values = _storage(column)
    if pa.types.is_boolean(values.type) or pa.types.is_integer(values.type):
        return values.cast(pa.string())
    if pa.types.is_string(values.type):
        encoded = values.dictionary_encode()
        return pa.array([to_json(value) for value in encoded.dictionary.to_pylist()], pa.string()).take(encoded.indices)
    return pa.array([None if value is None else to_json(value) for value in values.to_pylist()], pa.string())


def _storage(column: pa.ChunkedArray) -> pa.Array:
    """Return one array; JSON becomes text."""
    array = column.combine_chunks()
    return array.storage if isinstance(array, pa.ExtensionArray) else array


class DiffRow(TypedDict):
    """One row per value that differs.

    `table` is the state table. `key` are its key columns that have no column here, as JSON; null if there are none. `change` is added,
    removed or changed. For an added or removed row, `column` is its most important column, null if the key says everything. Values are
    JSON, null if there is none. The record offsets are those of the records of the two rows; `replica` and `offsets_partition` are null if
    the two sides differ in them.
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


@dataclass(frozen=True, slots=True)
class Compared:
    """The key of the rows of one table, the most important column of a row without a counterpart, and the columns that are not compared."""

    key: tuple[str, ...]
    speaker: str | None
    left_out: tuple[str, ...] = ()


# Tables that follow from others are not compared (`fetched_offsets`). The key of an offset has its topic name, because commits of some
# versions have no topic id; so does that of an assignment, if the name is known.
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
    """Return the differences of `after` from `before` as `DIFF`, sorted by table and key; no rows if they are equal.

    Rows match by their key within an offsets partition, and within a replica if a side has more than one: the replicas of two copies may
    have any labels. A record that repeats another one makes no difference.
    """
    by_replica = any(len(set(state.loads["replica"].to_pylist())) > 1 for state in (before, after))
    place = ("replica", "offsets_partition") if by_replica else ("offsets_partition",)
    parts = [_TableDiff(name, place, before.tables[name], after.tables[name]).table() for name in COMPARED]
    return pa.concat_tables(parts).combine_chunks()


class _TableDiff:
    """The differences between two tables of one name, by columns, because most rows of most states are equal."""

    def __init__(self, name: str, place: tuple[str, ...], before: pa.Table, after: pa.Table) -> None:
        self._name, self._before, self._after = name, before, after
        self._compared = COMPARED[name]
        key = (*place, *self._compared.key)
        self._keys = pa.concat_tables([_key_columns(table, key) for table in (before, after)])
        self._match = match(self._keys, before.num_rows)

    def table(self) -> pa.Table:
        """Return the differences as `DIFF`, in order."""
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
        # A stable sort: columns stay in their order.
        order = np.argsort(self._match.ranks[every["row"].to_numpy()], kind="stable")
        return every.drop_columns("row").take(pa.array(order)).cast(DIFF)

    def _piece(self, change: str, column: str | None, old: _Rows, new: _Rows) -> pa.Table:
        """Return a difference for each pair of an old and a new row, `_NO_ROW` for a missing one; `row` is a row of `_keys`."""
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
        """Return a column of the place of a row; null if the sides differ in it."""
        one, other = rows_of(self._before[name], old), rows_of(self._after[name], new)
        if len(old) and old[0] != _NO_ROW and new[0] != _NO_ROW:
            return pc.if_else(pc.equal(one, other), one, None)
        return pc.coalesce(one, other)

    def _rest_of_key(self, row: _Rows) -> pa.Array | None:
        """Return the key columns without a column of their own, as JSON."""
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
