"""The facts of a report for its template: rows of the tables, chosen and put in order."""

from __future__ import annotations

import base64
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TypedDict

from exhume.analysis.assignment.differences import AssignedPartitionRow
from exhume.analysis.evidence_files import EvidenceFileRow
from exhume.analysis.explanation.page import ExplanationRow
from exhume.analysis.growth import GrowthRow
from exhume.analysis.owner_names import OwnerNames
from exhume.analysis.ownership import OwnerRow
from exhume.analysis.rebalance_rows import RebalanceRow
from exhume.analysis.reset_plan import ResetPlanRow
from exhume.replay.releases import profile_for
from exhume.replay.state_tables import OffsetRow
from exhume.report.gather import DiagnosisRow, GroupTables, ReportTables, diagnosis_rows
from exhume.report.marks import words
from exhume.report.picture_data import time_range
from exhume.report.pictures import letter_of

#: The variables of a template, or of a part of it.
Variables = Mapping[str, object]
#: The most rows of a table in the page; a sentence counts the rest.
MOST_ROWS = 200
_MOST_CELLS = 2000
_MOST_REBALANCES = 25
#: The sections of an explanation in the order of a report, with their headings. "What is missing" is in the part on uncertainty.
_SECTIONS: Mapping[str, str] = {
    "what_it_is": "What it is",
    "state": "State",
    "members": "Members",
    "rebalances": "Rebalances",
    "commits": "Commits",
    "odd": "What stands out",  # plain: a value of the column section
}
_PLAN_TITLES = {"before_rewind": "Offsets that a commit set back", "lost": "Offsets that were removed"}


class OffsetLine(TypedDict):
    """A committed offset at the end; the end offset of the topic partition and the lag are None if they are not known."""

    topic: str
    partition: int
    committed_offset: int
    commit_timestamp_ms: int | None
    record_offset: int
    end_offset: int | None
    lag: int | None
    owners: list[str]


class Cell(TypedDict):
    """A partition in the grid: letters of its members, and of the expected ones if any are."""

    topic: str
    partition: int
    actual: list[str]
    expected: list[str] | None
    colour: int | None
    differences: list[str]
    is_different: bool


def facts(tables: ReportTables) -> Variables:
    """The variables of the template `report.html`."""
    diagnosis = diagnosis_rows(tables.diagnosis)
    decided = [row for row in diagnosis if row["confidence"] != "undecidable"]
    drawn = list(dict.fromkeys(group.group for group in tables.groups))
    measured: list[GrowthRow] = tables.growth.to_pylist()
    others = [row for row in measured if row["group"] is not None and row["group"] not in drawn]
    begin_ms, end_ms = time_range(tables)
    numbers: dict[str | None, int] = {group.group: number for number, group in reversed([*enumerate(tables.groups)])}
    return {
        "names": drawn,
        "headlines": [_headline(row, decided, numbers) for row in decided if row["because_of"] is None and row["severity"] != "info"],
        "notes": [_headline(row, decided, numbers) for row in decided if row["because_of"] is None and row["severity"] == "info"],
        "counts": Counter(row["severity"] for row in decided),
        "undecided": [row for row in diagnosis if row["confidence"] == "undecidable"],
        "damage": [finding for finding in tables.findings if finding.is_damage or finding.severity != "info"],
        "begin_ms": begin_ms,
        "end_ms": end_ms,
        "request": tables.request,
        "release": tables.request.release,
        "rules": profile_for(tables.request.release).release,
        "groups": [_group(number, group, tables) for number, group in enumerate(tables.groups)],
        "others": others[:MOST_ROWS],
        "others_left": max(len(others) - MOST_ROWS, 0),
        "partitions": tables.inspection["partitions"].to_pylist(),
        "files": _files(tables.files.to_pylist()),
        "file_count": tables.files.num_rows,
        "log_directories": tables.inspection["log_directories"].to_pylist(),
    }


def _headline(row: DiagnosisRow, decided: Sequence[DiagnosisRow], numbers: Mapping[str | None, int]) -> Variables:
    consequences = [each for each in decided if each["because_of"] == row["rank"]]
    return row | {
        "because": consequences[:MOST_ROWS],
        "because_left": max(len(consequences) - MOST_ROWS, 0),
        "number": numbers.get(row["group"]),
    }


def _files(rows: Sequence[EvidenceFileRow]) -> list[EvidenceFileRow]:
    """Segments first, then the other files."""
    return sorted(rows, key=lambda row: row["kind"] != "segment")[: 5 * MOST_ROWS]


def _group(number: int, group: GroupTables, tables: ReportTables) -> Variables:
    explanation: list[ExplanationRow] = group.explanation.to_pylist()
    sections = {name: [*rows] for name, rows in groupby(explanation, key=lambda row: row["section"])}
    rebalances: list[RebalanceRow] = group.rebalances.to_pylist()
    in_range = [row for row in rebalances if tables.request.holds(row["timestamp_ms"], row["timestamp_ms"])]
    offsets = _offsets(group, tables)
    return {
        "number": number,
        "name": group.group,
        "replica": group.origin[0],
        "offsets_partition": group.origin[1],
        "type": rebalances[-1]["group_type"] if rebalances else None,
        "sections": [(title, sections[name]) for name, title in _SECTIONS.items() if name in sections],
        "missing": sections.get("missing", []),
        "next": sections.get("next", []),
        "rebalances": [_rebalance(row) for row in in_range[-_MOST_REBALANCES:]],
        "rebalance_count": len(in_range),
        "is_storm": any(row["is_storm"] for row in in_range),
        "has_picture": group.owners.num_rows > 0 or group.history.num_rows > 0,
        "offsets": offsets[:MOST_ROWS],
        "offset_count": len(offsets),
        "has_lag": any(row["lag"] is not None for row in offsets),
        "lag": sum(row["lag"] for row in offsets if row["lag"] is not None),
        "grid": _grid(group),
        "plans": [_plan(group.group, way, plan.table.to_pylist(), plan.text, [*plan.sentences()]) for way, plan in group.plans.items()],
        "refused": group.refused,
    }


def _rebalance(row: RebalanceRow) -> Variables:
    number = row["generation"] if row["generation"] is not None else row["group_epoch"]
    return {**row, "epoch": number, "why": words(row["causes"]) or words([row["event"]])}


def _offsets(group: GroupTables, tables: ReportTables) -> list[OffsetLine]:
    """The committed offsets at the end, with lag where the end offset is known, and the owner; the largest lag first."""
    owned: list[OwnerRow] = [row for row in group.owners.to_pylist() if row["to_record_offset"] is None and row["member_id"] is not None]
    names = OwnerNames(owned)
    owners: dict[tuple[str, int], list[str]] = {}
    for row in owned:
        owners.setdefault((row["topic"], row["partition"]), []).append(names.of(row) or "")
    ends = {**_live_ends(tables, group.group), **(tables.request.inputs.end_offsets or {})}
    rows: list[OffsetRow] = group.offsets.to_pylist()
    found: list[OffsetLine] = [
        {
            "topic": row["topic"],
            "partition": row["partition"],
            "committed_offset": row["committed_offset"],
            "commit_timestamp_ms": row["commit_timestamp_ms"],
            "record_offset": row["record_offset"],
            "end_offset": (end := ends.get((row["topic"], row["partition"]))),
            "lag": None if end is None else end - row["committed_offset"],
            "owners": owners.get((row["topic"], row["partition"]), []),
        }
        for row in rows
    ]
    return sorted(found, key=lambda row: (-(row["lag"] or 0), row["topic"], row["partition"]))


def _live_ends(tables: ReportTables, group: str) -> dict[tuple[str, int], int]:
    return {
        (line.topic, line.partition): line.end_offset
        for line in tables.request.inputs.live or ()
        if line.group == group and line.end_offset is not None
    }


def _grid(group: GroupTables) -> Variables | None:
    """The assignment as cells: for each partition its owners, and those expected, as letters of members."""
    if group.verdicts is None or group.assigned is None or not group.verdicts.num_rows:
        return None
    rows: list[AssignedPartitionRow] = group.assigned.to_pylist()
    members = dict.fromkeys(member for row in rows for member in (*row["actual"], *(row["expected"] or ())))
    letters = {member: letter_of(number) for number, member in enumerate(members)}
    cells = [_cell(row, letters) for row in rows[:_MOST_CELLS]]
    return {
        "verdict": group.verdicts.to_pylist()[-1],
        "members": [{"letter": letter, "number": number, "id": member} for number, (member, letter) in enumerate(letters.items())],
        "topics": [(topic, [*own]) for topic, own in groupby(cells, key=lambda cell: cell["topic"])],
        "different": sum(bool(row["differences"]) for row in rows),
        "cells_left": max(len(rows) - _MOST_CELLS, 0),
        "count": len(rows),
        "is_expected_known": any(row["expected"] is not None for row in rows),
    }


def _cell(row: AssignedPartitionRow, letters: Mapping[str, str]) -> Cell:
    numbers = {member: number for number, member in enumerate(letters)}
    return {
        "topic": row["topic"],
        "partition": row["partition"],
        "actual": [letters[member] for member in row["actual"]],
        "expected": None if row["expected"] is None else [letters[member] for member in row["expected"]],
        "colour": numbers[row["actual"][0]] % 8 if len(row["actual"]) == 1 else None,
        "differences": [name.replace("_", " ") for name in row["differences"]],
        "is_different": row["expected"] is not None and row["expected"] != row["actual"],
    }


def _plan(group: str, way: str, rows: Sequence[ResetPlanRow], text: str, sentences: Sequence[str]) -> Variables:
    counts = Counter(row["action"] for row in rows)
    return {
        "way": way,
        "title": _PLAN_TITLES[way],
        "rows": rows[:MOST_ROWS],
        "rows_left": max(len(rows) - MOST_ROWS, 0),
        "counts": counts,
        "sentence": sentences[0],
        "file": _file_name(group, way),
        "shell_group": shlex.quote(group),
        "csv": base64.b64encode(text.encode()).decode() if text else None,
    }


def _file_name(group: str, way: str) -> str:
    """A file name of plain letters."""
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_") else "_" for letter in group)[:60]
    return f"{plain or 'group'}-{way.replace('_', '-')}.csv"
