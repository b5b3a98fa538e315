"""Shorter forms of cells: times without the date that they share, names without their middle, numbers for sentences that return."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from exhume.cli.tables import cells_of

ELLIPSIS = "…"
#: The width of a UUID in a sentence.
SHORT_ID_CELLS = 13
_TIME = re.compile(r"(\d{4})-(\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d{3})(Z|[+-]\d\d:\d\d)")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Cells = Sequence[str | None]


class ShortTimes(NamedTuple):
    """Columns with short times, and a note that says what all of them share."""

    cells: list[list[str | None]]
    note: str


def short_times(columns: Sequence[Cells]) -> ShortTimes | None:
    """Return these columns, times or sentences with times, without the date and the zone that all times share.

    None if they have no time, or more than one zone.
    """
    times = [match for cells in columns for cell in cells if cell for match in _TIME.finditer(cell)]
    if len({match[5] for match in times}) != 1:
        # Summer and winter.
        return None
    dates, years = {match[1] + match[2] for match in times}, {match[1] for match in times}
    is_whole = all(match[4] == ".000" for match in times)

    def short(match: re.Match[str]) -> str:
        date = "" if len(dates) == 1 else f"{match[2]} " if len(years) == 1 else f"{match[1]}-{match[2]} "
        return f"{date}{match[3]}{'' if is_whole else match[4]}"

    of = f" of {times[0][1]}-{times[0][2]}" if len(dates) == 1 else f" of {times[0][1]}" if len(years) == 1 else ""
    note = f"times{of} in {'UTC' if times[0][5] == 'Z' else times[0][5]}"
    return ShortTimes([[cell and _TIME.sub(short, cell) for cell in cells] for cells in columns], note)


def cut_in_the_middle(text: str, width: int, tail: int | None = None) -> str:
    """Return this text in at most `width` cells, with its last `tail` letters: the end of a name often says more than its middle."""
    if cells_of(text) <= width:
        return text
    tail = (width - 1) // 2 if tail is None else tail
    head = width - 1 - tail
    # A wide letter takes two cells.
    while head + tail > 1 and cells_of(text[:head]) + cells_of(text[len(text) - tail :]) >= width:
        head, tail = (head - 1, tail) if head >= tail else (head, tail - 1)
    return f"{text[:head]}{ELLIPSIS}{text[len(text) - tail :]}"


def cut_at_the_end(text: str, width: int) -> str:
    """Return this text in at most `width` cells, cut after a word where that loses little."""
    if cells_of(text) <= width:
        return text
    # A wide letter takes two cells.
    while cells_of(text) >= width:
        text = text[: -max(cells_of(text) - width, 1)]
    whole_words = text.rpartition(" ")[0]
    return f"{(whole_words if len(whole_words) * 2 > len(text) else text).rstrip(' ,;:')}{ELLIPSIS}"


def ids_of(cells: Iterable[str | None]) -> set[str]:
    """Return the UUIDs in these cells."""
    return {found for cell in cells if cell for found in _ID.findall(cell)}


def with_short_ids(text: str, cut: Mapping[str, str] | None = None) -> str:
    """Return this text with the cut forms of its UUIDs; without `cut` each is cut by itself."""
    return _ID.sub(lambda match: cut_in_the_middle(match[0], SHORT_ID_CELLS) if cut is None else cut[match[0]], text)


def is_phrase(cell: str, word_cells: int) -> bool:
    """Return True for a cell of more than one word, none longer than this: a phrase of exhume, such as `2.1.0 to 2.2.2`."""
    words = cell.split(" ")
    return len(words) > 1 and all(cells_of(word) <= word_cells for word in words)


def numbered(cells: Cells, *, first: int) -> dict[str, str]:
    """Return a number for each sentence, such as `(1)`, in their order; nothing if that saves no lines."""
    found = [cell for cell in cells if cell is not None]
    sentences = [*dict.fromkeys(found)]
    if len(sentences) * 2 > len(found):
        return {}
    return {sentence: f"({number})" for number, sentence in enumerate(sentences, first)}
