"""Every table that an answer can have, by name, and its JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from exhume.analysis.assignment.differences import ASSIGNMENT_PARTITIONS
from exhume.analysis.assignment.verdicts import ASSIGNMENT_VERDICTS
from exhume.analysis.completeness import COMPLETENESS
from exhume.analysis.detectors.headlines import DIAGNOSIS
from exhume.analysis.diff import DIFF
from exhume.analysis.evidence_files import EVIDENCE_FILES
from exhume.analysis.explanation.page import EXPLANATION
from exhume.analysis.forecast import FORECAST, TOMBSTONES
from exhume.analysis.growth import COMPACTION, GROWTH
from exhume.analysis.history import HISTORY
from exhume.analysis.inspection import INSPECTION_TABLES
from exhume.analysis.lag import LAG
from exhume.analysis.ownership import OWNERS
from exhume.analysis.rebalance_rows import REBALANCES
from exhume.analysis.reset_plan import RESET_PLAN, RESET_RECORDS
from exhume.analysis.summary import GROUP_SUMMARY
from exhume.analysis.transactions import STABLE_OFFSETS, TRANSACTIONS
from exhume.analysis.why import WHY
from exhume.codecs import schemas
from exhume.codecs.decoded_tables import DUMP
from exhume.findings import SCHEMA as FINDINGS
from exhume.moments import is_moment
from exhume.replay.state_tables import SCHEMAS

#: A value of JSON.
Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

#: The version of all tables: it grows when a column goes or changes its meaning. A new column does not change it.
SCHEMA_VERSION = 1
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def table_schemas() -> dict[str, pa.Schema]:
    """Return the Arrow schema of every table of docs/tables.md, by its name there."""
    return {
        **SCHEMAS,
        "groups_summary": GROUP_SUMMARY,
        "lag": LAG,
        "completeness": COMPLETENESS,
        "diff": DIFF,
        "history": HISTORY,
        "rebalances": REBALANCES,
        "owners": OWNERS,
        "verdicts": ASSIGNMENT_VERDICTS,
        "assigned_partitions": ASSIGNMENT_PARTITIONS,
        "forecast": FORECAST,
        "tombstones": TOMBSTONES,
        "why": WHY,
        "explanation": EXPLANATION,
        "reset_plan": RESET_PLAN,
        "reset_records": RESET_RECORDS,
        "growth": GROWTH,
        "compaction": COMPACTION,
        "transactions": TRANSACTIONS,
        "stable_offsets": STABLE_OFFSETS,
        **INSPECTION_TABLES,
        "files": EVIDENCE_FILES,
        "batches": schemas.BATCHES,
        "records": schemas.RECORDS,
        "dump": DUMP,
        "end_txn_markers": schemas.END_TXN_MARKERS,
        "findings": FINDINGS,
        # What `exhume diagnose` writes.
        "diagnosis": DIAGNOSIS,
        **schemas.decoded(),
    }


def json_schema(name: str, schema: pa.Schema) -> dict[str, Json]:
    """Return the JSON Schema of one row of this table, as `--output json` and `jsonl` write it."""
    return {"$schema": DIALECT, "title": name, **_object(list(schema), is_table=True)}


def _object(fields: list[pa.Field], *, is_table: bool = False) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": {field.name: _value(field, is_table=is_table) for field in fields},
        "required": [field.name for field in fields],
        "additionalProperties": False,
    }


def _value(field: pa.Field, *, is_table: bool = False) -> Json:
    """Return the schema of a value that may be null."""
    data_type = field.type
    if isinstance(data_type, pa.JsonType):
        return {"description": "JSON"}
    found: Mapping[str, Json]
    if pat.is_boolean(data_type):
        found = {"type": "boolean"}
    elif pat.is_integer(data_type):
        found = _integer(data_type)
        if is_table and is_moment(field.name):
            found = {**found, "description": "milliseconds since 1970-01-01T00:00:00Z"}
    elif pat.is_floating(data_type):
        # JSON has no such numbers: they are texts.
        return {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity", None]}]}
    elif pat.is_binary(data_type):
        found = {"type": "string", "contentEncoding": "base64"}
    elif pat.is_list(data_type):
        found = {"type": "array", "items": _value(data_type.value_field)}
    elif pat.is_struct(data_type):
        found = _object(list(data_type))
    else:
        found = {"type": "string"}
    return {**found, "type": [found["type"], "null"]}


def _integer(data_type: pa.DataType) -> dict[str, Json]:
    bits = data_type.bit_width
    if pat.is_unsigned_integer(data_type):
        return {"type": "integer", "minimum": 0, "maximum": (1 << bits) - 1}
    return {"type": "integer", "minimum": -(1 << bits - 1), "maximum": (1 << bits - 1) - 1}
