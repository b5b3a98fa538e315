"""Fit a table into the width of a terminal: which columns go, which cells are cut.

Each step is taken only if the table is still too wide after the steps before it:

1. columns that are empty or have one value go; the value is named above the table;
2. times lose the date that they share, and ids in sentences their middle;
3. sentences that return are numbered, and are below the table;
4. long names are cut in the middle, with a legend below the table;
5. the last columns go, and their names are above the table.

Sentences keep all their words: they wrap. The first two steps are also taken if they save lines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from exhume.cli.shortening import ELLIPSIS, SHORT_ID_CELLS, cut_in_the_middle, ids_of, is_phrase, numbered, short_times, with_short_ids
from exhume.cli.tables import NULL, Column, Row, cells_of

GAP_CELLS = 2
#: The width that a sentence needs beside other columns; with less it has lines of its own below its row.
READABLE_SENTENCE_CELLS = 36
_LEAST_NAME_CELLS = 12
#: Words of exhume, such as `static_replacement`, are not cut: ids of members and topics are longer.
_WHOLE_NAME_CELLS = 18
#: The number of first columns that always stay: they name the row.
_KEPT_COLUMNS = 3
_LEGEND_CELLS = 240
_MOST_NAMED_COLUMNS = 4
_CUT_NOTE = f"{ELLIPSIS} cuts a name: see --output record"


@dataclass(slots=True)
class Fit:
    """A page of a table that fits.

    Attributes:
        columns: places of the columns beside each other.
        below: places of the columns of sentences, which do not fit beside the others: the first may begin at the end of each row.
        widths: cells of each of `columns`.
        heads: headings of each of `columns`, in lines.
        rows: the page with cut cells.
        notes: what is true of all rows, and what is not shown.
        legend: whole names by their cut forms.
        numbered: sentences of more than one row by their numbers, which the rows have.
    """

    columns: list[int]
    widths: list[int]
    heads: list[str]
    rows: Sequence[list[str | None]]
    below: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    legend: dict[str, str] = field(default_factory=dict)
    numbered: dict[str, str] = field(default_factory=dict)


def fit(columns: Sequence[Column], page: Sequence[Row], width: int, *, folds_heads: bool = True) -> Fit | None:
    """Return this page with tables of at most `width` cells; None if its one row, or all of its equal rows, should be a list of values.

    With `folds_heads` a long heading has up to three lines.
    """
    return _Fitting(columns, page, width, folds_heads=folds_heads).run()


def values_of(columns: Sequence[Column], row: Row) -> str:
    """Return the cells of one row that are not null, with their columns, as one text."""
    return " · ".join(f"{heading(column)} {cell}" for column, cell in zip(columns, row, strict=True) if cell is not None)


def is_sentence(cells: Sequence[str | None]) -> bool:
    """Return True if these cells are sentences, which wrap between words."""
    found = [cell for cell in cells if cell is not None]
    long = [cell for cell in found if cells_of(cell) > READABLE_SENTENCE_CELLS]
    return (
        bool(long)
        and len(long) * 2 >= len(found)
        and all(cell.count(" ") * 12 >= len(cell) and cell.count(", ") * 2 < cell.count(" ") for cell in long)
    )


def heading(column: Column) -> str:
    """Return the name of a column for people: a time needs no unit."""
    return column.name.removesuffix("_ms") if column.is_time else column.name


def folded(name: str, width: int) -> str:
    """Return a heading in lines of at most this width, broken after underscores."""
    lines = [""]
    for word in _words(name):
        if cells_of(lines[-1] + word) > width and lines[-1]:
            lines.append("")
        lines[-1] += word
    return "\n".join(lines)


def _words(name: str) -> list[str]:
    return [word for word in name.replace("_", "_ ").split(" ") if word] or [name]


def cut_apart(names: Collection[str], width: int) -> dict[str, str] | None:
    """Return these names in at most `width` cells, all different; None if they cannot be."""
    middle = (width - 1) // 2
    for tail in sorted(range(3, width - 3), key=lambda tail: abs(tail - middle)):
        cut = {name: cut_in_the_middle(name, width, tail) for name in names}
        if len({*cut.values()}) == len(cut):
            return cut
    return None


class _Fitting:
    def __init__(self, columns: Sequence[Column], page: Sequence[Row], width: int, *, folds_heads: bool) -> None:
        self._columns, self._width, self._folds_heads = columns, width, folds_heads
        self._rows = [[*row] for row in page]
        self._left = list(range(len(columns)))
        self._sentences = {place for place in self._left if is_sentence(self._cells(place))}
        self._notes: list[str] = []
        self._legend: dict[str, str] = {}
        self._numbered: dict[str, str] = {}

    def run(self) -> Fit | None:
        if not self._fits(sentence_cells=self._width):
            are_equal = all(len({*self._cells(place)}) == 1 for place in self._left)
            if not are_equal or not self._fits(sentence_cells=READABLE_SENTENCE_CELLS):
                self._leave_out_equal()
            if not self._left:
                return None
        if not self._fits(sentence_cells=self._width):
            self._shorten_times()
        if not self._fits(sentence_cells=self._width):
            self._shorten_ids()
        if not self._fits(sentence_cells=self._width):
            self._number_sentences()
        if not self._fits():
            self._cut_names()
        if not self._fits():
            self._leave_out_last()
        if self._legend:
            self._check_legend()
        return self._fit()

    def _cells(self, place: int) -> list[str | None]:
        return [row[place] for row in self._rows]

    def _natural(self, place: int) -> int:
        cells = max((cells_of(cell or NULL) for cell in self._cells(place)), default=0)
        return max(cells, self._least_head(place))

    def _least_head(self, place: int) -> int:
        """The width of a heading in at most three lines, or in one."""
        if not self._folds_heads:
            return cells_of(heading(self._columns[place]))
        words = [cells_of(word) for word in _words(heading(self._columns[place]))]
        return max(*words, -(-sum(words) // 3)) if words else 0

    def _room_of_sentences(self, widths: Mapping[int, int]) -> int:
        """The cells that are left for each column of sentences."""
        sentences = [place for place in self._left if place in self._sentences]
        others = sum(widths[place] + GAP_CELLS for place in self._left if place not in self._sentences)
        return (self._width - others - GAP_CELLS * (len(sentences) - 1)) // max(len(sentences), 1)

    def _fits(self, *, sentence_cells: int | None = None) -> bool:
        """Return True if the columns fit, with so many cells for each sentence; with None sentences may be below their rows."""
        widths = {place: self._natural(place) for place in self._left}
        for place in self._sentences:
            widths[place] = min(widths.get(place, 0), sentence_cells or 0)
        beside = [place for place in self._left if sentence_cells is not None or place not in self._sentences]
        return sum(widths[place] for place in beside) + GAP_CELLS * max(len(beside) - 1, 0) <= self._width

    def _leave_out_equal(self) -> None:
        values = {place: {*self._cells(place)} for place in self._left}
        equal = [place for place in self._left if len(values[place]) == 1]
        if len(equal) == len(self._left):
            self._left = []
            return
        shared = [place for place in equal if values[place] != {None}]
        empty = [place for place in equal if values[place] == {None}]
        if shared:
            row = [cell if place in shared else None for place, cell in enumerate(self._rows[0])]
            self._notes.append(f"all rows: {values_of(self._columns, row)}")
        if empty:
            names = ", ".join(heading(self._columns[place]) for place in empty)
            self._notes.append(f"empty: {names}" if len(empty) <= _MOST_NAMED_COLUMNS else f"{len(empty)} columns are empty")
        self._left = [place for place in self._left if place not in equal]

    def _shorten_times(self) -> None:
        places = [place for place in self._left if self._columns[place].is_time or place in self._sentences]
        shortened = short_times([self._cells(place) for place in places])
        if shortened is None:
            return
        for place, cells in zip(places, shortened.cells, strict=True):
            for row, cell in zip(self._rows, cells, strict=True):
                row[place] = cell
        self._notes.append(shortened.note)

    def _shorten_ids(self) -> None:
        """Cut the ids in sentences, if they stay different."""
        sentences = [place for place in self._left if place in self._sentences]
        cut = cut_apart(ids_of(cell for place in sentences for cell in self._cells(place)), SHORT_ID_CELLS)
        if not cut:
            return
        for row in self._rows:
            for place in sentences:
                cell = row[place]
                row[place] = cell and with_short_ids(cell, cut)
        self._notes.append(_CUT_NOTE)

    def _number_sentences(self) -> None:
        for place in [place for place in self._left if place in self._sentences]:
            numbers = numbered(self._cells(place), first=len(self._numbered) + 1)
            if numbers:
                for row in self._rows:
                    cell = row[place]
                    row[place] = None if cell is None else numbers[cell]
                self._numbered |= {number: sentence for sentence, number in numbers.items()}
                self._sentences.discard(place)

    def _names(self) -> list[int]:
        return [
            place
            for place in self._left
            if place not in self._sentences and not self._columns[place].is_number and not self._columns[place].is_time
            if self._natural(place) > _WHOLE_NAME_CELLS
            if not all(is_phrase(cell, _WHOLE_NAME_CELLS) for cell in self._cells(place) if cell and cells_of(cell) > _WHOLE_NAME_CELLS)
        ]

    def _cut_names(self) -> None:
        natural = {place: self._natural(place) for place in self._left}
        names = self._names()
        widths = dict(natural)
        beside = [place for place in self._left if place not in self._sentences]
        too_wide = sum(widths[place] for place in beside) + GAP_CELLS * (len(beside) - 1) - self._width
        while too_wide > 0:
            widest = max(names, key=lambda place: widths[place], default=None)
            if widest is None or widths[widest] <= max(_LEAST_NAME_CELLS, self._least_head(widest)):
                break
            widths[widest] -= 1
            too_wide -= 1
        for place in names:
            if widths[place] < natural[place]:
                self._cut(place, widths[place], natural[place])

    def _cut(self, place: int, width: int, most: int) -> None:
        """Cut the names of a column to the smallest width at which they stay different."""
        names = {cell for cell in self._cells(place) if cell is not None}
        while width < most and (cut := cut_apart(names, width)) is None:
            width += 1
        if width == most or cut is None:
            return
        for row in self._rows:
            whole = row[place]
            if whole is not None and cut[whole] != whole:
                row[place] = cut[whole]
                self._legend[cut[whole]] = whole

    def _leave_out_last(self) -> None:
        gone: list[int] = []
        for place in reversed(self._left[_KEPT_COLUMNS:]):
            if self._fits():
                break
            if place not in self._sentences:
                self._left.remove(place)
                gone.append(place)
        if gone:
            names = ", ".join(heading(self._columns[place]) for place in sorted(gone))
            self._notes.append(f"only with --columns or --output record: {names}")

    def _check_legend(self) -> None:
        """Leave out a legend that is longer than half of its table."""
        shown = {cell for row in self._rows for place, cell in enumerate(row) if place in self._left and cell}
        self._legend = {short: whole for short, whole in self._legend.items() if short in shown}
        cells = sum(cells_of(short) + cells_of(whole) + 3 for short, whole in self._legend.items())
        if cells > max(_LEGEND_CELLS, len(self._rows) * self._width // 2):
            if _CUT_NOTE not in self._notes:
                self._notes.append(_CUT_NOTE)
            self._legend = {}

    def _fit(self) -> Fit:
        sentences = [place for place in self._left if place in self._sentences]
        natural = {place: self._natural(place) for place in self._left}
        room = self._room_of_sentences(natural)
        is_below = bool(sentences) and room < min(READABLE_SENTENCE_CELLS, max(natural[place] for place in sentences))
        below = sentences if is_below else []
        beside = [place for place in self._left if place not in below]
        widths = [min(natural[place], max(room, 1)) if place in sentences else natural[place] for place in beside]
        heads = [folded(heading(self._columns[place]), width) for place, width in zip(beside, widths, strict=True)]
        return Fit(beside, widths, heads, self._rows, below, self._notes, self._legend, self._numbered)


def records(columns: Sequence[Column], page: Sequence[Row]) -> Iterator[list[tuple[str, str]]]:
    """Yield each row as names and cells, null as a dash."""
    for row in page:
        yield [(column.name, NULL if cell is None else cell) for column, cell in zip(columns, row, strict=True)]
