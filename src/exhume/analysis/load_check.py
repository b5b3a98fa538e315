"""Would these releases load this log, and what would each lose or refuse: made for upgrades and downgrades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from exhume.arrow_rows import table_of
from exhume.codecs.log_directory import LogDirectory
from exhume.replay.broker_log import Stop
from exhume.replay.local import load_partitions, load_state
from exhume.replay.partition_load import LoadOptions, PartitionLoad
from exhume.replay.reading import CompiledLoad
from exhume.replay.releases import profile_for
from exhume.replay.state import CoordinatorState
from exhume.replay.topic_names import TopicNames
from exhume.replay.verdict import LOADED

#: One row per release, stop and offsets partition. `outcome` as in `loads`; `missing_offsets` are committed offsets that the newest
#: release would hold if it never gave up, and this one does not; `lost_bytes` is what the broker's start would cut off the log.
LOAD_CHECK = pa.schema(
    [
        ("release", pa.string()),
        ("coordinator", pa.string()),
        ("stop", pa.string()),
        ("replica", pa.string()),
        ("offsets_partition", pa.int32()),
        ("outcome", pa.string()),
        ("record_offset", pa.int64()),
        ("reason", pa.string()),
        ("groups", pa.int64()),
        ("offsets", pa.int64()),
        ("missing_offsets", pa.int64()),
        ("lost_bytes", pa.int64()),
        ("path", pa.string()),
        ("byte_position", pa.int64()),
    ]
)

#: One row per release and stop, over all offsets partitions: the first that is not loaded, and why.
LOAD_MATRIX = pa.schema(
    [
        ("release", pa.string()),
        ("coordinator", pa.string()),
        ("stop", pa.string()),
        ("loaded", pa.int64()),
        ("not_loaded", pa.int64()),
        ("offsets", pa.int64()),
        ("missing_offsets", pa.int64()),
        ("lost_bytes", pa.int64()),
        ("first_offsets_partition", pa.int32()),
        ("first_record_offset", pa.int64()),
        ("first_reason", pa.string()),
    ]
)

#: What `given_up` says of a load, besides release, stop, place and problem.
_TOLD = ("coordinator", "outcome", "record_offset")
#: Loads that do not come to a clean end.
FAILED = ("aborted", "loaded_with_error")
_PARTITION_KEY = ("replica", "offsets_partition")
_OFFSET_KEY = (*_PARTITION_KEY, "group", "topic", "partition")
_Key = tuple[str | None, int | None]


def check_loads(
    directories: Sequence[LogDirectory],
    releases: Sequence[str],
    *,
    stop: Stop | None = None,
    fast: CompiledLoad | None = None,
) -> pa.Table:
    """What each of these releases would make of these logs, as `LOAD_CHECK`.

    Without `stop` a log directory that does not tell how its broker stopped is tried both ways. `fast` as in `LoadOptions`.
    """
    stops: list[Stop] = [stop] if stop else tried_stops(directories)
    rows: list[dict[str, Any]] = []
    fast = fast and fast.for_loads(len(releases))
    kept_on = load_state(directories, LoadOptions(profile_for(None), "lenient", fast=fast), TopicNames()).offsets.select(_OFFSET_KEY)
    for release in releases:
        profile = profile_for(release)
        for tried in stops:
            options = LoadOptions(profile, stop=tried, fast=fast)
            state = load_state(directories, options, TopicNames())
            rows += _rows(release, state, kept_on)
    return table_of(LOAD_CHECK, rows)


def given_up(directories: Sequence[LogDirectory], releases: Sequence[str], *, fast: CompiledLoad | None = None) -> list[dict[str, Any]]:
    """Each load that one of these releases gives up, or that ends in an error: `release` and the first columns of `LOAD_CHECK` as far as
    `record_offset`, and its `problem`; what does not apply may be missing.

    A log directory that does not tell how its broker stopped is tried both ways. What is in memory behind a load is not looked at.
    """
    stops = tried_stops(directories)
    fast = fast and replace(fast.for_loads(len(releases)), verified_segments=set(), reusable_folds={})
    segments = {segment.path for each in directories for partition in each.partitions for segment in partition.read_segments}
    rows: dict[str, list[dict[str, Any]]] = {release: [] for release in releases}
    # What a newer release takes, an older one may fold alike.
    for release in reversed(releases):
        aborted: list[dict[str, Any]] = []
        is_plain = False
        for tried in stops:
            # What was verified and read in columns after a clean stop has nothing that another start would mend.
            if not is_plain:
                if fast is not None:
                    fast.verified_segments.clear()
                options = LoadOptions(profile_for(release), "strict", tried, "committed", fast=fast)
                aborted = [_told(load) for load in load_partitions(directories, options, TopicNames()) if load.outcome in FAILED]
                is_plain = fast is not None and fast.read.verify and fast.verified_segments >= segments
            rows[release] += [row | {"release": release, "stop": tried} for row in aborted]
    return [row for release in releases for row in rows[release]]


def _told(load: PartitionLoad) -> dict[str, Any]:
    origin = {"replica": load.partition.replica, "offsets_partition": load.partition.offsets_partition}
    return {name: value for name, value in load.row.items() if name in _TOLD} | origin | {"problem": load.problem}


def load_matrix(checked: pa.Table) -> pa.Table:
    """One line for each release and stop of a `LOAD_CHECK` table, as `LOAD_MATRIX`."""
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for row in checked.to_pylist():
        line = lines.setdefault(
            (row["release"], row["stop"]),
            {name: row[name] for name in ("release", "coordinator", "stop")}
            | dict.fromkeys(("loaded", "not_loaded", "offsets", "missing_offsets", "lost_bytes"), 0),
        )
        is_loaded = row["outcome"] in LOADED
        line["loaded" if is_loaded else "not_loaded"] += 1
        for name in ("offsets", "missing_offsets", "lost_bytes"):
            line[name] += row[name]
        if not is_loaded and "first_reason" not in line:
            line |= {
                "first_offsets_partition": row["offsets_partition"],
                "first_record_offset": row["record_offset"],
                "first_reason": f"{row['outcome']}: {row['reason']}",
            }
    return table_of(LOAD_MATRIX, list(lines.values()))


def is_refused(checked: pa.Table) -> bool:
    """True when one of the releases does not load a partition, or loses something at its start."""
    return any(row["outcome"] not in LOADED or row["lost_bytes"] for row in checked.to_pylist())


def tried_stops(directories: Sequence[LogDirectory]) -> list[Stop]:
    """How their brokers may have stopped: as the directories tell, both ways where they do not."""
    known = {directory.clean_shutdown for directory in directories}
    if known == {True}:
        return ["clean"]
    return ["unclean"] if known == {False} else ["clean", "unclean"]


def _rows(release: str, state: CoordinatorState, kept_on: pa.Table) -> list[dict[str, Any]]:
    """`kept_on`: the keys of the offsets that the newest release holds if it never gives up."""
    lost: dict[_Key, int] = {}
    for finding in state.findings:
        if finding.code in ("lost_at_unclean_start", "hidden_from_broker"):
            key = (finding.replica, finding.offsets_partition)
            lost[key] = lost.get(key, 0) + (finding.size_bytes or 0)
    held = state.offsets.select(_OFFSET_KEY)
    groups, offsets, missing = _counts(state.groups), _counts(held), _counts(_missing(kept_on, held))
    rows = []
    for load in state.loads.to_pylist():
        key = (load["replica"], load["offsets_partition"])
        rows.append(
            {name: load[name] for name in LOAD_CHECK.names if name in load}
            | {
                "release": release,
                "groups": groups.get(key, 0),
                "offsets": offsets.get(key, 0),
                "missing_offsets": missing.get(key, 0),
                "lost_bytes": lost.get(key, 0),
            }
        )
    return rows


def _missing(keys: pa.Table, held: pa.Table) -> pa.Table:
    """Those of `keys` that are not in `held`."""
    if keys.equals(held):
        # Most releases hold the same, in the same order.
        return keys.slice(0, 0)
    both = [table.append_column("is_held", pa.repeat(is_held, table.num_rows)) for table, is_held in ((keys, False), (held, True))]
    told = pa.concat_tables(both).group_by(_OFFSET_KEY).aggregate([("is_held", "max")])
    return told.filter(pc.invert(told["is_held_max"]))


def _counts(table: pa.Table) -> dict[_Key, int]:
    """How many rows each offsets partition has."""
    counted = table.group_by(_PARTITION_KEY).aggregate([([], "count_all")])
    return {(row["replica"], row["offsets_partition"]): row["count_all"] for row in counted.to_pylist()}
