"""The rows and columns of an answer to show: the options `--where`, `--sort`, `--columns` and `--limit` of every table.

They hold for one command at a time, and `render` applies them to each of its tables.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from exhume.errors import RequestError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from exhume.where import Where

Source: TypeAlias = "pa.Table | pa.RecordBatchReader"

#: The rows of a table that a terminal gets without `--limit`.
TERMINAL_ROWS = 100
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class Selection:
    """What a user wants of the tables.

    Attributes:
        where: the condition that rows must meet.
        sort: columns to sort by, and whether the greatest value comes first.
        columns: the columns to show, in this order; none: those of the command.
        limit: the number of rows to show; 0: all; None: all, or `TERMINAL_ROWS` on a terminal.
    """

    where: Where | None = None
    sort: tuple[tuple[str, bool], ...] = ()
    columns: tuple[str, ...] = ()
    limit: int | None = None

    @property
    def is_given(self) -> bool:
        """True if the user wants rows or columns of a table, rather than the form that a command has for people."""
        return bool(self.where or self.sort or self.columns or self.limit is not None)

    @property
    def is_limit(self) -> bool:
        """True if the user wants all rows, or so many, in the form that a command has for people."""
        return self.limit is not None and not (self.where or self.sort or self.columns)

    @property
    def names(self) -> list[str]:
        """The columns that a table needs for this selection."""
        return [*self.columns, *(name for name, _ in self.sort), *(self.where.columns if self.where else ())]


_current = [Selection()]


def current() -> Selection:
    """Return the selection of the command that runs."""
    return _current[-1]


def most_rows() -> int:
    """Return the number of rows that a terminal gets."""
    limit = current().limit
    return TERMINAL_ROWS if limit is None else limit or sys.maxsize


@contextmanager
def selecting(selection: Selection) -> Iterator[None]:
    """Apply this selection to all tables that are rendered inside."""
    _current.append(selection)
    try:
        yield
    finally:
        _current.pop()


@dataclass(slots=True)
class Selected:
    """The rows and columns to show of one table. `rest` says what is left out, once the batches are read; None if nothing is."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    rest: Callable[[], str | None] = field(default=lambda: None)


def check(tables: Mapping[str, Source]) -> None:
    """Refuse a selection whose columns no table has.

    Raises:
        RequestError: no table has a column; lists those that there are.
    """
    known = list(dict.fromkeys(chain.from_iterable(source.schema.names for source in tables.values())))
    for name in current().names:
        if name not in known:
            raise RequestError(f"no column {name!r}", remedy=did_you_mean(name, known))


def selected(source: Source, columns: Sequence[str] | None, *, is_for_people: bool, is_terminal: bool) -> Selected:
    """Apply the selection to a table or a reader, which is read once.

    `columns` are those that the command shows to people; None: all. A table without the columns of the selection stays whole, apart from
    its limit.
    """
    wanted = current()
    names = source.schema.names
    if wanted.sort and {name for name, _ in wanted.sort} <= {*names}:
        order = [(name, "descending" if is_greatest_first else "ascending") for name, is_greatest_first in wanted.sort]
        source = (source if _is_table(source) else source.read_all()).sort_by(order)
    shown = [name for name in wanted.columns if name in names] or (list(columns) if columns is not None and is_for_people else names)
    batches = _batches(source)
    if wanted.where is not None and {*wanted.where.columns} <= {*names}:
        batches = (batch for batch in map(wanted.where.filter, batches) if batch.num_rows)
    schema = source.schema
    if shown != names:
        import pyarrow as pa

        schema = pa.schema([schema.field(name) for name in shown])
        batches = (batch.select(shown) for batch in batches)
    if wanted.limit == 0 or (wanted.limit is None and not (is_for_people and is_terminal)):
        return Selected(schema, batches)
    return _limited(schema, batches, wanted.limit)


def _limited(schema: pa.Schema, batches: Iterator[pa.RecordBatch], limit: int | None) -> Selected:
    most, counted, is_cut = limit or TERMINAL_ROWS, 0, False

    def first() -> Iterator[pa.RecordBatch]:
        nonlocal counted, is_cut
        for batch in batches:
            shown = batch.slice(0, max(most - counted, 0))
            counted += batch.num_rows
            if shown.num_rows:
                yield shown
            if counted > most:
                is_cut = True
                return

    def rest() -> str | None:
        if not is_cut:
            return None
        if limit is not None:
            return f"the first {most:,} rows are shown: --limit 0 for all"
        # Without a limit of the user, the findings about all rows count too, and with them the exit code.
        count = counted + sum(batch.num_rows for batch in batches)
        return f"{count:,} rows, {most:,} shown: --limit 0 for all"

    return Selected(schema, first(), rest)


def _is_table(source: Source) -> bool:
    return hasattr(source, "to_batches")


def _batches(source: Source) -> Iterator[pa.RecordBatch]:
    """The rows in batches that are small enough for Python objects."""
    for batch in source.to_batches() if _is_table(source) else source:
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            yield batch.slice(start, _ROWS_AT_ONCE)
