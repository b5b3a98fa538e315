"""Ask an offsets topic for the tables of a report: each question once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.detectors.headlines import ranked
from exhume.analysis.growth import GrowthRow
from exhume.analysis.ownership import OWNERS
from exhume.analysis.rebalance_rows import REBALANCES, RebalanceRow
from exhume.analysis.reset_plan import ResetPlan, TakenBack
from exhume.arrow_rows import Origin
from exhume.codecs.record_types import OFFSET_COMMIT_TYPES
from exhume.errors import RequestError
from exhume.findings import Confidence, Findings, Severity
from exhume.report.request import MOST_GROUPS, ReportRequest
from exhume.topic import OffsetsTopic

#: The ways to a reset plan, in the order of the report.
PLANS: tuple[TakenBack, ...] = ("before_rewind", "lost")


class DiagnosisRow(TypedDict):
    """A row of `DIAGNOSIS` without the columns that a report does not show."""

    rank: int
    code: str
    severity: Severity
    confidence: Confidence
    offsets_partition: int | None
    group: str | None
    topic: str | None
    partition: int | None
    first_record_offset: int | None
    last_record_offset: int | None
    first_timestamp_ms: int | None
    last_timestamp_ms: int | None
    sentence: str
    not_excluded: str | None
    remedy: str | None
    because_of: int | None


def diagnosis_rows(diagnosis: pa.Table) -> list[DiagnosisRow]:
    """The rows of this `DIAGNOSIS`."""
    rows: list[DiagnosisRow] = diagnosis.select([*DiagnosisRow.__annotations__]).to_pylist()
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTables:
    """The tables of one group in one log, as the commands of these names show them.

    `verdicts` and `assigned` are those of the last assignment with a member. `plans` has the plans that restore an offset; `refused` says
    why there can be none.
    """

    group: str
    origin: Origin
    explanation: pa.Table
    history: pa.Table
    owners: pa.Table
    rebalances: pa.Table
    offsets: pa.Table
    verdicts: pa.Table | None
    assigned: pa.Table | None
    plans: Mapping[TakenBack, ResetPlan]
    refused: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTables:
    """All tables of a report: `diagnosis` as `DIAGNOSIS`, `growth` of all groups as `GROWTH`, `files` as `EVIDENCE_FILES`.

    `inspection` has the tables of `inspect` by name, `findings` the problems that the readers met.
    """

    request: ReportRequest
    diagnosis: pa.Table
    growth: pa.Table
    groups: Sequence[GroupTables]
    inspection: Mapping[str, pa.Table]
    files: pa.Table
    findings: Findings


def gather(topic: OffsetsTopic, request: ReportRequest) -> ReportTables:
    """Ask for the tables of this report.

    Raises:
        RequestError: a group without any record, which lists similar names; no such release.
    """
    inspection = topic.inspect().tables()
    growth = topic.growth("group").table
    diagnosis = _diagnosis(topic, request)
    groups = request.groups or tuple(_chosen(diagnosis, growth))
    return ReportTables(
        request=request,
        diagnosis=diagnosis,
        growth=growth,
        groups=[*_groups(topic, replace(request, groups=groups))],
        inspection=inspection,
        files=topic.files(),
        findings=topic.findings,
    )


def _diagnosis(topic: OffsetsTopic, request: ReportRequest) -> pa.Table:
    """The findings of the time range of the report, as rows only: as objects they take far more memory."""
    found = topic.diagnose(request.inputs, groups=request.groups or None, topics_file=request.topics_file)
    return ranked(Findings(each for each in found if request.holds(each.first_timestamp_ms, each.last_timestamp_ms)))


def _chosen(diagnosis: pa.Table, growth: pa.Table) -> list[str]:
    """The groups to draw if the request names none: first those with problems, then those with the most records."""
    rows: list[GrowthRow] = growth.to_pylist()
    known = [row["group"] for row in sorted(rows, key=lambda row: -row["records"]) if row["group"] is not None]
    shown = diagnosis.filter(pc.not_equal(diagnosis["confidence"], "undecidable"))
    troubled = [group for group in shown["group"].to_pylist() if group in set(known)]
    return [*dict.fromkeys([*troubled, *known])][:MOST_GROUPS]


def _groups(topic: OffsetsTopic, request: ReportRequest) -> Iterator[GroupTables]:
    histories = {group: topic.history(group, release=request.release) for group in request.groups}
    with_records = [group for group, history in histories.items() if _has_group_records(history)]
    owners = topic.owners(groups=with_records) if with_records else OWNERS.empty_table()
    rebalances = topic.rebalances(with_records) if with_records else REBALANCES.empty_table()
    offsets = topic.state(at_time_ms=request.to_time_ms, groups=request.groups, release=request.release).offsets
    for group, history in histories.items():
        explanation = topic.explain(
            group,
            at_time_ms=request.to_time_ms,
            retention_ms=request.inputs.retention_ms,
            release=request.release,
            topics_file=request.topics_file,
        )
        plans, refused = _plans(topic, group, request)
        origins = dict.fromkeys((row["replica"], row["offsets_partition"]) for row in explanation.to_pylist())
        for origin in origins:
            own_rebalances = _of(rebalances, group, origin)
            verdicts, assigned = _last_assignment(topic, group, origin, own_rebalances, request)
            yield GroupTables(
                group=group,
                origin=origin,
                explanation=_of(explanation, group, origin),
                history=_of(history, None, origin),
                owners=_of(owners, group, origin),
                rebalances=own_rebalances,
                offsets=_of(offsets, group, origin),
                verdicts=verdicts,
                assigned=assigned,
                plans=plans,
                refused=refused,
            )


def _has_group_records(history: pa.Table) -> bool:
    return any(number not in OFFSET_COMMIT_TYPES for number in history["record_type"].unique().to_pylist())


def _of(table: pa.Table, group: str | None, origin: Origin) -> pa.Table:
    """The rows of this group (None: all) in this log, in their order."""
    replica, offsets_partition = origin
    wanted = _is(table["replica"], replica), _is(table["offsets_partition"], offsets_partition)
    rows = table.filter(pc.and_(*wanted))
    return rows if group is None else rows.filter(pc.equal(rows["group"], group))


def _is(column: pa.ChunkedArray, value: object) -> pa.ChunkedArray:
    return pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), fill_value=False)


def _last_assignment(
    topic: OffsetsTopic, group: str, origin: Origin, rebalances: pa.Table, request: ReportRequest
) -> tuple[pa.Table | None, pa.Table | None]:
    """The verdict on the last assignment of the range that has a member, and its partitions."""
    rows: list[RebalanceRow] = [row for row in rebalances.to_pylist() if row["members"] and request.holds(row["timestamp_ms"], None)]
    if not rows or origin[1] is None:
        return None, None
    answer = topic.assignments(
        groups=[group], at_offset={origin[1]: rows[-1]["last_record_offset"]}, release=None, topics_file=request.topics_file
    )
    return _of(answer.verdicts, group, origin), _of(answer.partitions, group, origin)


def _plans(topic: OffsetsTopic, group: str, request: ReportRequest) -> tuple[dict[TakenBack, ResetPlan], str | None]:
    found: dict[TakenBack, ResetPlan] = {}
    try:
        for way in PLANS:
            plan = topic.reset_plan([group], taken_back=way, release=request.release)
            if plan.table.num_rows:
                found[way] = plan
    except RequestError as error:
        return {}, str(error)
    return found, None
