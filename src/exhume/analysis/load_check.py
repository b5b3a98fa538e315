"""Check whether these releases would load this log, and what each would lose or refuse: for upgrades and downgrades."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
import pyarrow as pa

from exhume.analysis.number_columns import RowGroups
from exhume.arrow_rows import Int32, OfLog, Origin, of_log, schema_of, table_of
from exhume.codecs.columns.arrow import flags
from exhume.codecs.log_directory import LogDirectory, PartitionDirectory
from exhume.replay.broker_log import Stop
from exhume.replay.load_problems import LoadProblem
from exhume.replay.local import load_partitions, load_state, state_of_loads
from exhume.replay.partition_load import LoadOptions, PartitionLoad
from exhume.replay.profiles import BrokerProfile
from exhume.replay.reading import CompiledLoad
from exhume.replay.releases import profile_for
from exhume.replay.rule_reads import VALUE_RULES, LoadsByRules
from exhume.replay.state_tables import LoadRow
from exhume.replay.topic_names import TopicNames
from exhume.replay.verdict import LOADED


class LoadCheckRow(TypedDict):
    """One row per release, stop and offsets partition.

    `outcome` as in `loads`. `missing_offsets` are committed offsets that the newest release would have if it never gave up, and this one
    does not. `lost_bytes` is the size that the broker's start would cut off the log.
    """

    release: str
    coordinator: str
    stop: str
    replica: str | None
    offsets_partition: Int32 | None
    outcome: str
    record_offset: int | None
    reason: str | None
    groups: int
    offsets: int
    missing_offsets: int
    lost_bytes: int
    path: str | None
    byte_position: int | None


LOAD_CHECK = schema_of(LoadCheckRow)


class LoadMatrixRow(TypedDict):
    """One row per release and stop, over all offsets partitions.

    `loaded` are partitions, `3 of 4`, and `offsets` committed offsets, `13 of 33`. `record` is the first one that is not loaded,
    `partition:offset`, for `reason`.
    """

    release: str
    coordinator: str
    stop: str
    loaded: str
    offsets: str
    lost_bytes: int
    record: str | None
    reason: str | None


LOAD_MATRIX = schema_of(LoadMatrixRow)


class _Line(TypedDict):
    """The counts of a `LoadMatrixRow`."""

    release: str
    coordinator: str
    stop: str
    loaded: int
    not_loaded: int
    offsets: int
    missing_offsets: int
    lost_bytes: int
    record: str | None
    reason: str | None


class FailedLoad(OfLog):
    """A load that a release gives up, or that ends in an error. `record_offset` is where it stopped, `problem` is the reason."""

    release: str
    coordinator: str
    stop: Stop
    outcome: str
    record_offset: int | None
    problem: LoadProblem


#: Outcomes of loads without a clean end.
FAILED = ("aborted", "loaded_with_error")
_PARTITION_KEY = ("replica", "offsets_partition")
_OFFSET_KEY = (*_PARTITION_KEY, "group", "topic", "partition")


def check_loads(
    directories: Sequence[LogDirectory],
    releases: Sequence[str],
    *,
    stop: Stop | None = None,
    fast: CompiledLoad | None = None,
) -> pa.Table:
    """Check the load of these logs by each of these releases, as `LOAD_CHECK`.

    Without `stop`, a log directory that does not show how its broker stopped is tried both ways. `fast` as in `LoadOptions`.
    """
    stops: list[Stop] = [stop] if stop else tried_stops(directories)
    fast = fast and replace(fast, reusable_folds={})
    kept_on = load_state(directories, LoadOptions(profile_for(None), "lenient", fast=fast), TopicNames()).offsets.select(_OFFSET_KEY)

    def check(profile: BrokerProfile) -> list[_Checked]:
        loaded = (load_partitions(directories, LoadOptions(profile, stop=tried, fast=fast), TopicNames()) for tried in stops)
        return [checked for loads in loaded for checked in _checked(loads, profile, kept_on)]

    checks = LoadsByRules(check, besides=VALUE_RULES)
    return table_of(LOAD_CHECK, (_row(release, checked) for release in releases for checked in checks.of(profile_for(release))))


def given_up(directories: Sequence[LogDirectory], releases: Sequence[str], *, fast: CompiledLoad | None = None) -> list[FailedLoad]:
    """Return each load that one of these releases gives up, or that ends in an error.

    A log directory that does not show how its broker stopped is tried both ways. The loaded state is not compared.
    """
    stops = tried_stops(directories)
    fast = fast and replace(fast, verified_segments=set(), reusable_folds={})
    segments = {segment.path for each in directories for partition in each.partitions for segment in partition.read_segments}

    def failed(profile: BrokerProfile) -> list[tuple[Stop, PartitionLoad]]:
        found: list[tuple[Stop, PartitionLoad]] = []
        aborted: list[PartitionLoad] = []
        is_plain = False
        for tried in stops:
            # After a clean stop a load in columns has no damage that another start would repair.
            if not is_plain:
                if fast is not None:
                    fast.verified_segments.clear()
                options = LoadOptions(profile, "strict", tried, "committed", fast=fast)
                aborted = [load for load in load_partitions(directories, options, TopicNames()) if load.outcome in FAILED]
                is_plain = fast is not None and fast.read.verify and fast.verified_segments >= segments
            found += [(tried, load) for load in aborted]
        return found

    # The oldest release first: newer ones accept more, so they may reuse its folds.
    loads = LoadsByRules(failed, besides=VALUE_RULES)
    return [_failed(release, tried, load) for release in releases for tried, load in loads.of(profile_for(release))]


def _failed(release: str, stop: Stop, load: PartitionLoad) -> FailedLoad:
    assert load.problem is not None
    return {
        **of_log(load.partition.replica, load.partition.offsets_partition),
        "release": release,
        "coordinator": load.row["coordinator"],
        "stop": stop,
        "outcome": load.outcome,
        "record_offset": load.row.get("record_offset"),
        "problem": _problem_of(release, load.problem),
    }


def _problem_of(release: str, problem: LoadProblem) -> LoadProblem:
    """Return the problem of this release, which may share the load of another one."""
    return problem if problem.release is None else replace(problem, release=profile_for(release).release)


def load_matrix(checked: pa.Table) -> pa.Table:
    """Return one line for each release and stop of a `LOAD_CHECK` table, as `LOAD_MATRIX`."""
    lines: dict[tuple[str, str], _Line] = {}
    rows: list[LoadCheckRow] = checked.to_pylist()
    for row in rows:
        line = lines.setdefault((row["release"], row["stop"]), _line(row))
        is_loaded = row["outcome"] in LOADED
        line["loaded"] += is_loaded
        line["not_loaded"] += not is_loaded
        line["offsets"] += row["offsets"]
        line["missing_offsets"] += row["missing_offsets"]
        line["lost_bytes"] += row["lost_bytes"]
        if not is_loaded and line["reason"] is None:
            line["record"] = _record(row["offsets_partition"], row["record_offset"])
            line["reason"] = f"{row['outcome']}: {row['reason']}"
    return table_of(LOAD_MATRIX, [_matrix_row(line) for line in _spans(list(lines.values()))])


def _matrix_row(line: _Line) -> LoadMatrixRow:
    return {
        "release": line["release"],
        "coordinator": line["coordinator"],
        "stop": line["stop"],
        "loaded": f"{line['loaded']} of {line['loaded'] + line['not_loaded']}",
        "offsets": f"{line['offsets']} of {line['offsets'] + line['missing_offsets']}",
        "lost_bytes": line["lost_bytes"],
        "record": line["record"],
        "reason": line["reason"],
    }


def _record(offsets_partition: int | None, record_offset: int | None) -> str | None:
    of = "" if offsets_partition is None else f"{offsets_partition}:"
    return None if record_offset is None else f"{of}{record_offset}"


def _spans(lines: Sequence[_Line]) -> list[_Line]:
    """Join releases that follow one another and do the same to one line, `2.3.1 to 3.4.0`; equal results after both stops too."""
    found: list[_Line] = []
    by_release: dict[str, list[_Line]] = {}
    for line in lines:
        by_release.setdefault(line["release"], []).append(line)
    ends: list[tuple[str, str]] = []
    last: list[_Line] = []
    for release, stops in by_release.items():
        if len(stops) > 1 and all(_is_same(stops[0], stop) for stop in stops):
            stops = [{**stops[0], "stop": "both"}]
        if len(last) == len(stops) and all(
            one["stop"] == other["stop"] and _is_same(one, other) for one, other in zip(last, stops, strict=True)
        ):
            ends[-1] = (ends[-1][0], release)
        else:
            ends.append((release, release))
            last = stops
            found += stops
        first = ends[-1][0]
        for line in last:
            line["release"] = first if first == release else f"{first} to {release}"
    return found


def _is_same(one: _Line, other: _Line) -> bool:
    """Return True if two loads differ in the release or the stop alone."""
    apart = ("release", "stop", "reason")
    reasons = [(line["reason"] or "").replace(line["release"].split(" to ")[-1], "") for line in (one, other)]
    return reasons[0] == reasons[1] and all(one[name] == other[name] for name in one if name not in apart)  # type: ignore[literal-required]


def _line(row: LoadCheckRow) -> _Line:
    """Return the line of this release and stop, before counting."""
    return {
        "release": row["release"],
        "coordinator": row["coordinator"],
        "stop": row["stop"],
        "loaded": 0,
        "not_loaded": 0,
        "offsets": 0,
        "missing_offsets": 0,
        "lost_bytes": 0,
        "record": None,
        "reason": None,
    }


def is_refused(checked: pa.Table) -> bool:
    """True if one of the releases does not load a partition, or loses something at its start."""
    return any(row["outcome"] not in LOADED or row["lost_bytes"] for row in checked.to_pylist())


def tried_stops(directories: Sequence[LogDirectory]) -> list[Stop]:
    """Return how the brokers may have stopped: as the directories show, else both ways."""
    known = {directory.clean_shutdown for directory in directories}
    if known == {True}:
        return ["clean"]
    return ["unclean"] if known == {False} else ["clean", "unclean"]


@dataclass(frozen=True, slots=True)
class _Checked:
    """The load of one offsets partition after one stop, counted."""

    row: LoadRow
    problem: LoadProblem | None
    groups: int
    offsets: int
    missing_offsets: int
    lost_bytes: int
    partition: PartitionDirectory


def _checked(loads: Sequence[PartitionLoad], profile: BrokerProfile, kept_on: pa.Table) -> Iterator[_Checked]:
    """Count these loads. `kept_on` are the keys of the offsets that the newest release has if it never gives up."""
    state = state_of_loads(loads, LoadOptions(profile), TopicNames())
    lost: dict[Origin, int] = {}
    for finding in state.findings:
        if finding.code in ("lost_at_unclean_start", "hidden_from_broker"):
            key = (finding.replica, finding.offsets_partition)
            lost[key] = lost.get(key, 0) + (finding.size_bytes or 0)
    held = state.offsets.select(_OFFSET_KEY)
    groups, offsets, missing = _counts(state.groups), _counts(held), _counts(_missing(kept_on, held))
    for load in loads:
        key = (load.partition.replica, load.partition.offsets_partition)
        yield _Checked(
            load.row, load.problem, groups.get(key, 0), offsets.get(key, 0), missing.get(key, 0), lost.get(key, 0), load.partition
        )


def _row(release: str, checked: _Checked) -> LoadCheckRow:
    row = checked.row
    return {
        "release": release,
        "coordinator": row["coordinator"],
        "stop": row["stop"],
        **of_log(checked.partition.replica, checked.partition.offsets_partition),
        "outcome": row["outcome"],
        "record_offset": row.get("record_offset"),
        "reason": None if checked.problem is None else str(_problem_of(release, checked.problem)),
        "groups": checked.groups,
        "offsets": checked.offsets,
        "missing_offsets": checked.missing_offsets,
        "lost_bytes": checked.lost_bytes,
        "path": row.get("path"),
        "byte_position": row.get("byte_position"),
    }


def _missing(keys: pa.Table, held: pa.Table) -> pa.Table:
    """Return the `keys` that are not in `held`."""
    if keys.equals(held):
        # Most releases have the same offsets in the same order.
        return keys.slice(0, 0)
    both = RowGroups(pa.concat_tables([keys, held]), _OFFSET_KEY)
    return keys.filter(flags(~np.isin(both.numbers[: keys.num_rows], both.numbers[keys.num_rows :])))


def _counts(table: pa.Table) -> dict[Origin, int]:
    """Return the number of rows of each offsets partition."""
    rows = RowGroups(table, _PARTITION_KEY)
    return dict(zip(rows.keys, rows.counts(), strict=True))
