"""Committed offsets over time as points, with few enough points for a browser.

A point is a commit that counted, or a tombstone, of `HISTORY`, at the time at which it counted. If there are too many, each lane keeps its
first and last point, its rewinds, jumps and tombstones, and the lowest and highest offset of each stretch of time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from exhume.analysis.history import NEVER_COUNTED, HistoryRow
from exhume.analysis.number_columns import Int64s
from exhume.analysis.positions import is_rewind, position_changes, topic_partition

#: The kinds of points by number.
POINTS = ("commit", "rewind", "removed", "jump")
_COMMIT, _REWIND, _REMOVED, _JUMP = range(len(POINTS))
_READ = (
    *("replica", "offsets_partition", "record_offset", "timestamp_ms", "record_type", "topic", "partition", "is_tombstone"),
    *("committed_offset", "fate", "marker_record_offset", "marker_timestamp_ms", "committer", "committer_confidence"),
    *("owner_member_id", "owner_client_id", "owner_client_host", "owner_group_instance_id"),
)
#: The values of `committer` in words.
_COMMITTERS = {
    "only_member": "by the only member",
    "owner": "by the owner",
    "one_of_several": "by one of its owners",
    "member": "by a member",
    "outside": "from outside the group",
    "unknown": "the log does not show by which member",
}


@dataclass(frozen=True, slots=True)
class Point:
    """A commit that counted; `committed_offset` is None for a tombstone, `delta` the change, None without an earlier offset."""

    time_ms: int
    record_offset: int
    kind: int
    committed_offset: int | None
    delta: int | None
    committer: str | None


@dataclass(frozen=True, slots=True)
class Positions:
    """The points of each partition of a topic, in the order in which they counted.

    `counted` is the number of all of them, `without_effect` that of commits of aborted or open transactions.
    """

    points: dict[tuple[str, int], list[Point]]
    counted: int
    without_effect: int


def positions_over_time(history: pa.Table, *, by_producer_id: bool, jumps: Collection[int], most_points: int) -> Positions:
    """Return the positions of one group in one log from its rows of `HISTORY`.

    `by_producer_id` is as for `positions_before_rewinds`, `jumps` are the record offsets of commits that skipped records.
    """
    rows: list[HistoryRow] = history.select(_READ).to_pylist()
    points: dict[tuple[str, int], list[Point]] = {}
    for held, row in position_changes(rows, by_producer_id=by_producer_id):
        time_ms = row["timestamp_ms"] if row["marker_timestamp_ms"] is None else row["marker_timestamp_ms"]
        if time_ms is not None:
            points.setdefault(topic_partition(row), []).append(_point(held, row, time_ms, jumps))
    counted = sum(map(len, points.values()))
    if counted > most_points:
        each = max(most_points // len(points), 8)
        points = {key: _thinned(own, each) for key, own in points.items()}
    return Positions(points, counted, sum(row["fate"] in NEVER_COUNTED for row in rows))


def _point(held: HistoryRow | None, row: HistoryRow, time_ms: int, jumps: Collection[int]) -> Point:
    committed, before = row["committed_offset"], None if held is None else held["committed_offset"]
    if row["is_tombstone"]:
        kind = _REMOVED
    elif held is not None and is_rewind(held, row):
        kind = _REWIND
    else:
        kind = _JUMP if row["record_offset"] in jumps else _COMMIT
    delta = None if committed is None or before is None else committed - before
    return Point(time_ms, row["record_offset"], kind, None if kind == _REMOVED else committed, delta, _committer(row))


def _committer(row: HistoryRow) -> str | None:
    """The likely committer in words, with its confidence."""
    if row["committer"] is None:
        return None
    words = _COMMITTERS.get(row["committer"], row["committer"])
    if row["owner_member_id"] is not None and row["committer"] in ("owner", "only_member"):
        host = (row["owner_client_host"] or "?").removeprefix("/")
        words += (
            f", {row['owner_client_id'] or '?'}@{host}"
            if row["owner_group_instance_id"] is None
            else f", #{row['owner_group_instance_id']}"
        )
    return f"{words} ({row['committer_confidence']})"


def _thinned(points: Sequence[Point], most: int) -> list[Point]:
    """The first and the last point, those that are no plain commit, and the extremes of each stretch of time."""
    times: Int64s = np.array([point.time_ms for point in points], dtype=np.int64)
    stretch = (times - times.min()) * max(most // 2, 1) // max(int(times.max() - times.min()) + 1, 1)
    kept = {0, len(points) - 1}
    lowest: dict[int, int] = {}
    highest: dict[int, int] = {}
    special = [at for at, point in enumerate(points) if point.kind != _COMMIT]
    # Of many rewinds, as many as there is room for; the number of all of them is in the tables.
    kept.update(special[:: max(len(special) // most, 1)])
    for at, (number, point) in enumerate(zip(stretch.tolist(), points, strict=True)):
        if point.committed_offset is None:
            continue
        if number not in lowest or point.committed_offset < (points[lowest[number]].committed_offset or 0):
            lowest[number] = at
        if number not in highest or point.committed_offset >= (points[highest[number]].committed_offset or 0):
            highest[number] = at
    kept.update(lowest.values(), highest.values())
    return [points[at] for at in sorted(kept)]
