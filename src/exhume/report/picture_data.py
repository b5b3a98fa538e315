"""The data that the script of a report draws: pictures of all groups, with a limit for the whole file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from exhume.escape import printable
from exhume.replay.releases import profile_for
from exhume.report.gather import DiagnosisRow, GroupTables, ReportTables, diagnosis_rows
from exhume.report.lanes import KINDS, Lane, Lanes, lanes_of
from exhume.report.marks import MARK_FIELDS, marks_of
from exhume.report.positions import POINTS, Point, positions_over_time
from exhume.report.strings import Strings

#: The most bars and points of all pictures of a file together: some 7 MB.
MOST_BARS, MOST_POINTS = 140_000, 50_000
_JUMPS = "IC-16"


def pictures(tables: ReportTables) -> Mapping[str, object]:
    """Return the data of all pictures, ready for JSON: times are milliseconds since `begin_ms`, texts are numbers of `strings`."""
    begin_ms, end_ms = time_range(tables)
    strings = Strings()
    share = max(len(tables.groups), 1)
    by_producer_id = profile_for(tables.request.release).coordinator == "java"
    groups = []
    for group in tables.groups:
        lanes = lanes_of(group.owners, MOST_BARS // share)
        jumps = [row["last_record_offset"] or 0 for row in _findings_of(tables.diagnosis, group) if row["code"] == _JUMPS]
        moved = positions_over_time(group.history, by_producer_id=by_producer_id, jumps=jumps, most_points=MOST_POINTS // share)
        all_lanes = _with_positions(lanes, moved.points)
        end_offsets = tables.request.inputs.end_offsets or {}
        groups.append(
            {
                "name": printable(group.group),
                "lanes": [[strings.number(each["topic"]), each["partition"]] for each in all_lanes],
                "owners": [printable(name) for name in lanes.owners],
                "bars": _bar_rows(lanes, begin_ms),
                "points": [_point_rows(moved.points.get((each["topic"], each["partition"]), ()), strings, begin_ms) for each in all_lanes],
                "marks": marks_of(group.rebalances, strings, begin_ms),
                "ends": [end_offsets.get((each["topic"], each["partition"])) for each in all_lanes],
                "flags": [*_flags(tables.diagnosis, group, strings, begin_ms)],
                "counted": moved.counted,
                "without_effect": moved.without_effect,
                "without_time": lanes.without_time,
                "intervals": group.owners.num_rows,
            }
        )
    return {
        "begin_ms": begin_ms,
        "end_ms": end_ms,
        "from_ms": tables.request.from_time_ms,
        "to_ms": tables.request.to_time_ms,
        "kinds": KINDS,
        "point_kinds": POINTS,
        "mark_fields": MARK_FIELDS,
        "groups": groups,
        "strings": strings.texts(),
    }


def time_range(tables: ReportTables) -> tuple[int, int]:
    """The first and the last time of the drawn tables; 0 and 1 without any."""
    columns = (("owners", "from_timestamp_ms"), ("owners", "to_timestamp_ms"), ("rebalances", "timestamp_ms"), ("history", "timestamp_ms"))
    found = [time for group in tables.groups for table, name in columns for time in _ends(getattr(group, table)[name])]
    return (min(found), max(*found, min(found) + 1)) if found else (0, 1)


def _ends(column: pa.ChunkedArray) -> list[int]:
    ends = pc.min_max(column).as_py()
    return [] if ends["min"] is None else [ends["min"], ends["max"]]


def _with_positions(lanes: Lanes, points: Iterable[tuple[str, int]]) -> list[Lane]:
    """The lanes with an owner, and those of partitions with commits alone."""
    known = {(each["topic"], each["partition"]) for each in lanes.lanes}
    others: list[Lane] = [{"topic": topic, "partition": partition} for topic, partition in sorted(points)]
    return lanes.lanes + [each for each in others if (each["topic"], each["partition"]) not in known]


def _bar_rows(lanes: Lanes, begin_ms: int) -> list[list[int]]:
    bars = dict(lanes.bars)
    bars["from_ms"], bars["to_ms"] = bars["from_ms"] - begin_ms, bars["to_ms"] - bars["from_ms"]
    return [column.tolist() for column in bars.values()]


def _point_rows(points: Sequence[Point], strings: Strings, begin_ms: int) -> list[list[int | None]]:
    """The points of a lane as columns."""
    return [
        [point.time_ms - begin_ms for point in points],
        [point.committed_offset for point in points],
        [point.record_offset for point in points],
        [point.kind for point in points],
        [point.delta for point in points],
        [strings.number(point.committer) for point in points],
    ]


def _findings_of(diagnosis: pa.Table, group: GroupTables) -> list[DiagnosisRow]:
    return [row for row in diagnosis_rows(diagnosis) if row["group"] == group.group and row["offsets_partition"] in (None, group.origin[1])]


def _flags(diagnosis: pa.Table, group: GroupTables, strings: Strings, begin_ms: int) -> Iterator[list[object]]:
    """The findings about the group with a time: begin, end, severity, code, sentence, rank."""
    for row in _findings_of(diagnosis, group):
        if row["confidence"] == "undecidable" or row["last_timestamp_ms"] is None:
            continue
        first_ms = row["last_timestamp_ms"] if row["first_timestamp_ms"] is None else row["first_timestamp_ms"]
        yield [
            first_ms - begin_ms,
            row["last_timestamp_ms"] - begin_ms,
            row["severity"],
            row["code"],
            strings.number(row["sentence"]),
            row["rank"],
        ]
