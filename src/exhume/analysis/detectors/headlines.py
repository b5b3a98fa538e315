"""Rank findings, and fold consequences under their cause: one incident is one headline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Literal, TypedDict

import pyarrow as pa

from exhume.durations import HOUR_MS, MINUTE_MS
from exhume.findings import CONFIDENCES, SCHEMA, Finding, Findings, worst_first

#: The subject that a cause and its consequence have in common.
_Scope = Literal["group", "topic", "offsets_partition"]

_MOVES = ("IC-02", "IC-13", "IC-16", "IC-38")
_IDLE = ("IC-18", "IC-20b", "IC-39")
#: The classes that a class may cause, and the subject that both have in common. Causes of causes come first.
_CONSEQUENCES: Sequence[tuple[str, _Scope, tuple[str, ...]]] = (
    ("IC-36", "offsets_partition", ("load_aborted",)),
    ("load_aborted", "offsets_partition", ("IC-09",)),
    ("IC-08", "offsets_partition", ("IC-03", "IC-26")),
    ("IC-03", "offsets_partition", ("IC-15",)),
    ("IC-23", "offsets_partition", ("IC-02", "IC-22")),
    ("IC-37", "offsets_partition", _IDLE),
    ("IC-07", "topic", (*_MOVES, "IC-05b", "IC-29", "IC-31")),
    ("IC-28", "group", ("IC-01", "IC-16", "IC-25", "IC-27", "IC-29")),
    ("IC-01", "group", ("IC-16", "IC-25", "IC-27", "IC-29")),
    ("IC-05b", "group", (*_MOVES, "IC-29", "IC-33")),
    ("IC-41", "group", (*_MOVES, *_IDLE, "IC-20a", "IC-24", "IC-34", "IC-40")),
    ("IC-19", "group", (*_MOVES, "IC-04", "IC-40", "IC-11")),
    ("IC-04", "group", (*_MOVES, *_IDLE, "IC-11", "IC-20a", "IC-30", "IC-34", "IC-40")),
    ("IC-40", "group", (*_MOVES, *_IDLE, "IC-11", "IC-20a", "IC-30", "IC-34")),
    ("IC-31", "group", (*_MOVES, "IC-30")),
    ("IC-13", "group", ("IC-02",)),
    ("IC-16", "group", ("IC-29",)),
)
#: A consequence begins at most this long before the first record of its cause, and at most this long after the last one.
_BEFORE_MS, _AFTER_MS = 5 * MINUTE_MS, HOUR_MS
#: The number of headlines, and of headlines of one class while others wait.
MOST_HEADLINES = 10
_OF_ONE_CLASS = 3
#: The number of notes of one class that are shown one by one, and of the subjects to name of more.
_MOST_ALIKE, _MOST_NAMED = 3, 5
#: The number of findings of one class and subject that are tried as a cause.
_MOST_CAUSES = 100

#: Findings in order: `rank` is the place, `because_of` the rank of the finding that explains it (null for a headline), `consequences` the
#: codes of those that it explains.
DIAGNOSIS = pa.schema(
    [
        pa.field("rank", pa.int32(), nullable=False),
        *SCHEMA,
        pa.field("because_of", pa.int32()),
        pa.field("consequences", pa.string()),
    ]
)


class _Line(TypedDict):
    """The columns of a finding that show if it is one of many."""

    code: str
    severity: str
    confidence: str
    group: str | None
    topic: str | None
    sentence: str


def ranked(findings: Findings, *, only_headlines: bool = False) -> pa.Table:
    """Return these findings as `DIAGNOSIS`: headlines first, then their consequences; each by severity, confidence and time.

    With `only_headlines`, at most ten headlines.

    A headline has the severity rank of its worst consequence. A finding is a consequence if a class that may cause it has a finding about
    the same group, topic or offsets partition at about that time; or if a more important one of its class is about the same group and
    topic.
    """
    listed = [*findings]
    ranks_alone = [_rank(finding) for finding in listed]
    causes = _causes(listed, ranks_alone)
    worst = [worst_first(finding.severity) for finding in listed]
    for place, root in causes.items():
        worst[root] = min(worst[root], worst[place])
    in_order = sorted(range(len(listed)), key=lambda place: (worst[place], ranks_alone[place]))
    classes = [(worst[place], finding.code) for place, finding in enumerate(listed)]
    roots = _mixed([place for place in in_order if place not in causes], classes)
    order = [*roots, *(place for place in in_order if place in causes)]
    ranks = {place: rank for rank, place in enumerate(order, 1)}
    codes: dict[int, dict[str, None]] = {}
    for place in order:
        if place in causes:
            codes.setdefault(causes[place], {})[listed[place].code] = None
    if only_headlines:
        order = roots[:MOST_HEADLINES]
    columns = [
        pa.array([ranks[place] for place in order], pa.int32()),
        *Findings(listed[place] for place in order).to_table().columns,
        pa.array([ranks[causes[place]] if place in causes else None for place in order], pa.int32()),
        pa.array([", ".join(codes[place]) if place in codes else None for place in order], pa.string()),
    ]
    return pa.table(columns, schema=DIAGNOSIS)


def alike_as_one(table: pa.Table) -> pa.Table:
    """Return `DIAGNOSIS` for people: one row for more than three notes, or undecided checks, of one class.

    It is the first of them, with the number of the others and the names of some. Warnings and incidents stay.
    """
    rows: list[_Line] = table.select([*_Line.__annotations__]).to_pylist()
    together: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        if row["severity"] == "info":
            together.setdefault((row["code"], row["confidence"]), []).append(place)
    places, sentences = [], []
    for place, row in enumerate(rows):
        alike = together.get((row["code"], row["confidence"]), []) if row["severity"] == "info" else []
        is_one = len(alike) > _MOST_ALIKE
        if not is_one or place == alike[0]:
            places.append(place)
            sentences.append(f"{row['sentence']} ({_others([rows[each] for each in alike[1:]])})" if is_one else row["sentence"])
    column = table.schema.get_field_index("sentence")
    return table.take(pa.array(places, pa.int64())).set_column(column, table.schema.field(column), pa.array(sentences, pa.string()))


def _others(alike: Sequence[_Line]) -> str:
    named = list(dict.fromkeys(each["group"] or each["topic"] for each in alike))
    names = [name for name in named if name is not None]
    some = f": {', '.join(names[:_MOST_NAMED])}{' …' if len(names) > _MOST_NAMED else ''}" if names else ""
    return f"and {len(alike):,} more like it{some}; --code {alike[0]['code']} lists each"


def _mixed(roots: Sequence[int], classes: Sequence[tuple[int, str]]) -> list[int]:
    """Move the fourth and later headlines of one class after those of other classes with the same severity."""
    counts: Counter[tuple[int, str]] = Counter()
    places = []
    for number, place in enumerate(roots):
        counts[classes[place]] += 1
        places.append((classes[place][0], counts[classes[place]] > _OF_ONE_CLASS, number))
    return [roots[number] for _, _, number in sorted(places)]


def _rank(finding: Finding) -> tuple[object, ...]:
    return (
        worst_first(finding.severity),
        CONFIDENCES.index(finding.confidence),
        -(finding.last_timestamp_ms or 0),
        finding.code,
        finding.group or "",
        finding.topic or "",
        -1 if finding.partition is None else finding.partition,
        finding.first_record_offset or 0,
    )


def _causes(findings: Sequence[Finding], ranks: Sequence[tuple[object, ...]]) -> dict[int, int]:
    """Return the place of the first cause of each consequence, by its place. `ranks` are those of `_rank`."""
    by_subject: dict[tuple[str, _Scope, object], list[int]] = {}
    for place, finding in enumerate(findings):
        own = _cause_class(finding.code)
        if own is None or finding.confidence == "undecidable":
            continue
        for scope in ("group", "topic", "offsets_partition"):
            subject = _subject(finding, scope)
            if subject is not None:
                by_subject.setdefault((own, scope, subject), []).append(place)
    found: dict[int, int] = {}
    for place, finding in enumerate(findings):
        if finding.confidence == "undecidable":
            continue
        cause = next(_possible_causes(place, findings, by_subject), None)
        if cause is not None:
            found[place] = cause
    found |= _repeats(findings, ranks, found)
    return {place: _root(place, found) for place in found}


def _possible_causes(
    place: int, findings: Sequence[Finding], by_subject: Mapping[tuple[str, _Scope, object], Sequence[int]]
) -> Iterator[int]:
    finding = findings[place]
    for code, scope in _cause_classes(finding.code):
        subject = _subject(finding, scope)
        causes = by_subject.get((code, scope, subject), ()) if subject is not None else ()
        for cause in causes[:_MOST_CAUSES]:
            if _explains(findings[cause], finding):
                yield cause


@cache
def _cause_class(code: str) -> str | None:
    """Return the class of this code, if it may cause others."""
    return next((cause for cause, _, _ in _CONSEQUENCES if _is_of(code, cause)), None)


@cache
def _cause_classes(code: str) -> list[tuple[str, _Scope]]:
    """Return the classes that may cause a finding of this code, and what both must be about."""
    return [
        (cause, scope)
        for cause, scope, consequences in _CONSEQUENCES
        if not _is_of(code, cause) and any(_is_of(code, each) for each in consequences)
    ]


def _subject(finding: Finding, scope: _Scope) -> object:
    if scope == "offsets_partition":
        return None if finding.offsets_partition is None else (finding.replica, finding.offsets_partition)
    return finding.group if scope == "group" else finding.topic


def _explains(cause: Finding, finding: Finding) -> bool:
    """Return True if the cause is shown wherever the finding is, and the times of both allow it."""
    if cause.severity == "info" and finding.severity != "info":
        return False
    if cause.topic is not None and finding.topic is not None and cause.topic != finding.topic:
        return False
    if cause.first_timestamp_ms is None or cause.last_timestamp_ms is None or finding.last_timestamp_ms is None:
        return True
    return cause.first_timestamp_ms - _BEFORE_MS <= finding.last_timestamp_ms and (
        finding.first_timestamp_ms is None or finding.first_timestamp_ms <= cause.last_timestamp_ms + _AFTER_MS
    )


def _repeats(findings: Sequence[Finding], ranks: Sequence[tuple[object, ...]], causes: Mapping[int, int]) -> dict[int, int]:
    """Return the place of the first-ranked finding of the same class, group and topic for each other one."""
    first: dict[tuple[str, str, str | None], int] = {}
    found: dict[int, int] = {}
    for place in sorted(range(len(findings)), key=ranks.__getitem__):
        finding = findings[place]
        if place in causes or finding.group is None or finding.confidence == "undecidable":
            continue
        subject = finding.code, finding.group, finding.topic
        if subject in first:
            found[place] = first[subject]
        else:
            first[subject] = place
    return found


def _root(place: int, causes: Mapping[int, int]) -> int:
    """Follow the causes to the first one. A cycle ends where it began."""
    seen = {place}
    root = causes[place]
    while root in causes and root not in seen:
        seen.add(root)
        root = causes[root]
    return root


def _is_of(code: str, family: str) -> bool:
    """Return True if this code is the class, or a case of it."""
    return code == family or (code.startswith(family) and code[len(family) :].isalpha())
