"""Differences between two states for people: one line for each offset, member, group or assignment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import TypedDict

import pyarrow as pa

from exhume.analysis.diff import COMPARED, DiffRow
from exhume.arrow_rows import schema_of, table_of
from exhume.moments import is_moment, show_time

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


class DiffLineRow(TypedDict):
    """One row per changed object.

    `sign` is + for an added, - for a removed and ~ for a changed one. `subject` is its topic partition, its member, or its key. `value` is
    its most important value, `before → after` if that changed; otherwise all values that did, with their columns; null if there is none.
    `delta` is the difference of committed offsets. `also` are the other columns that changed.
    """

    sign: str
    table: str
    group: str | None
    subject: str | None
    value: str | None
    delta: int | None
    record_offset: int | None
    also: list[str]


DIFF_LINES = schema_of(DiffLineRow)


def diff_lines(differences: pa.Table) -> pa.Table:
    """Return the rows of `diff.DIFF` that are about one object as one row of `DIFF_LINES`, in their order."""
    rows: list[DiffRow] = differences.to_pylist()
    return table_of(DIFF_LINES, [_line(list(of_one)) for _, of_one in groupby(rows, key=_object)])


def _object(row: DiffRow) -> tuple[object, ...]:
    place = (row["replica"], row["offsets_partition"])
    return (*place, row["table"], row["change"], row["group"], row["member_id"], row["topic"], row["partition"], row["key"])


def _line(rows: Sequence[DiffRow]) -> DiffLineRow:
    first, speaker = rows[0], COMPARED[rows[0]["table"]].speaker
    said = [row for row in rows if row["column"] == speaker] or list(rows)
    numbers = [json.loads(said[0][side] or "null") for side in ("before", "after")]
    is_offset = said[0]["column"] == "committed_offset" and None not in numbers
    after_offset = first["after_record_offset"]
    return {
        "sign": _SIGNS[first["change"]],
        "table": first["table"],
        "group": first["group"],
        "subject": _subject(first),
        "value": _value(said, alone=said[0]["column"] == speaker),
        "delta": numbers[1] - numbers[0] if is_offset else None,
        "record_offset": first["before_record_offset"] if after_offset is None else after_offset,
        "also": [row["column"] for row in rows if row not in said and row["column"] is not None],
    }


def _subject(row: DiffRow) -> str | None:
    topic, partition = row["topic"], row["partition"]
    of_topic = None if topic is None else topic if partition is None else f"{topic}-{partition}"
    key = json.loads(row["key"] or "{}")
    parts = (of_topic, row["member_id"], *(str(value) for value in key.values() if value is not None))
    return " ".join(part for part in parts if part) or None


def _value(rows: Sequence[DiffRow], *, alone: bool) -> str | None:
    shown = []
    for row in rows:
        texts = [_text(text, row["column"] or "") for text in (row["before"], row["after"]) if text is not None]
        if texts:
            shown.append(" → ".join(texts) if alone else f"{row['column']} {' → '.join(texts)}")
    return ", ".join(shown) or None


def _text(value_text: str, column: str) -> str:
    value = json.loads(value_text)
    if isinstance(value, int) and is_moment(column):
        return show_time(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
