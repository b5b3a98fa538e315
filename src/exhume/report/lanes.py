"""Owners over time as bars: a lane for each partition of a topic, and few enough bars for a browser.

A bar is an interval of `OWNERS`. If there are too many, short intervals of one lane that follow each other become one bar of the kind
`many` with their number and the owner of the longest one; long intervals stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.number_columns import NONE, Int64s
from exhume.analysis.owner_names import OwnerNames
from exhume.analysis.ownership import OwnerRow
from exhume.int64 import LARGEST_INT64

#: The kinds of bars by number. The first three have an owner.
KINDS = ("assigned", "pending_revocation", "away", "empty", "unassigned", "removed", "unknown", "overlap", "many")
_OVERLAP, _MANY = KINDS.index("overlap"), KINDS.index("many")
_COLUMNS = ("lane", "from_ms", "to_ms", "owner", "kind", "from_record_offset", "to_record_offset", "epoch", "count", "flags")
#: A flag of a bar: it may have begun, or have ended, earlier than its records.
BEGAN_EARLIER, ENDED_EARLIER = 1, 2


class Lane(TypedDict):
    """A lane of the picture."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of one group, with names as the log has them.

    `owners` are names in the order in which they first owned a partition. `bars` are columns by name, sorted by lane and begin: numbers of
    lane and owner (-1: none), times, the kind by number, the first record offset and the one that ended it (-1: none), generation or epoch
    (-1: none), the number of intervals, flags. `without_time` intervals have no time and no bar.
    """

    lanes: list[Lane]
    owners: list[str]
    bars: Mapping[str, Int64s]
    without_time: int


def lanes_of(owners: pa.Table, most_bars: int) -> Lanes:
    """Draw these rows of `OWNERS`, of one group in one log, with at most about this many bars."""
    owners = owners.sort_by([("topic", "ascending"), ("partition", "ascending"), ("from_record_offset", "ascending")])
    has_time = pc.and_(pc.is_valid(owners["from_timestamp_ms"]), pc.is_valid(owners["to_timestamp_ms"]))
    drawn = owners.filter(has_time)
    lane, lanes = _numbered_lanes(drawn)
    names = _names(drawn)
    bars = _bars(drawn, lane, names)
    bars = _with_overlaps(drawn, _fewer(bars, most_bars), lane)
    return Lanes(lanes, [*dict.fromkeys(names.values())], bars, owners.num_rows - drawn.num_rows)


def _numbered_lanes(rows: pa.Table) -> tuple[Int64s, list[Lane]]:
    """The number of the lane of each row, and the lanes. Rows are sorted."""
    topics = rows["topic"].combine_chunks().dictionary_encode()
    numbers, partitions = topics.indices.to_numpy(), rows["partition"].to_numpy()
    begins = np.ones(len(numbers), dtype=bool)
    begins[1:] = (numbers[1:] != numbers[:-1]) | (partitions[1:] != partitions[:-1])
    first = np.flatnonzero(begins)
    names = topics.dictionary.to_pylist()
    return np.cumsum(begins) - 1, [{"topic": names[numbers[at]], "partition": int(partitions[at])} for at in first.tolist()]


def _names(rows: pa.Table) -> dict[str, str]:
    """The name of the owner of each member id, in the order in which they first owned a partition."""
    owned = rows.filter(pc.is_valid(rows["member_id"]))
    whole = owned.append_column("end", pc.fill_null(owned["to_record_offset"], LARGEST_INT64))
    columns = ["member_id", "group_instance_id", "client_id", "client_host"]
    spans = whole.group_by(columns, use_threads=False).aggregate([("from_record_offset", "min"), ("end", "max"), ("partition", "min")])
    renamed = spans.rename_columns([*columns, "from_record_offset", "to_record_offset", "partition"])
    listed: list[OwnerRow] = renamed.sort_by([("from_record_offset", "ascending"), ("partition", "ascending")]).to_pylist()
    names = OwnerNames(listed)
    return {row["member_id"] or "": names.of(row) or "" for row in listed}


def _bars(rows: pa.Table, lane: Int64s, names: Mapping[str, str]) -> dict[str, Int64s]:
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names.values()))}
    by_member = np.array([*(numbers[name] for name in names.values()), NONE], dtype=np.int64)
    place = _filled(pc.index_in(rows["member_id"], value_set=pa.array([*names], pa.string())), NONE)
    holding = pc.index_in(pc.coalesce(rows["reason"], rows["holding"]), value_set=pa.array(KINDS, pa.string()))
    begin, end = _filled(rows["from_timestamp_ms"], 0), _filled(rows["to_timestamp_ms"], 0)
    began = _filled(pc.equal(rows["began"], "earlier").cast(pa.int64()), 0)
    ended = _filled(pc.equal(rows["ended"], "earlier").cast(pa.int64()), 0)
    owner = by_member[place]
    owner[_filled(pc.is_null(rows["member_id"]).cast(pa.int64()), 0) == 1] = NONE
    return {
        "lane": lane,
        "from_ms": begin,
        "to_ms": np.maximum(begin, end),
        "owner": owner,
        "kind": _filled(holding, KINDS.index("unknown")),
        "from_record_offset": _filled(rows["from_record_offset"], 0),
        "to_record_offset": _filled(rows["to_record_offset"], NONE),
        "epoch": _filled(pc.coalesce(rows["generation"], rows["group_epoch"]), NONE),
        "count": np.ones(len(begin), dtype=np.int64),
        "flags": began * BEGAN_EARLIER + ended * ENDED_EARLIER,
    }


def _filled(column: pa.ChunkedArray, default: int) -> Int64s:
    numbers: Int64s = pc.fill_null(column.cast(pa.int64()), default).to_numpy().astype(np.int64)
    return numbers


def _fewer(bars: dict[str, Int64s], most: int) -> dict[str, Int64s]:
    """Join short bars of one lane until there are at most this many bars."""
    if len(bars["lane"]) <= most:
        return bars
    span_ms = max(int(bars["to_ms"].max() - bars["from_ms"].min()), 1)
    step_ms = 1
    while step_ms <= span_ms:
        starts = _starts(bars, step_ms)
        if len(starts) <= most:
            break
        step_ms *= 2
    starts = _starts(bars, step_ms)
    counts = np.add.reduceat(bars["count"], starts)
    last = np.append(starts[1:], len(bars["lane"])) - 1
    is_one = counts == 1
    joined = {name: column[starts] for name, column in bars.items()}
    joined["to_ms"] = np.maximum.reduceat(bars["to_ms"], starts)
    joined["to_record_offset"] = bars["to_record_offset"][last]
    joined["count"] = counts
    joined["kind"] = np.where(is_one, joined["kind"], _MANY)
    joined["owner"] = bars["owner"][_longest(bars, counts)]
    return joined


def _longest(bars: Mapping[str, Int64s], counts: Int64s) -> Int64s:
    """The place of the longest bar of each run; runs have these numbers of bars."""
    runs = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((bars["to_ms"] - bars["from_ms"], runs))
    return order[np.cumsum(counts) - 1]


def _starts(bars: Mapping[str, Int64s], step_ms: int) -> Int64s:
    """The places of the first bars of runs: of short bars that begin in the same lane and step, or of one long bar."""
    is_short = bars["to_ms"] - bars["from_ms"] < step_ms
    step = bars["from_ms"] // step_ms
    joins = is_short[1:] & is_short[:-1] & (bars["lane"][1:] == bars["lane"][:-1]) & (step[1:] == step[:-1])
    return np.flatnonzero(np.append(True, ~joins))


def _with_overlaps(rows: pa.Table, bars: dict[str, Int64s], lane: Int64s) -> dict[str, Int64s]:
    """Add a bar for each time in which two members owned one partition."""
    wanted = pc.and_(pc.greater(pc.list_value_length(rows["overlaps"]), 0), pc.not_equal(rows["group_type"], "share"))
    places = np.flatnonzero(_filled(wanted.cast(pa.int64()), 0))
    if not len(places):
        return bars
    columns = ["from_timestamp_ms", "to_timestamp_ms", "from_record_offset", "to_record_offset", "member_id"]
    listed: list[OwnerRow] = rows.select(columns).take(places).to_pylist()
    by_lane: dict[int, list[OwnerRow]] = {}
    for number, row in zip(lane[places].tolist(), listed, strict=True):
        by_lane.setdefault(number, []).append(row)
    found = [{"lane": number} | bar for number, owned in by_lane.items() for bar in _overlaps(owned)]
    added = {name: np.array([bar.get(name, NONE) for bar in found], dtype=np.int64) for name in _COLUMNS}
    joined = {name: np.concatenate([bars[name], added[name]]) for name in _COLUMNS}
    order = np.lexsort((joined["kind"], joined["from_ms"], joined["lane"]))
    return {name: column[order] for name, column in joined.items()}


def _overlaps(owned: Sequence[OwnerRow]) -> list[dict[str, int]]:
    """The times of one lane in which two of these intervals hold."""
    found = []
    for at, later in enumerate(owned):
        for earlier in owned[:at]:
            ends = [row["to_record_offset"] for row in (earlier, later) if row["to_record_offset"] is not None]
            end = min(ends, default=NONE)
            if end != NONE and end <= later["from_record_offset"]:
                continue
            begin_ms = later["from_timestamp_ms"] or 0
            end_ms = min(row["to_timestamp_ms"] or 0 for row in (earlier, later))
            found.append(
                {
                    "from_ms": begin_ms,
                    "to_ms": max(begin_ms, end_ms),
                    "kind": _OVERLAP,
                    "from_record_offset": later["from_record_offset"],
                    "to_record_offset": end,
                    "count": 1,
                    "flags": 0,
                }
            )
    return found
