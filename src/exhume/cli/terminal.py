"""Tables for a terminal: rich tables in pages, or one block per row if the columns do not fit."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from exhume.cli.tables import NO_ROWS, NULL, Column, Row, cells_of, columns_of, pages_of
from exhume.escape import printable

#: Rows per page: few, to show the first rows soon.
TERMINAL_PAGE_ROWS = 200

# The width that a column needs: its name, or this much of a longer one (a time fits). With less, blocks are easier to read.
_READABLE_CELLS = 24
_GAP_CELLS = 3


def terminal_text(schema: pa.Schema, batches: Iterable[pa.RecordBatch], title: str | None = None) -> Iterator[str]:
    """The table for the terminal at standard output, page by page."""
    console = Console(file=sys.stdout, markup=False, emoji=False, highlight=False)
    columns = columns_of(schema)
    if title is not None:
        yield _captured(console, Text(printable(title), style="bold"))
    row_count = 0
    for page in pages_of(columns, batches, TERMINAL_PAGE_ROWS):
        widths = _readable_widths(columns, page)
        if sum(widths) + _GAP_CELLS * len(widths) <= console.width:
            yield _captured(console, _rich_table(columns, widths, page))
        else:
            for number, row in enumerate(page, start=row_count + 1):
                yield _captured(console, Text(f"row {number}", style="bold"), _rich_block(columns, row), Text())
        row_count += len(page)
    if not row_count:
        yield _captured(console, Text(NO_ROWS, style="dim"))


def _readable_widths(columns: Sequence[Column], page: Sequence[Row]) -> list[int]:
    widest = (max(cells_of(cell or NULL) for cell in cells) for cells in zip(*page, strict=True))
    words = (max(map(cells_of, _words(column.name))) for column in columns)
    return [max(word, min(width, _READABLE_CELLS)) for word, width in zip(words, widest, strict=True)]


def _words(name: str) -> list[str]:
    """The words of a column's name, each with its underscore: a narrow heading may break between them."""
    return [word for word in name.replace("_", "_ ").split(" ") if word] or [name]


def _folded(name: str, width: int) -> str:
    lines = [""]
    for word in _words(name):
        if cells_of(lines[-1] + word) > width and lines[-1]:
            lines.append("")
        lines[-1] += word
    return "\n".join(lines)


def _rich_table(columns: Sequence[Column], widths: Sequence[int], page: Sequence[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column, width in zip(columns, widths, strict=True):
        head = Text(_folded(column.name, width))
        table.add_column(head, justify="right" if column.is_number else "left", overflow="fold", min_width=width)
    for row in page:
        table.add_row(*(_rich_cell(cell) for cell in row))
    return table


def _rich_block(columns: Sequence[Column], row: Row) -> Table:
    block = Table.grid(padding=(0, 2))
    block.add_column(no_wrap=True)
    block.add_column(overflow="fold")
    for column, cell in zip(columns, row, strict=True):
        block.add_row(Text(column.name, style="dim"), _rich_cell(cell))
    return block


def _rich_cell(cell: str | None) -> Text:
    return Text(NULL, style="dim") if cell is None else Text(cell)


def _captured(console: Console, *parts: RenderableType) -> str:
    # Captured, not printed: rich ends the program with status 1 if the reader has closed the pipe.
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return captured.get()
