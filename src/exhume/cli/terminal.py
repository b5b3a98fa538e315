"""Tables that fit the width of a terminal, and rows as records. `fitting` has the rules."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from rich.console import Console
from rich.text import Text

from exhume.cli.fitting import GAP_CELLS, Fit, fit, records, values_of
from exhume.cli.links import link, wants_links
from exhume.cli.tables import NO_ROWS, NULL, Column, Row, cells_of, columns_of, pages_of
from exhume.escape import printable

#: Rows per page: few, to show the first rows soon. Each page fits by itself.
TERMINAL_PAGE_ROWS = 200
#: The colours of cells with these words.
_STYLES = {
    **dict.fromkeys(("incident", "load_aborted", "load_stalled", "lost", "unexplained"), "bold red"),
    **dict.fromkeys(("warn", "likely", "possible", "pending"), "yellow"),
    "undecidable": "dim",
}
_INDENT = "    "
#: The column of files, which are links.
_PATH = "path"
#: The room that the start of a sentence needs at the end of a row.
_LEAST_START_CELLS = 12


def console_for(*, is_terminal: bool) -> Console:
    """The console of standard output: in colours on a terminal that has them, and as wide as `COLUMNS` or the terminal."""
    with_colors = is_terminal or "FORCE_COLOR" in os.environ
    return Console(file=sys.stdout, markup=False, emoji=False, highlight=False, color_system="auto" if with_colors else None)


def terminal_text(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], title: str | None = None, *, is_terminal: bool = True
) -> Iterator[str]:
    """The table at the width of the terminal, page by page; in a pipe with its headings in one line."""
    console = console_for(is_terminal=is_terminal)
    columns = columns_of(schema)
    if title is not None:
        yield _captured(console, [Text(printable(title), style="bold underline")])
    is_empty = True
    for page in pages_of(columns, batches, TERMINAL_PAGE_ROWS):
        fitted = fit(columns, page, console.width, folds_heads=is_terminal)
        if fitted is None:
            yield _captured(console, [_one_row(columns, page)], soft_wrap=False)
        else:
            yield _captured(console, _fitted(console, columns, fitted))
        is_empty = False
    if is_empty:
        yield _captured(console, [Text(NO_ROWS, style="dim")])


def record_text(schema: pa.Schema, batches: Iterable[pa.RecordBatch], title: str | None = None, *, is_terminal: bool) -> Iterator[str]:
    """Each row as a block of lines, a column in each."""
    console = console_for(is_terminal=is_terminal)
    columns = columns_of(schema)
    if title is not None:
        yield _captured(console, [Text(printable(title), style="bold underline")])
    name_cells = max((len(column.name) for column in columns), default=0)
    row_count = 0
    for page in pages_of(columns, batches, TERMINAL_PAGE_ROWS):
        lines: list[Text] = []
        for record in records(columns, page):
            row_count += 1
            lines.append(Text(f"row {row_count}", style="bold"))
            for name, cell in record:
                lines.append(Text.assemble((f"{name:<{name_cells}}  ", "dim"), _linked(console, name, _cell(cell), cell)))
            lines.append(Text())
        yield _captured(console, lines)
    if not row_count:
        yield _captured(console, [Text(NO_ROWS, style="dim")])


def _one_row(columns: Sequence[Column], page: Sequence[Row]) -> Text:
    count = f"{len(page)} equal rows: " if len(page) > 1 else ""
    return Text(count + values_of(columns, page[0]))


def _fitted(console: Console, columns: Sequence[Column], fitted: Fit) -> Iterator[Text]:
    if fitted.notes:
        yield from Text("; ".join(fitted.notes), style="dim").wrap(console, console.width)
    are_numbers = [columns[place].is_number for place in fitted.columns]
    heads = [head.split("\n") for head in fitted.heads]
    most = max((len(lines) for lines in heads), default=0)
    for number in range(most):
        # The last lines of all headings are beside each other, next to the rows.
        cells = [Text(lines[number - most] if number >= most - len(lines) else "", style="bold") for lines in heads]
        yield _line(cells, fitted.widths, are_numbers)
    flows = _saves_lines(console, fitted)
    for row in fitted.rows:
        cells = [
            _linked(console, columns[place].name, _cell(row[place]), fitted.legend.get(row[place] or "", row[place]))
            for place in fitted.columns
        ]
        folded = [cell.wrap(console, width) if cell.cell_len > width else [cell] for cell, width in zip(cells, fitted.widths, strict=True)]
        below = fitted.below
        for number in range(max((len(lines) for lines in folded), default=0)):
            line = _line([lines[number] if number < len(lines) else Text() for lines in folded], fitted.widths, are_numbers)
            if flows and not number:
                start, *rest = _flowing(console, row[below[0]] or NULL, _room_at_end(console, fitted))
                line.append(" " * (sum(fitted.widths) + GAP_CELLS * len(fitted.widths) - line.cell_len))
                yield line + start
                yield from rest
                below = below[1:]
            else:
                yield line
        for place in below:
            if row[place] is not None:
                label = "" if place == fitted.below[0] else f"{columns[place].name}: "
                yield from _indented(console, f"{label}{row[place]}")
    for mark, sentence in fitted.numbered.items():
        for number, line in enumerate(Text(f"{mark} {sentence}").wrap(console, max(console.width - len(_INDENT), 1))):
            yield Text(_INDENT if number else "") + line
    legend = [Text.assemble((short, "bold"), " is ", whole) for short, whole in fitted.legend.items()]
    if legend:
        yield from Text("; ", style="dim").join(legend).wrap(console, console.width)


def _room_at_end(console: Console, fitted: Fit) -> int:
    return console.width - sum(fitted.widths) - GAP_CELLS * len(fitted.widths)


def _saves_lines(console: Console, fitted: Fit) -> bool:
    """Return True if sentences that begin at the ends of their rows take fewer lines than below them."""
    room = _room_at_end(console, fitted)
    if not fitted.below or room < _LEAST_START_CELLS:
        return False
    sentences = [row[fitted.below[0]] for row in fitted.rows]
    flowing = sum(len(_flowing(console, sentence, room)) - 1 for sentence in sentences if sentence is not None)
    return flowing < sum(len([*_indented(console, sentence)]) for sentence in sentences if sentence is not None)


def _flowing(console: Console, cell: str, room: int) -> list[Text]:
    """Return the lines of a sentence, the first one in this room."""
    text = Text(cell)
    start = text.wrap(console, room)[0]
    start.rstrip()
    if cells_of(cell.split(" ", 1)[0]) > room:
        start = Text()
    rest = cell[len(start.plain) :].lstrip(" ")
    return [start, *(_indented(console, rest) if rest else ())]


def _indented(console: Console, sentence: str) -> Iterator[Text]:
    for line in Text(sentence).wrap(console, max(console.width - len(_INDENT), 1)):
        yield Text(_INDENT) + line


def _line(cells: Sequence[Text], widths: Sequence[int], are_numbers: Sequence[bool]) -> Text:
    line = Text()
    for number, (cell, width, is_number) in enumerate(zip(cells, widths, are_numbers, strict=True)):
        cell.rstrip()
        padding = " " * max(width - cell.cell_len, 0)
        line.append(" " * GAP_CELLS if number else "")
        line.append_text(Text(padding) + cell if is_number else cell + Text(padding))
    line.rstrip()
    return line


def _cell(cell: str | None) -> Text:
    return Text(NULL, style="dim") if cell is None else Text(cell, style=_STYLES.get(cell, ""))


def _linked(console: Console, column: str, cell: Text, path: str | None) -> Text:
    if column == _PATH and path is not None and wants_links(console):
        link(cell, path)
    return cell


def _captured(console: Console, parts: Iterable[Text], *, soft_wrap: bool = True) -> str:
    # Captured, not printed: rich ends the program with status 1 if the reader has closed the pipe.
    with console.capture() as captured:
        for part in parts:
            console.print(part, soft_wrap=soft_wrap)
    return captured.get()
