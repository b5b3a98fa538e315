"""A single picture as SVG, without a script: owners over time, or an assignment.

All texts pass through `printable` and the escapes of XML. Colours and letters of owners are those of the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

import pyarrow as pa
from markupsafe import escape

from exhume.analysis.assignment.differences import AssignedPartitionRow
from exhume.durations import DAY_MS, HOUR_MS, MINUTE_MS
from exhume.escape import printable
from exhume.moments import show_time
from exhume.report.lanes import KINDS, Lanes, lanes_of

_COLOURS = ("#77aadd", "#eedd88", "#44bb99", "#ffaabb", "#bbcc33", "#99ddff", "#ee8866", "#c9b6e4")
_WIDTH, _LABEL, _LANE, _TOP = 1200, 200, 22, 56
_MOST_BARS = 20_000
_STEPS_MS = (
    1000,
    5000,
    15_000,
    30_000,
    *(each * MINUTE_MS for each in (1, 5, 10, 30)),
    *(each * HOUR_MS for each in (1, 3, 6, 12)),
    DAY_MS,
)
_MEANINGS: Mapping[str, str] = {
    "pending_revocation": "being given up",
    "away": "kept for a static member that is away",
    "empty": "no owner: the group has no member",
    "unassigned": "no owner: not assigned",
    "removed": "no owner: the group is removed",
    "unknown": "not known",
    "overlap": "two owners at once",
    "many": "many short intervals",
}
#: The attributes of each kind of text and of rectangle: attributes, because the policy of a page refuses other styles.
_KINDS: Mapping[str, str] = {
    "title": 'font-size="16" font-weight="700" fill="#1c2126"',
    "soft": 'font-size="12" fill="#59616b"',
    "bold": 'font-size="11" font-weight="700" fill="#1c2126"',
    "plain": 'font-size="12" fill="#1c2126"',
    "none": 'fill="#eff0f2" stroke="#b9bec5" stroke-dasharray="3 3"',
    "overlap": 'fill="#b32400" stroke="#1c2126"',
    "page": 'fill="#ffffff"',
}


def letter_of(number: int) -> str:
    """A, B, … Z, then A2, B2, …"""
    return chr(ord("A") + number % 26) + (str(number // 26 + 1) if number >= 26 else "")


def owners_svg(owners: pa.Table, title: str) -> str:
    """These rows of `OWNERS` as SVG: a part for each group and log, a lane for each partition."""
    parts: list[str] = []
    height = 0
    keys = ("group", "replica", "offsets_partition")
    places = owners.select(keys).group_by([*keys], use_threads=False).aggregate([]).to_pylist()
    for place in places:
        mask = [row == place for row in owners.select(keys).to_pylist()]
        own = owners.filter(pa.array(mask))
        heading = f"{place['group']}, offsets partition {place['offsets_partition']} of replica {place['replica']}"
        drawn, below = _swimlanes(lanes_of(own, _MOST_BARS), heading, height)
        parts += drawn
        height = below + 24
    if not places:
        parts, height = [_text(12, 30, "No member has a partition in this log.")], 48
    return _svg(title, parts, height)


def assignment_svg(partitions: pa.Table, title: str) -> str:
    """These rows of `ASSIGNMENT_PARTITIONS` as SVG: a cell for each partition with its owner, and the expected one if it differs."""
    rows: list[AssignedPartitionRow] = partitions.to_pylist()
    parts: list[str] = []
    height = 0
    for (group, replica, number), own_rows in groupby(rows, key=lambda row: (row["group"], row["replica"], row["offsets_partition"])):
        own = [*own_rows]
        members = list(dict.fromkeys(member for row in own for member in (*row["actual"], *(row["expected"] or ()))))
        parts.append(_text(12, height + 24, f"{group}, offsets partition {number} of replica {replica}", "title"))
        height += 40
        for topic, cells in groupby(own, key=lambda row: row["topic"]):
            parts.append(_text(12, height + 14, topic, "bold"))
            height += 22
            drawn, height = _cells([*cells], members, height)
            parts += drawn
        legend = [(_COLOURS[at % len(_COLOURS)], letter_of(at), member) for at, member in enumerate(members)]
        drawn, height = _legend(legend, height + 8)
        parts += drawn
        height += 16
    if not rows:
        parts, height = [_text(12, 30, "No assignment to compare: the groups have no member.")], 48
    return _svg(title, parts, height)


def _svg(title: str, parts: Sequence[str], height: int) -> str:
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="system-ui, DejaVu Sans, sans-serif">'
    return "".join([head, f"<title>{_escaped(title)}</title>", _rect((0, 0, _WIDTH, height), _KINDS["page"]), *parts, "</svg>\n"])


def _swimlanes(lanes: Lanes, heading: str, top: int) -> tuple[list[str], int]:
    bars = lanes.bars
    parts = [_text(12, top + 24, heading, "title")]
    if not len(bars["lane"]):
        return [*parts, _text(12, top + 46, "No interval has a time: message format 0 stores none.", "soft")], top + 60
    begin_ms, end_ms = int(bars["from_ms"].min()), max(int(bars["to_ms"].max()), int(bars["from_ms"].min()) + 1)

    def x(time_ms: int) -> float:
        return _LABEL + (time_ms - begin_ms) * (_WIDTH - _LABEL - 12) / (end_ms - begin_ms)

    bottom = top + _TOP + _LANE * len(lanes.lanes)
    parts += _ticks(begin_ms, end_ms, x, top, bottom)
    for number, lane in enumerate(lanes.lanes):
        parts.append(_text(12, top + _TOP + _LANE * number + 15, _cut(f"{lane['topic']}-{lane['partition']}", 28)))
    columns = (bars["lane"], bars["from_ms"], bars["to_ms"], bars["owner"], bars["kind"], bars["from_record_offset"], bars["count"])
    used: set[str] = set()
    for lane_number, from_ms, to_ms, owner, kind_number, record_offset, count in zip(*(each.tolist() for each in columns), strict=True):
        kind = KINDS[kind_number]
        used.add(kind)
        name = lanes.owners[owner] if owner >= 0 else _MEANINGS[kind]
        said = f"{name}; {show_time(from_ms)} to {show_time(to_ms)}; from record {record_offset}" + (
            f"; {count} intervals" if count > 1 else ""
        )
        width = max(x(to_ms) - x(from_ms), 0.6)
        parts += _bar(x(from_ms), width, top + _TOP + _LANE * lane_number, owner=owner, kind=kind, said=said)
    legend = [(_COLOURS[at % len(_COLOURS)], letter_of(at), name) for at, name in enumerate(lanes.owners)]
    legend += [("#b32400" if kind == "overlap" else "#eff0f2", "", _MEANINGS[kind]) for kind in KINDS if kind in used and kind in _MEANINGS]
    drawn, below = _legend(legend, bottom + 10)
    return parts + drawn, below


def _ticks(begin_ms: int, end_ms: int, x: Callable[[int], float], top: int, bottom: int) -> Iterator[str]:
    yield _text(_LABEL, top + 40, f"{show_time(begin_ms)} to {show_time(end_ms)}", "soft")
    step = next((each for each in _STEPS_MS if (end_ms - begin_ms) / each <= 9), DAY_MS * max((end_ms - begin_ms) // (9 * DAY_MS), 1))
    for time_ms in range(-(-begin_ms // step) * step, end_ms + 1, step):
        words = show_time(time_ms)[:10] if step >= DAY_MS else show_time(time_ms)[11 : 19 if step < MINUTE_MS else 16]
        yield f'<line x1="{x(time_ms):.1f}" y1="{top + _TOP - 4}" x2="{x(time_ms):.1f}" y2="{bottom}" stroke="#dadde2"/>'
        if x(time_ms) < _WIDTH - 70 and x(time_ms) > _LABEL + 380:
            yield _text(x(time_ms), top + 40, words, "soft")


def _bar(left: float, width: float, y: int, *, owner: int, kind: str, said: str) -> Iterator[str]:
    if kind == "overlap":
        yield _rect((left, y + 1, width, _LANE - 3), _KINDS["overlap"], said)
    elif owner < 0:
        if kind != "removed":
            yield _rect((left, y + 1, width, _LANE - 3), _KINDS["none"], said)
    else:
        yield _rect((left, y + 1, width, _LANE - 3), _fill(owner), said)
        if width > 14 and kind != "many":
            yield _text(left + 4, y + 14, letter_of(owner), "bold")


def _cells(rows: Sequence[AssignedPartitionRow], members: Sequence[str], top: int) -> tuple[list[str], int]:
    numbers = {member: number for number, member in enumerate(members)}
    wide, across = 98, 12
    parts = []
    for at, row in enumerate(rows):
        left, y = 12 + at % across * wide, top + at // across * 26
        owner = numbers[row["actual"][0]] if len(row["actual"]) == 1 else None
        is_different = bool(row["differences"]) or (row["expected"] is not None and row["expected"] != row["actual"])
        words = f"{row['partition']} {_letters(row['actual'], numbers)}"
        if row["expected"] is not None and row["expected"] != row["actual"]:
            words += f" ≠ {_letters(row['expected'], numbers)}"
        said = "; ".join([", ".join(row["actual"]) or "no owner", *row["differences"]])
        paint = _KINDS["none"] if owner is None else _fill(owner)
        parts.append(
            _rect(
                (left, y, wide - 6, 20), f'{paint} stroke="#1c2126" stroke-width="2"' if is_different and owner is not None else paint, said
            )
        )
        parts.append(_text(left + 6, y + 14, words, "bold"))
    return parts, top + (len(rows) + across - 1) // across * 26


def _letters(members: Sequence[str], numbers: Mapping[str, int]) -> str:
    return "+".join(letter_of(numbers[member]) for member in members) or "–"


def _legend(entries: Sequence[tuple[str, str, str]], top: int) -> tuple[list[str], int]:
    parts = []
    for at, (colour, letter, words) in enumerate(entries):
        left, y = 12 + at % 2 * 590, top + at // 2 * 20
        parts += [
            _rect((left, y, 26, 15), f'fill="{colour}"'),
            _text(left + 8, y + 12, letter, "bold"),
            _text(left + 34, y + 12, _cut(words, 76)),
        ]
    return parts, top + (len(entries) + 1) // 2 * 20 + 4


def _fill(owner: int) -> str:
    return f'fill="{_COLOURS[owner % len(_COLOURS)]}"'


def _rect(box: tuple[float, float, float, float], paint: str, said: str | None = None) -> str:
    """A rectangle: left, top, width and height."""
    left, top, width, height = box
    title = "" if said is None else f"<title>{_escaped(said)}</title>"
    return f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{height}" {paint}>{title}</rect>'


def _text(left: float, top: float, words: str, kind: str = "plain") -> str:
    return f'<text x="{left:.1f}" y="{top}" {_KINDS[kind]}>{_escaped(words)}</text>'


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _escaped(text: str) -> str:
    return str(escape(printable(text)))
