"""What differs between two states: two moments of one log, or two copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from exhume.arrow_rows import table_of
from exhume.codecs.json_values import to_json
from exhume.replay.state import CoordinatorState
from exhume.replay.state_tables import SCHEMAS

#: One row per value that differs. `table` is the state table, `key` what tells its rows apart besides the columns that stand here for
#: themselves (null where that is nothing). `change` is added, removed or changed. Of a row that was added or removed, `column` is the one
#: that says most about it, null where the key says all. Values are JSON, null where there is none. The record offsets are those of the
#: records that made the two rows; `replica` and `offsets_partition` are null where the two sides do not agree on them.
DIFF = pa.schema(
    [
        ("table", pa.string()),
        ("change", pa.string()),
        ("replica", pa.string()),
        ("offsets_partition", pa.int32()),
        ("group", pa.string()),
        ("member_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.json_()),
        ("column", pa.string()),
        ("before", pa.json_()),
        ("after", pa.json_()),
        ("before_record_offset", pa.int64()),
        ("after_record_offset", pa.int64()),
    ]
)

_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Compared:
    """How rows of one table are told apart, which column speaks for a row that has no counterpart, and what is not compared."""

    key: tuple[str, ...]
    speaker: str | None
    left_out: tuple[str, ...] = ()


# What follows from other tables is not compared (`fetched_offsets`).
# An offset is named by its topic: the id is there or not by the version of the commit. An assignment too, as long as the name is known.
_COMPARED: Mapping[str, _Compared] = {
    "loads": _Compared((), None, tuple(name for name in SCHEMAS["loads"].names if name not in ("outcome", "reason"))),
    "groups": _Compared(("group",), "group_state"),
    "members": _Compared(("group", "member_id"), "client_id"),
    "assignments": _Compared(
        ("group", "member_id", "kind", "topic", "partition", "subtopology_id", "task_role"), None, ("topic_id", "topic_name_source")
    ),
    "offsets": _Compared(("group", "topic", "partition"), "committed_offset"),
    "pending_offsets": _Compared(("group", "topic", "partition", "producer_id"), "committed_offset"),
    "open_transactions": _Compared(("producer_id", "first_record_offset"), "groups", ("pending_partitions",)),
    "share_partitions": _Compared(("group", "topic", "partition"), "status", ("topic_id",)),
    "regular_expressions": _Compared(("group", "regular_expression"), "topics"),
    "streams_topologies": _Compared(("group", "subtopology_id"), "topology_epoch"),
}
_OWN_COLUMNS = ("group", "member_id", "topic", "partition")
_ORIGIN = ("replica", "offsets_partition", "record_offset")


def diff_states(before: CoordinatorState, after: CoordinatorState) -> pa.Table:
    """What has to be said about `after` to somebody who knows `before`, as `DIFF`, ordered by table and key; no rows where they are equal.

    Rows are matched by their key within an offsets partition, and within a replica where a side holds more than one: the replicas of two
    copies may have any labels. A record that says again what another one said makes no difference.
    """
    by_replica = any(len(set(state.loads["replica"].to_pylist())) > 1 for state in (before, after))
    rows = (row for name in _COMPARED for row in _table_rows(name, before.tables[name], after.tables[name], by_replica=by_replica))
    return table_of(DIFF, rows)


def _table_rows(name: str, before: pa.Table, after: pa.Table, *, by_replica: bool) -> Iterator[_Row]:
    compared = _COMPARED[name]
    place = ("replica", "offsets_partition") if by_replica else ("offsets_partition",)
    old, new = (_by_key(table, compared, place) for table in (before, after))
    columns = [column for column in SCHEMAS[name].names if column not in (*_ORIGIN, *compared.key, *compared.left_out)]
    for key in sorted({*old, *new}, key=lambda key: [(part is not None, part) for part in key]):
        removed, added = old.get(key), new.get(key)
        row = _place(removed, added) | {"table": name} | _key_columns(compared, removed or added or {})
        if removed is None or added is None:
            change = "added" if removed is None else "removed"
            yield row | {"change": change, "column": compared.speaker} | _values(compared.speaker, removed, added)
            continue
        for column in columns:
            if removed[column] != added[column]:
                yield row | {"change": "changed", "column": column} | _values(column, removed, added)


def _by_key(table: pa.Table, compared: _Compared, place: tuple[str, ...]) -> dict[tuple[Any, ...], _Row]:
    return {tuple(_named(row, column) for column in (*place, *compared.key)): row for row in table.to_pylist()}


def _named(row: _Row, column: str) -> Any:
    return row["topic_id"] if column == "topic" and row["topic"] is None else row[column]


def _key_columns(compared: _Compared, row: _Row) -> _Row:
    own = {column: _named(row, column) for column in compared.key if column in _OWN_COLUMNS}
    rest = {column: row[column] for column in compared.key if column not in _OWN_COLUMNS and row[column] is not None}
    return {**own, "key": to_json(rest) if rest else None}


def _place(removed: _Row | None, added: _Row | None) -> _Row:
    sides = [side for side in (removed, added) if side is not None]
    return {
        column: sides[0][column] for column in ("replica", "offsets_partition") if all(side[column] == sides[0][column] for side in sides)
    }


def _values(column: str | None, removed: _Row | None, added: _Row | None) -> _Row:
    return {
        "before": _json(column, removed),
        "after": _json(column, added),
        "before_record_offset": _record_offset(removed),
        "after_record_offset": _record_offset(added),
    }


def _json(column: str | None, row: _Row | None) -> str | None:
    return None if row is None or column is None or row[column] is None else to_json(row[column])


def _record_offset(row: _Row | None) -> int | None:
    return None if row is None else row["record_offset"]
