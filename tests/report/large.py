"""The tables of a large report: a group that rebalances for days."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from exhume.analysis.detectors.headlines import ranked
from exhume.analysis.evidence_files import EVIDENCE_FILES
from exhume.analysis.explanation.page import EXPLANATION
from exhume.analysis.growth import GROWTH
from exhume.analysis.history import HISTORY
from exhume.analysis.inspection import INSPECTION_TABLES
from exhume.analysis.ownership import OWNERS
from exhume.analysis.rebalance_rows import REBALANCES
from exhume.findings import Findings
from exhume.replay.state_tables import SCHEMAS
from exhume.report import ReportRequest
from exhume.report.gather import GroupTables, ReportTables

BEGIN_MS, STEP_MS, MEMBERS, MOVED = 1_700_000_000_000, 20_000, 20, 30


def table(schema: pa.Schema, count: int, **columns: Any) -> pa.Table:
    """A table with these columns: sequences, or one value for all rows; the others are null."""
    return pa.table([_column(field.type, count, columns.get(field.name)) for field in schema], schema=schema)


def _column(data_type: pa.DataType, count: int, value: Any) -> pa.Array:
    if isinstance(value, np.ndarray | pa.Array | list):
        return pa.array(value, data_type)
    return pa.nulls(count, data_type) if value is None else pa.repeat(pa.scalar(value, data_type), count)


def large_tables(*, rebalances: int, partitions: int) -> ReportTables:
    """A group in which each rebalance moves some partitions, and which commits each partition a hundred times."""
    of_log = {"replica": "1", "offsets_partition": 0, "group": "busy"}
    numbers = np.arange(rebalances)
    group = GroupTables(
        group="busy",
        origin=("1", 0),
        explanation=EXPLANATION.empty_table(),
        history=_history(rebalances, partitions),
        owners=_owners(of_log, rebalances, partitions),
        rebalances=table(
            REBALANCES,
            rebalances,
            **of_log,
            record_offset=numbers * 1000,
            last_record_offset=numbers * 1000,
            timestamp_ms=BEGIN_MS + numbers * STEP_MS,
            group_type="classic",
            event="rebalance",
            causes=[["member_left"], ["member_joined"]] * (rebalances // 2),
            generation=numbers + 1,
            members=MEMBERS,
            joined_clients=[[f"client-{number % MEMBERS}@10.0.0.{number % MEMBERS}"] for number in range(rebalances)],
            partitions_moved=MOVED,
            is_storm=True,
            is_complete=True,
        ),
        offsets=SCHEMAS["offsets"].empty_table(),
        verdicts=None,
        assigned=None,
        plans={},
        refused=None,
    )
    return ReportTables(
        request=ReportRequest(groups=("busy",)),
        diagnosis=ranked(Findings()),
        growth=GROWTH.empty_table(),
        groups=[group],
        inspection={name: schema.empty_table() for name, schema in INSPECTION_TABLES.items()},
        files=EVIDENCE_FILES.empty_table(),
        findings=Findings(),
    )


def _owners(of_log: dict[str, Any], rebalances: int, partitions: int) -> pa.Table:
    """Each rebalance ends the intervals of some partitions, and begins new ones."""
    rank = np.arange(rebalances * MOVED)
    step, partition = rank // MOVED, (rank * 7) % partitions
    order = np.lexsort((step, partition))
    step, partition = step[order], partition[order]
    is_last = np.append(partition[1:] != partition[:-1], True)
    end = np.where(is_last, rebalances, np.append(step[1:], 0))
    owner = (partition + step) % MEMBERS
    ids: Sequence[str] = [f"client-{number}-id" for number in range(MEMBERS)]
    hosts = [f"/10.0.0.{number}" for number in range(MEMBERS)]
    return table(
        OWNERS,
        len(step),
        **of_log,
        group_type="classic",
        topic="events",
        partition=partition,
        from_record_offset=step * 1000,
        to_record_offset=pa.array(end * 1000, mask=is_last),
        from_timestamp_ms=BEGIN_MS + step * STEP_MS,
        to_timestamp_ms=BEGIN_MS + end * STEP_MS,
        holding="assigned",
        member_id=pa.array(ids).take(pa.array(owner)),
        client_id=pa.array([each.removesuffix("-id") for each in ids]).take(pa.array(owner)),
        client_host=pa.array(hosts).take(pa.array(owner)),
        generation=step + 1,
        began="then",
        overlaps=pa.array([[]] * len(step), pa.list_(pa.string())),
    )


def _history(rebalances: int, partitions: int) -> pa.Table:
    each = 100
    rank = np.arange(each * partitions)
    partition, number = rank % partitions, rank // partitions
    return table(
        HISTORY,
        len(rank),
        replica="1",
        offsets_partition=0,
        record_offset=rank,
        timestamp_ms=BEGIN_MS + number * (rebalances * STEP_MS // each),
        record_type=1,
        type="offset_commit",
        topic="events",
        partition=partition,
        is_tombstone=False,
        committed_offset=number * 500 - np.where(number == 60, 9_000, 0),
        fate="superseded",
        committer="owner",
        committer_confidence="likely",
    )
