"""Tables for people: times in UTC, bytes in hexadecimal, null as a dash, control characters escaped.

A pipe or a file gets plain aligned columns, one row per line, without cuts. `terminal` has the tables that fit a width.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from exhume.cli.arrow_json import dump, is_bytes, is_json, is_list, is_text, json_column
from exhume.cli.moments import format_ms
from exhume.escape import printable
from exhume.moments import is_moment

#: Rows per page: many, for few changes of width.
PLAIN_PAGE_ROWS = 1000

#: A longer cell moves the cells after it, instead of widening its column in all rows.
WIDEST_COLUMN_CELLS = 80

NULL = "-"
NO_ROWS = "(no rows)"

Row = Sequence[str | None]


@dataclass(frozen=True, slots=True)
class Column:
    """A column for people. `show` takes a value that is not null."""

    name: str
    is_number: bool
    is_time: bool
    show: Callable[[Any], str]


def wants_width() -> bool:
    """Return True if the environment asks for a width or for colours, also in a pipe."""
    return os.environ.get("COLUMNS", "").isdigit() or "FORCE_COLOR" in os.environ


def columns_of(schema: pa.Schema) -> list[Column]:
    """The columns of this schema for people."""
    return [Column(printable(field.name), _is_number(field), is_moment(field.name), _shown_by(field)) for field in schema]


def shown_rows(columns: Sequence[Column], batch: pa.RecordBatch) -> list[Row]:
    """The cells of these rows, None for null."""
    shown = [_cells(column, array) for column, array in zip(columns, batch.columns, strict=True)]
    return list(zip(*shown, strict=True))


def plain_text(schema: pa.Schema, batches: Iterable[pa.RecordBatch], title: str | None = None) -> Iterator[str]:
    """The table as lines of aligned columns, page by page; a column is at least as wide as on earlier pages."""
    columns = columns_of(schema)
    if title is not None:
        yield f"{printable(title)}\n"
    widths = [cells_of(column.name) for column in columns]
    is_first = True
    for page in pages_of(columns, batches, PLAIN_PAGE_ROWS):
        shown = [[NULL if cell is None else cell for cell in cells] for cells in zip(*page, strict=True)]
        widths = [max(width, min(max(map(cells_of, set(cells))), WIDEST_COLUMN_CELLS)) for width, cells in zip(widths, shown, strict=True)]
        yield "".join([*(_head(columns, widths) if is_first else ()), *_lines(columns, widths, shown)])
        is_first = False
    if is_first:
        yield "".join([*_head(columns, widths), f"{NO_ROWS}\n"])


def pages_of(columns: Sequence[Column], batches: Iterable[pa.RecordBatch], page_rows: int) -> Iterator[list[Row]]:
    """The rows in pages of one size; the last page may be shorter."""
    page: list[Row] = []
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            rows = shown_rows(columns, batch.slice(start, page_rows - len(page)))
            page += rows
            start += len(rows)
            if len(page) == page_rows:
                yield page
                page = []
    if page:
        yield page


def _cells(column: Column, array: pa.Array) -> list[str | None]:
    if not is_text(array.type) and not pat.is_integer(array.type):
        return [None if value is None else column.show(value) for value in _values(array)]
    # Names, times and numbers repeat: each value is shown once.
    found = array.dictionary_encode(null_encoding="encode")
    texts = [None if value is None else column.show(value) for value in found.dictionary.to_pylist()]
    return [texts[place] for place in found.indices.to_numpy().tolist()]


def _values(array: pa.Array) -> list[Any]:
    values: list[Any] = array.to_pylist() if is_bytes(array.type) else json_column(array)
    return values


def _is_number(field: pa.Field) -> bool:
    return bool(pat.is_integer(field.type) or pat.is_floating(field.type)) and not is_moment(field.name)


def _shown_by(field: pa.Field) -> Callable[[Any], str]:
    if pat.is_integer(field.type):
        return format_ms if is_moment(field.name) else str
    if pat.is_timestamp(field.type):
        return lambda text: text.replace("T", " ")
    if is_list(field.type) and not pat.is_nested(field.type.value_type) and not is_bytes(field.type.value_type):
        return _show_list
    if is_bytes(field.type):
        return _show_bytes
    if is_json(field.type) or pat.is_nested(field.type) or pat.is_boolean(field.type):
        return dump
    return _show_text


def _show_text(value: Any) -> str:
    # An empty name is a name: Kafka has a group called "".
    return printable(str(value)) or '""'


def _show_bytes(value: bytes) -> str:
    return value.hex() or '""'


def _show_list(values: list[Any]) -> str:
    if not values:
        return "[]"
    return ", ".join("null" if value is None else _show_text(value) for value in values)


def _lines(columns: Sequence[Column], widths: Sequence[int], shown: Iterable[Iterable[str]]) -> list[str]:
    """The lines of these cells, which `shown` has column by column."""
    padded = [_padded(*each) for each in zip(columns, widths, shown, strict=True)]
    return ["  ".join(row).rstrip() + "\n" for row in zip(*padded, strict=True)]


def _padded(column: Column, width: int, cells: Iterable[str]) -> list[str]:
    pad = str.rjust if column.is_number else str.ljust
    # In ASCII a cell is as wide as it has characters.
    return [pad(cell, width if cell.isascii() else width - cells_of(cell) + len(cell)) for cell in cells]


def _head(columns: Sequence[Column], widths: Sequence[int]) -> list[str]:
    return [*_lines(columns, widths, [[column.name] for column in columns]), "  ".join("-" * width for width in widths) + "\n"]


def cells_of(text: str) -> int:
    """Return the width of printable text on a screen."""
    if text.isascii():
        return len(text)
    # Most logs have ASCII names only, and rich takes longer to import than to answer.
    from rich.cells import cell_len

    return cell_len(text)
