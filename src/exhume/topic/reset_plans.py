"""Plans that reset groups to offsets that they had before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from exhume.analysis.completeness import past_findings
from exhume.analysis.grading import Grading
from exhume.analysis.positions import Position, positions_before_rewinds, positions_lost, positions_of
from exhume.analysis.reset_plan import ResetPlan, TakenBack, plan_reset
from exhume.arrow_rows import Origin
from exhume.codecs.log_pass import RecordTimes
from exhume.replay.moment import Moment
from exhume.replay.partition_load import LoadOptions
from exhume.replay.profiles import BrokerProfile
from exhume.replay.state import CoordinatorState
from exhume.replay.state_tables import LoadRow
from exhume.topic.logs import TopicLogs
from exhume.topic.one_group import history
from exhume.topic.states import load_with_findings

#: The last record up to a moment and its time, by replica and offsets partition.
Cuts = dict[Origin, tuple[int | None, int | None]]


def plan(
    logs: TopicLogs,
    groups: Sequence[str],
    to: Moment | TakenBack,
    profile: BrokerProfile,
    *,
    include_pending: bool,
    now_ms: int,
) -> ResetPlan:
    """Return a plan that resets these groups to a moment, or to the offsets before they were set back or removed.

    Raises:
        RequestError: a group that has no record.
    """
    options = LoadOptions(profile, groups=groups)
    newest = load_with_findings(logs, options, logs.topic_names())
    cuts: Cuts | None = None
    doubtful: set[str] = set()
    if isinstance(to, Moment):
        past = load_with_findings(logs, replace(options, at=to), logs.topic_names())
        places = _places_of(past, newest)
        for group in set(groups) - places.keys():
            records = history(logs, group, (None, None), profile).select(["replica", "offsets_partition"])
            places[group] = {(row["replica"], row["offsets_partition"]) for row in records.to_pylist()}
        loads: list[LoadRow] = past.loads.to_pylist()
        last = {(row["replica"], row["offsets_partition"]): row["last_record_offset"] for row in loads}
        grading = Grading(past)
        times = RecordTimes({origin: offset for origin, offset in last.items() if offset is not None})
        logs.read(grading, times)
        found = times.by_log()
        cuts = {origin: (offset, found.get(origin)) for origin, offset in last.items()}
        grades = grading.table({origin: [group for group in groups if origin in places[group]] for origin in last})
        doubtful = {row["group"] for row in grades.to_pylist() if row["grade"] != "certain"}
        unknown = {row["group"] for row in grades.to_pylist() if row["grade"] == "unknown"}
        doubt = "the log shows it so at the moment, and may lack records that changed it"
        positions = positions_of(past, "it was so at the moment")
        is_doubted = [each.group in unknown and each.committed_offset is not None for each in positions]
        wanted = [replace(each, reason=doubt) if is_doubtful else each for each, is_doubtful in zip(positions, is_doubted, strict=True)]
        logs.findings.extend(past_findings(grades, groups, is_damage=True))
    else:
        histories = {group: history(logs, group, (None, None), profile) for group in dict.fromkeys(groups)}
        wanted = [position for group, records in histories.items() for position in _taken_back(to, group, records, newest, profile)]
    answer = plan_reset(
        groups,
        wanted,
        newest,
        now_ms=now_ms,
        cuts=cuts,
        doubtful=doubtful,
        include_pending=include_pending,
        never_back=not isinstance(to, Moment),
    )
    logs.findings.extend(answer.findings)
    return answer


def _taken_back(way: TakenBack, group: str, records: pa.Table, newest: CoordinatorState, profile: BrokerProfile) -> Iterable[Position]:
    by_producer_id = profile.coordinator == "java"
    if way == "before_rewind":
        return positions_before_rewinds(group, records, by_producer_id=by_producer_id)
    return positions_lost(group, records, newest, by_producer_id=by_producer_id)


def _places_of(*states: CoordinatorState) -> dict[str, set[Origin]]:
    """Return the logs that have each group of these states."""
    found: dict[str, set[Origin]] = {}
    for state in states:
        for table in (state.groups, state.offsets, state.pending_offsets):
            for row in table.select(["replica", "offsets_partition", "group"]).to_pylist():
                found.setdefault(row["group"], set()).add((row["replica"], row["offsets_partition"]))
    return found
