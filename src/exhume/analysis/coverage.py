"""How much of each log is there: what an answer about the past has to know before it says that something never was."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from exhume.arrow_rows import Origin, table_of

#: Of a log: how many of its record offsets, from 0 to the end of its last batch, no record holds; one row per offsets partition.
COVERAGE = pa.schema(
    [
        ("replica", pa.string()),
        ("offsets_partition", pa.int32()),
        ("end_offset", pa.int64()),
        ("missing_offsets", pa.int64()),
        ("has_damage", pa.bool_()),
    ]
)
#: What a log without a batch covers.
NOTHING_COVERED: dict[str, Any] = {"end_offset": 0, "missing_offsets": 0, "has_damage": False}


def coverage_of(batches: pa.Table) -> pa.Table:
    """The `COVERAGE` of these `schemas.BATCHES`. A batch whose offsets go back covers nothing new."""
    rows: dict[Origin, dict[str, Any]] = {}
    columns = ["replica", "offsets_partition", "base_offset", "last_offset", "record_count", "crc_status"]
    for batch in batches.select(columns).to_pylist():
        origin = (batch["replica"], batch["offsets_partition"])
        row = rows.setdefault(origin, {"replica": origin[0], "offsets_partition": origin[1], **NOTHING_COVERED})
        row["has_damage"] |= batch["crc_status"] in ("mismatch", "unreadable")
        end_offset = batch["last_offset"] + 1
        if end_offset > row["end_offset"]:
            new = end_offset - row["end_offset"]
            row["missing_offsets"] += max(new - (batch["record_count"] or 0), 0)
            row["end_offset"] = end_offset
    return table_of(COVERAGE, list(rows.values()))
