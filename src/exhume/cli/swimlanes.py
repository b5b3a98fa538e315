"""Swimlanes: a line for each partition or member over time, and a letter for each owner.

Lines fit the width of the terminal, 100 columns in a pipe. A terminal gets colours, a pipe the same letters without.
"""

from __future__ import annotations

import string
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

import pyarrow as pa
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from exhume.analysis.owner_names import OwnerNames, name_of
from exhume.analysis.ownership import OwnerRow
from exhume.cli.destination import open_destination
from exhume.cli.moments import format_ms
from exhume.durations import DAY_MS, HOUR_MS, MINUTE_MS
from exhume.escape import printable

_LETTERS = string.ascii_uppercase + string.ascii_lowercase + string.digits
_NO_OWNER, _GONE, _GIVEN_UP, _AWAY, _UNKNOWN, _TWICE, _MORE, _REPLACED = ".", " ", "~", "-", "?", "#", "+", "!"
_HELD = {"pending_revocation": _GIVEN_UP, "away": _AWAY}
_MEANINGS = {
    _NO_OWNER: "no owner",
    _GIVEN_UP: "being given up: no other member may have it yet",
    _AWAY: "kept for a static member that is away",
    _UNKNOWN: "not known",
    _TWICE: "two or more at once",
    _REPLACED: "a member with a new id took over this static identity",
}
_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_yellow", "bright_magenta", "bright_blue")
_STYLES = {_NO_OWNER: "dim", _TWICE: "bold red", _UNKNOWN: "dim", _GIVEN_UP: "dim", _AWAY: "dim", _MORE: "white", _REPLACED: "bold yellow"}
_MOST_LABEL_CELLS = 28
_PIPE_CELLS = 100


@dataclass(frozen=True, slots=True)
class _Bar:
    """A part of a lane, between two positions on the scale."""

    begin: float
    end: float
    sign: str
    owner: str | None


def draw(
    table: pa.Table, group: str, *, by_member: bool, by_changes: bool, output_file: Path | None, evidence: Iterable[Path | str]
) -> None:
    """Write the swimlanes of these rows of `ownership.OWNERS`, of one group, to standard output or to a file."""
    is_terminal = output_file is None and sys.stdout.isatty()
    console = Console(file=sys.stdout, markup=False, emoji=False, highlight=False) if is_terminal else None
    encoding = sys.stdout.encoding if output_file is None else "utf-8"
    with open_destination(output_file, evidence=evidence) as sink:
        for line in lines(table, group, console.width if console else _PIPE_CELLS, by_member=by_member, by_changes=by_changes):
            if console is None:
                text = line.plain.rstrip() + "\n"
            else:
                with console.capture() as captured:
                    console.print(line, no_wrap=True, crop=True, overflow="crop")
                text = captured.get()
            sink.write(text.encode(encoding, "backslashreplace"))


def lines(table: pa.Table, group: str, width: int, *, by_member: bool = False, by_changes: bool = False) -> Iterator[Text]:
    """The lines of the swimlanes, each at most `width` cells wide: of each log that has the group one picture."""
    pictures = groupby(table.to_pylist(), key=lambda row: (row["replica"], row["offsets_partition"]))
    is_first = True
    for (replica, offsets_partition), found in pictures:
        if not is_first:
            yield Text()
        is_first = False
        yield from _picture([*found], group, f"replica {replica}, offsets partition {offsets_partition}", width, by_member, by_changes)
    if is_first:
        yield Text(_fit(f"{printable(group)}: no member has a partition in this log", width))


def _picture(rows: Sequence[OwnerRow], group: str, place: str, width: int, by_member: bool, by_changes: bool) -> Iterator[Text]:
    scale = _Scale(rows, by_changes=by_changes)
    owners = _Owners(rows)
    letters = owners.letters
    labels = [*letters] if by_member else [*dict.fromkeys(_partition(row) for row in rows)]
    label_cells = min(max((cell_len(label) for label in labels), default=0), _MOST_LABEL_CELLS, width // 2)
    lane_cells = max(width - label_cells - 2, 1)
    yield Text(_fit(f"{printable(group)} ({rows[0]['group_type']}), {printable(place)}", width), style="bold")
    yield Text(_fit(scale.caption(lane_cells), width), style="dim")
    used: dict[str, None] = {}
    for label in labels:
        own = [row for row in rows if (owners.of(row) if by_member else _partition(row)) == label]
        cells = scale.counts(own, lane_cells) if by_member else scale.signs(own, owners, lane_cells)
        used.update(dict.fromkeys(cells))
        lane = Text(_fit(label, label_cells, pad=True) + "  ")
        for sign, run in groupby(cells):
            lane.append("".join(run), style=_style(letters[label] if by_member and sign not in _STYLES and sign != _GONE else sign))
        yield lane
    yield from _legend(rows, owners, used, width, by_member)


def _legend(rows: Sequence[OwnerRow], owners: _Owners, used: Mapping[str, None], width: int, by_member: bool) -> Iterator[Text]:
    yield Text()
    if not by_member:
        hidden = 0
        for owner, letter in owners.letters.items():
            if letter == _MORE:
                hidden += 1
                continue
            tenures = [row for row in rows if owners.of(row) == owner]
            ids = [*dict.fromkeys(row["member_id"] or "" for row in tenures)]
            of = f"{len(ids)} member ids, the last one {printable(ids[-1])}" if len(ids) > 1 else printable(ids[0])
            of = of if of != owner else printable(name_of(tenures[0]))
            yield Text(_fit(f"{letter}  {owner}  {_generations(tenures)}  {of}", width), style=_style(letter))
        if hidden:
            yield Text(_fit(f"{_MORE}  {hidden} owners more", width))
    else:
        yield Text(_fit("1 to 9: so many partitions; *: ten or more", width), style="dim")
    for sign, meaning in _MEANINGS.items():
        if sign in used:
            yield Text(_fit(f"{sign}  {meaning}", width), style=_style(sign))


def _generations(tenures: Sequence[OwnerRow]) -> str:
    if tenures[0]["generation"] is not None:
        word, found = "generation", [number for row in tenures for number in (row["generation"], row["last_generation"])]
    else:
        word, found = "epoch", [number for row in tenures for number in (row["group_epoch"], row["last_group_epoch"])]
    numbers = [number for number in found if number is not None]
    if not numbers:
        return ""
    first, last = min(numbers), max(numbers)
    return f"{word} {first}" if first == last else f"{word}s {first} to {last}"


class _Scale:
    """The position of a record, or of a time, on a lane."""

    def __init__(self, rows: Sequence[OwnerRow], *, by_changes: bool) -> None:
        begins = [(row["from_record_offset"], row["from_timestamp_ms"]) for row in rows]
        ends = [(row["to_record_offset"], row["to_timestamp_ms"]) for row in rows]
        times = [time for _, time in begins + ends]
        self.begin_ms, self.end_ms = min(filter(None, times), default=None), max(filter(None, times), default=None)
        changes = {record_offset: time or 0 for record_offset, time in ends + begins if record_offset is not None}
        offsets = sorted(changes)
        self._numbers = {offset: number for number, offset in enumerate(offsets)}
        # If time goes back, an interval would be drawn before the one that it ends.
        self.by_changes = (
            by_changes
            or None in times
            or self.begin_ms == self.end_ms
            or any(changes[earlier] > changes[later] for earlier, later in pairwise(offsets))
        )
        self._begin, self._end = (0.0, float(len(offsets))) if self.by_changes else (float(self.begin_ms or 0), float(self.end_ms or 0))

    def caption(self, cells: int) -> str:
        """The line above the lanes: time range and scale."""
        times = "no times" if self.begin_ms is None else f"{format_ms(self.begin_ms)} to {format_ms(self.end_ms or 0)}"
        if self.by_changes:
            return f"{times}; {len(self._numbers)} changes, all equally wide"
        return f"{times}; a column is {_duration((self._end - self._begin) / cells)}"

    def signs(self, rows: Sequence[OwnerRow], owners: _Owners, cells: int) -> list[str]:
        """The signs of a partition's lane: the longest owner in each cell, the last owner in the last cell.

        Two owners at the same time come before all other signs.
        """
        bars = [self._bar(row, owners) for row in rows]
        signs = [self._sign([bar for bar in bars if bar.begin < end and bar.end > begin], begin, end) for begin, end in self._cells(cells)]
        for begin in self._replacements(rows):
            cell = min(int((begin - self._begin) / (self._end - self._begin) * cells), cells - 1) if self._end > self._begin else 0
            signs[cell] = _TWICE if signs[cell] == _TWICE else _REPLACED
        at_the_end = [bar for row, bar in zip(rows, bars, strict=True) if row["to_record_offset"] is None]
        if at_the_end and signs[-1] != _TWICE:
            is_twice = len({bar.owner for bar in at_the_end}) > 1
            signs[-1] = _TWICE if is_twice else self._sign(at_the_end, self._end, self._end)
        return signs

    def _replacements(self, rows: Sequence[OwnerRow]) -> Iterator[float]:
        """Yield the places at which a static identity gets another member id."""
        last: dict[str, str | None] = {}
        for row in sorted(rows, key=lambda row: row["from_record_offset"]):
            instance = row["group_instance_id"]
            if instance is not None:
                if last.get(instance, row["member_id"]) != row["member_id"]:
                    yield self._places(row)[0]
                last[instance] = row["member_id"]

    def counts(self, rows: Sequence[OwnerRow], cells: int) -> list[str]:
        """The signs of an owner's lane: its number of partitions in the middle of each cell; at the end in the last cell."""
        places = [self._places(row) for row in rows]
        counts = [sum(first <= (begin + end) / 2 < last for first, last in places) for begin, end in self._cells(cells)]
        counts[-1] = sum(row["to_record_offset"] is None for row in rows)
        return [_NO_OWNER if not count else str(count) if count < 10 else "*" for count in counts]

    def _cells(self, cells: int) -> list[tuple[float, float]]:
        step = (self._end - self._begin) / cells
        return [(self._begin + number * step, self._begin + (number + 1) * step) for number in range(cells)]

    def _places(self, row: OwnerRow) -> tuple[float, float]:
        if not self.by_changes:
            return float(row["from_timestamp_ms"] or 0), float(row["to_timestamp_ms"] or 0)
        end = row["to_record_offset"]
        return float(self._numbers[row["from_record_offset"]]), self._end if end is None else float(self._numbers[end])

    def _bar(self, row: OwnerRow, owners: _Owners) -> _Bar:
        begin, end = self._places(row)
        owner = owners.of(row)
        if owner is not None:
            return _Bar(begin, end, _HELD.get(row["holding"], owners.letters[owner]), row["member_id"])
        return _Bar(begin, end, {"removed": _GONE, "unknown": _UNKNOWN}.get(row["reason"] or "", _NO_OWNER), None)

    @staticmethod
    def _sign(bars: Sequence[_Bar], begin: float, end: float) -> str:
        if not bars:
            return _GONE
        owned = sorted((bar for bar in bars if bar.owner is not None), key=lambda bar: bar.begin)
        if any(later.begin < earlier.end and later.owner != earlier.owner for earlier, later in pairwise(owned)):
            return _TWICE
        return max(bars, key=lambda bar: (min(bar.end, end) - max(bar.begin, begin), bar.begin)).sign


class _Owners:
    """Owners by client, each with a letter; a client that returns with another member id keeps its letter."""

    def __init__(self, rows: Sequence[OwnerRow]) -> None:
        self._names = OwnerNames(rows)
        found = [printable(name) for name in self._names.names]
        self.letters = {owner: _LETTERS[number] if number < len(_LETTERS) else _MORE for number, owner in enumerate(found)}

    def of(self, row: OwnerRow) -> str | None:
        """The owner in this row, printable."""
        name = self._names.of(row)
        return None if name is None else printable(name)


def _partition(row: OwnerRow) -> str:
    return f"{printable(row['topic'])}-{row['partition']}"


def _style(sign: str) -> str:
    if sign in _STYLES or sign not in _LETTERS:
        return _STYLES.get(sign, "")
    return _COLOURS[_LETTERS.index(sign) % len(_COLOURS)]


def _fit(text: str, cells: int, *, pad: bool = False) -> str:
    if cell_len(text) > cells:
        return set_cell_size(text, max(cells - 1, 0)) + "…"
    return set_cell_size(text, cells) if pad else text


def _duration(milliseconds: float) -> str:
    for unit, size in (("d", DAY_MS), ("h", HOUR_MS), ("min", MINUTE_MS), ("s", 1000)):
        if milliseconds >= size:
            return f"{milliseconds / size:.1f} {unit}"
    return f"{milliseconds:.0f} ms"
