"""A group in plain sentences: the answers of other methods about it, on one page.

Functions import the modules that take long to import.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from exhume.analysis.completeness import grade_groups
from exhume.analysis.forecast import forecast
from exhume.analysis.group_timeline import group_timeline
from exhume.analysis.history import group_history
from exhume.analysis.log_extent import LogExtents
from exhume.analysis.why import explain as answer_why
from exhume.arrow_rows import Origin
from exhume.replay.local import state_of_loads
from exhume.replay.moment import Moment
from exhume.replay.partition_load import LoadOptions, PartitionLoad
from exhume.replay.state import CoordinatorState
from exhume.replay.topic_names import TopicNames
from exhume.topic.diagnosis import condense_for
from exhume.topic.history import has_removals
from exhume.topic.logs import TopicLogs
from exhume.topic.retention import Retention


@dataclass(frozen=True, slots=True)
class ExplanationRequest:
    """A group, the moment and the rules to explain it by; `moment` are the arguments of a command that name the same moment."""

    group: str
    at: Moment | None
    moment: tuple[str, ...]
    retention: Retention


def explain(logs: TopicLogs, request: ExplanationRequest, names: TopicNames, places: Sequence[str]) -> pa.Table:
    """The page about a group, as `explanation.page.EXPLANATION`; its commands read `places`.

    Raises:
        RequestError: no record of this group; lists similar names.
    """
    from exhume.analysis.explanation.evidence import Gathered, cuts, facts_of, history_until, noting
    from exhume.analysis.explanation.page import pages

    group, at, retention = request.group, request.at, request.retention
    fast = logs.fast_load()
    loaded = _load(logs, LoadOptions(retention.profile, inputs=retention.inputs, at=at, fast=fast), names)
    state, whole = loaded.state, loaded.of_whole_log()
    extents = logs.extents()
    records: list[pa.RecordBatch] = []
    history = group_history(noting(logs.batches_about(group, fast), group, records), whole, names, group, lambda: extents)
    origins = list(dict.fromkeys((row["replica"], row["offsets_partition"]) for row in history.to_pylist()))
    ends = cuts(loaded.up_to_moment())
    history = history_until(history, ends)
    end_times_ms = _end_times_ms(logs, origins, ends)
    held = [load.with_state_in_memory() for load in loaded.loads]
    expected = forecast(held, retention.profile, _newest_ms(end_times_ms, extents), retention.retention_ms, groups=[group])
    diagnosis = condense_for(logs, group, names, retention, with_removals=has_removals(history))
    judgements = diagnosis.judgements()
    why = answer_why(group, history, state, retention.profile, now=expected, judgements=judgements, extents=extents)
    completeness = None if at is None else grade_groups(logs.reader(), state)
    gathered = Gathered(
        group=group,
        state=state,
        history=history,
        ends=ends,
        memberships=[*group_timeline(records, names)],
        why=why,
        forecast=expected,
        completeness=completeness,
        extents=extents,
        end_times_ms=end_times_ms,
        findings=logs.findings,
        diagnosed=diagnosis.findings(),
        profile=retention.profile,
        retention_ms=retention.retention_ms,
        release=retention.release,
        moment=request.moment,
    )
    return pages(facts_of(gathered, origins), places)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A strict load up to a moment, and loads that go further where it stopped."""

    logs: TopicLogs
    options: LoadOptions
    names: TopicNames
    loads: Sequence[PartitionLoad]
    state: CoordinatorState

    @property
    def _is_read_through(self) -> bool:
        return {load.outcome for load in self.loads} == {"loaded"}

    def of_whole_log(self) -> CoordinatorState:
        """The state of a lenient load at the end of the logs."""
        if self.options.at is None and self._is_read_through and not self.logs.findings.has_damage:
            # A lenient load of such a log gives the same state.
            return self.state
        return self.logs.load(replace(self.options, mode="lenient", at=None), self.names)

    def up_to_moment(self) -> CoordinatorState:
        """The state at the moment, from a load that reached it."""
        if self.options.at is None or self._is_read_through:
            return self.state
        return self.logs.load(replace(self.options, mode="lenient"), self.names)


def _load(logs: TopicLogs, options: LoadOptions, names: TopicNames) -> _Loaded:
    loads = logs.load_partitions(options, names)
    state = state_of_loads(loads, options, names)
    logs.look_for_damage("strict", options.fast)
    logs.findings.extend(state.findings)
    return _Loaded(logs, options, names, loads, state)


def _end_times_ms(logs: TopicLogs, origins: Sequence[Origin], ends: Mapping[Origin, int | None]) -> dict[Origin, int | None]:
    """The time of the last record up to the moment, of those of these logs that go on after it."""
    known = {origin: end for origin, end in ends.items() if origin in origins and end is not None and end >= 0}
    return {origin: logs.times_of(end, origin[1]).get(str(origin[0])) for origin, end in known.items()}


def _newest_ms(end_times_ms: Mapping[Origin, int | None], extents: LogExtents) -> int:
    times_ms = (*end_times_ms.values(), *(extent.last_timestamp_ms for extent in extents.values()))
    return max((time_ms for time_ms in times_ms if time_ms is not None), default=0)
