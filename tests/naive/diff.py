"""Differences of states row by row, in dicts: what `exhume.analysis.diff` works out in columns. It shares which columns are a key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from exhume.analysis.diff import COMPARED, DIFF, Compared
from exhume.arrow_rows import table_of
from exhume.codecs.json_values import to_json
from exhume.replay.state import CoordinatorState
from exhume.replay.state_tables import SCHEMAS

_Row = dict[str, Any]

_OWN_COLUMNS = ("group", "member_id", "topic", "partition")
_ORIGIN = ("replica", "offsets_partition", "record_offset")


def diff_states(before: CoordinatorState, after: CoordinatorState) -> pa.Table:
    """As `exhume.analysis.diff.diff_states`."""
    by_replica = any(len(set(state.loads["replica"].to_pylist())) > 1 for state in (before, after))
    rows = (row for name in COMPARED for row in _table_rows(name, before.tables[name], after.tables[name], by_replica=by_replica))
    return table_of(DIFF, rows)


def _table_rows(name: str, before: pa.Table, after: pa.Table, *, by_replica: bool) -> Iterator[_Row]:
    compared = COMPARED[name]
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


def _by_key(table: pa.Table, compared: Compared, place: tuple[str, ...]) -> dict[tuple[Any, ...], _Row]:
    return {tuple(_named(row, column) for column in (*place, *compared.key)): row for row in table.to_pylist()}


def _named(row: _Row, column: str) -> Any:
    return row["topic_id"] if column == "topic" and row["topic"] is None else row[column]


def _key_columns(compared: Compared, row: _Row) -> _Row:
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
