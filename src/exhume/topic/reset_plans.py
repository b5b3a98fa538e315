"""Plans that reset groups to offsets that they had before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from exhume.analysis.grading import Grading
from exhume.analysis.positions import Position, positions_before_rewinds, positions_lost, positions_of
from exhume.analysis.reset_plan import ResetPlan, TakenBack, past_findings, plan_reset
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
    if isinstance(to, Moment):
        past = load_with_findings(logs, replace(options, at=to), logs.topic_names())
        for group in set(groups) - {name for state in (past, newest) for name in _named_in(state)}:
            history(logs, group, (None, None), profile)
        wanted = positions_of(past, "it was so at the moment")
        loads: list[LoadRow] = past.loads.to_pylist()
        last = {(row["replica"], row["offsets_partition"]): row["last_record_offset"] for row in loads}
        grading = Grading(past)
        times = RecordTimes({origin: offset for origin, offset in last.items() if offset is not None})
        logs.read(grading, times)
        found = times.by_log()
        cuts = {origin: (offset, found.get(origin)) for origin, offset in last.items()}
        logs.findings.extend(past_findings(groups, grading.table()))
    else:
        histories = {group: history(logs, group, (None, None), profile) for group in dict.fromkeys(groups)}
        wanted = [position for group, records in histories.items() for position in _taken_back(to, group, records, newest, profile)]
    answer = plan_reset(
        groups, wanted, newest, now_ms=now_ms, cuts=cuts, include_pending=include_pending, never_back=not isinstance(to, Moment)
    )
    logs.findings.extend(answer.findings)
    return answer


def _taken_back(way: TakenBack, group: str, records: pa.Table, newest: CoordinatorState, profile: BrokerProfile) -> Iterable[Position]:
    by_producer_id = profile.coordinator == "java"
    if way == "before_rewind":
        return positions_before_rewinds(group, records, by_producer_id=by_producer_id)
    return positions_lost(group, records, newest, by_producer_id=by_producer_id)


def _named_in(state: CoordinatorState) -> set[str]:
    return {name for table in (state.groups, state.offsets, state.pending_offsets) for name in table["group"].to_pylist()}
