"""The state of a coordinator at the end or at a moment, its next expiry, and the releases that can load the logs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from exhume.codecs.uris import PathOrUri
from exhume.errors import RequestError, near_by
from exhume.findings import Findings
from exhume.replay.broker_log import Stop
from exhume.replay.load_request import LoadRequest
from exhume.replay.moment import Moment, refuse_wrong_order
from exhume.replay.partition_load import LoadOptions, PartitionLoad
from exhume.replay.release_table import newest_of_each_line
from exhume.replay.releases import newer_release_findings
from exhume.replay.state import CoordinatorState, refuse_unknown_groups
from exhume.replay.topic_names import TopicNames
from exhume.replay.verdict import LOADED
from exhume.topic.absent import refuse_removed
from exhume.topic.logs import TopicLogs, selectable_groups
from exhume.topic.retention import Retention

if TYPE_CHECKING:
    from exhume.analysis.forecast import Expiry
    from exhume.analysis.lag import EndOffsets


class GradedState(Mapping[str, pa.Table]):
    """The tables of a state by name; `findings`; `completeness` if the state was graded, and `lag` if end offsets were given."""

    def __init__(self, state: CoordinatorState, completeness: pa.Table | None, findings: Findings) -> None:
        self.state = state
        self.completeness = completeness
        self.lag: pa.Table | None = None
        self._findings = findings

    def __getitem__(self, name: str) -> pa.Table:
        if name == "findings":
            return self._findings.to_table()
        beside = {"completeness": self.completeness, "lag": self.lag}.get(name)
        return self.state.tables[name] if beside is None else beside

    def __iter__(self) -> Iterator[str]:
        beside = {"lag": self.lag, "completeness": self.completeness}
        return iter([*self.state.tables, "findings", *(name for name, table in beside.items() if table is not None)])

    def __len__(self) -> int:
        return sum(1 for _ in self)


def load(logs: TopicLogs, request: LoadRequest, at: Moment | None) -> CoordinatorState:
    """The state at this moment; None: at the end.

    Raises:
        RequestError: no such release.
    """
    options = request.options(at)
    logs.findings.extend(newer_release_findings([request.release]))
    return load_with_findings(logs, options, logs.topic_names(request.topics_file))


def load_with_findings(logs: TopicLogs, options: LoadOptions, names: TopicNames) -> CoordinatorState:
    """Return the state of this load. Adds its findings, and those of all checksums, to `findings`."""
    fast = logs.fast_load()
    state = logs.load(replace(options, fast=fast, groups=selectable_groups(options.groups)), names)
    logs.look_for_damage(options.mode, fast, options.stop)
    logs.findings.extend(state.findings)
    return state.only(options.groups) if options.groups is not None else state


def with_lag(
    logs: TopicLogs, request: LoadRequest, at: Moment | None, end_offsets: EndOffsets | PathOrUri | None, *, grade_end: bool = False
) -> GradedState:
    """Return the state of `load_graded` with its table `lag`. At the end, the end offsets of a capture are known.

    Raises:
        RequestError: as `load_graded`; or the file with end offsets cannot be read.
    """
    from exhume.analysis.detectors.inputs import Inputs, read_offsets_file
    from exhume.analysis.lag import lag_of

    ends = read_offsets_file(Path(end_offsets)) if isinstance(end_offsets, str | os.PathLike) else end_offsets
    if ends is None and at is None:
        ends = Inputs().with_captured(logs.evidence.log_directories).end_offsets
    graded = load_graded(logs, request, at, grade_end=grade_end)
    graded.lag = lag_of(graded.state, ends or {})
    return graded


def load_graded(logs: TopicLogs, request: LoadRequest, at: Moment | None, *, grade_end: bool) -> GradedState:
    """Return the tables of the state with its grades: for a moment, and on request for the end.

    Raises:
        RequestError: no such release; or a group that is not in the state, and that did not exist by its grade.
    """
    state = load(logs, request, at)
    completeness = None
    if at is not None or grade_end:
        from exhume.analysis.grading import grade_groups

        completeness = grade_groups(logs.reader(), state)
    if request.groups is None:
        return GradedState(state, completeness, logs.findings)
    may_have_been: set[str] = set()
    if completeness is not None:
        may_have_been = set(completeness["group"].to_pylist())
        completeness = completeness.filter(pc.is_in(completeness["group"], value_set=pa.array(request.groups, pa.string())))
    unknown = sorted(set(request.groups) - may_have_been)
    try:
        refuse_unknown_groups(unknown, state)
    except RequestError:
        refuse_removed(logs, unknown)
        # Only a load of all groups knows similar names.
        refuse_unknown_groups(unknown, load(logs, replace(request, groups=None), at))
        raise
    return GradedState(state, completeness, logs.findings)


def diff(logs: TopicLogs, earlier: Moment | None, later: Moment | None, request: LoadRequest) -> pa.Table:
    """Return the differences between these moments, as `diff.DIFF`.

    Raises:
        RequestError: no such release; no earlier moment, one after the later one, or a group of neither moment.
    """
    from exhume.analysis.diff import diff_states

    names, options = logs.topic_names(request.topics_file), request.options()
    logs.findings.extend(newer_release_findings([request.release]))
    if earlier is None:
        raise RequestError("a difference needs an earlier moment", remedy="Name its record offset or its time")
    refuse_wrong_order(earlier, later)
    fast = logs.fast_load()
    whole = replace(options, groups=None, fast=fast)
    # The later one first: it knows every topic name of the earlier one, and a learned name is not a difference.
    after, before = (logs.load(replace(whole, at=at), names) for at in (later, earlier))
    logs.look_for_damage(options.mode, fast, options.stop)
    logs.findings.extend([*before.findings, *after.findings])
    _note_past(logs, {"earlier": before} | ({} if later is None else {"later": after}), options.groups)
    if options.groups is None:
        return diff_states(before, after)
    refuse_unknown_groups(options.groups, before, after)
    return diff_states(before.only(options.groups), after.only(options.groups))


def _note_past(logs: TopicLogs, states: Mapping[str, CoordinatorState], groups: Collection[str] | None) -> None:
    """Add findings about groups of these moments that the log may show in part. A difference may come from missing records then."""
    from exhume.analysis.completeness import past_findings
    from exhume.analysis.grading import Grading

    gradings = {name: Grading(state) for name, state in states.items()}
    logs.read(*gradings.values())
    for name, grading in gradings.items():
        logs.findings.extend(past_findings(grading.table(), groups, moment=f"at the {name} moment"))


def diff_with(logs: TopicLogs, other: TopicLogs, request: LoadRequest) -> pa.Table:
    """Return the differences between the ends of these logs and of the others, as `diff.DIFF`. Adds the findings of both.

    Raises:
        RequestError: no such release, or a group that neither copy has.
    """
    from exhume.analysis.diff import diff_states

    here, there = (load(each, request, None) for each in (logs, other))
    refuse_unknown_groups(request.groups or (), here, there)
    logs.findings.extend(other.findings)
    return diff_states(here, there)


def load_check(logs: TopicLogs, releases: Collection[str] | None, stop: Stop | None) -> pa.Table:
    """Return the result of a load by each of these releases (default: the newest of each span), as `load_check.LOAD_CHECK`."""
    from exhume.analysis.load_check import check_loads

    logs.findings.extend(newer_release_findings(releases or ()))
    return check_loads(logs.evidence.log_directories, list(releases or newest_of_each_line()), stop=stop, fast=logs.fast_load())


def expiry(logs: TopicLogs, retention: Retention, now_ms: int, groups: Collection[str] | None) -> Expiry:
    """Return what the expiry task removes from the memory after a strict load, if it next runs at `now_ms`.

    Raises:
        RequestError: a group that is not in memory.
    """
    from exhume.analysis.forecast import forecast_expiry

    profile, retention_ms = retention.profile, retention.retention_ms
    fast = logs.fast_load()
    loads = logs.load_partitions(LoadOptions(profile, view="in_memory", inputs=retention.inputs, fast=fast), logs.topic_names())
    logs.look_for_damage("strict", fast)
    for load in loads:
        logs.findings.extend(load.findings)
    answer = forecast_expiry(loads, profile, now_ms, retention_ms, groups=groups)
    if groups is not None and all(load.outcome in LOADED for load in loads):
        _refuse_unknown(logs, groups, answer.forecast, loads)
    logs.findings.extend(answer.findings)
    return answer


def _refuse_unknown(logs: TopicLogs, groups: Collection[str], forecast: pa.Table, loads: Sequence[PartitionLoad]) -> None:
    unknown = sorted(set(groups) - set(forecast["group"].to_pylist()))
    refuse_removed(logs, unknown)
    for group in unknown:
        held = [load.partition_state.whole() for load in loads]
        known = {name for partition_state in held for name in (*partition_state.groups, *(key[0] for key in partition_state.offsets))}
        raise RequestError(f"no group {group!r} in this state", remedy=near_by(group, known))
