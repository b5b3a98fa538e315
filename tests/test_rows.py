"""Rows between rooms: every documented table is declared by the type of its rows, and its rows are of that type."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import NoneType
from typing import Any, get_args, get_type_hints, is_typeddict

import pyarrow as pa
import pytest

import exhume
from exhume.analysis.assignment.differences import ASSIGNMENT_PARTITIONS
from exhume.analysis.assignment.verdicts import ASSIGNMENT_VERDICTS
from exhume.analysis.completeness import COMPLETENESS
from exhume.analysis.diff import DIFF
from exhume.analysis.evidence_files import EVIDENCE_FILES
from exhume.analysis.explanation.page import EXPLANATION
from exhume.analysis.forecast import FORECAST, TOMBSTONES
from exhume.analysis.growth import COMPACTION, GROWTH
from exhume.analysis.history import HISTORY
from exhume.analysis.inspection import INSPECTION_TABLES
from exhume.analysis.lag import LAG
from exhume.analysis.load_check import LOAD_CHECK, load_matrix
from exhume.analysis.ownership import OWNERS
from exhume.analysis.rebalance_rows import REBALANCES
from exhume.analysis.summary import summarize_assignments, summarize_groups, summarize_record_types
from exhume.analysis.why import WHY
from exhume.arrow_rows import schema_of
from exhume.cli.demo import DEMO_LOG
from exhume.codecs import schemas
from exhume.codecs.annotation import ANNOTATION
from exhume.codecs.decoded_tables import DUMP
from exhume.findings import SCHEMA as FINDINGS
from exhume.findings import Finding
from exhume.fixtures.catalogue import CATALOGUE
from exhume.replay.state_tables import SCHEMAS

GROUP = "orders-enricher"


@cache
def row_types() -> list[type]:
    """The type of rows of every table, and of parts of rows."""
    for module in pkgutil.walk_packages(exhume.__path__, "exhume."):
        if not module.name.startswith(("exhume.__main__", "exhume.replay.spark", "exhume.spark")):
            import_module(module.name)
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("exhume.")]
    return [each for module in modules for each in vars(module).values() if is_typeddict(each) and each.__module__ == module.__name__]


def schemas_by_row_type() -> Iterator[tuple[pa.Schema, type]]:
    for each in row_types():
        try:
            yield schema_of(each), each
        except (KeyError, TypeError):
            # Keywords of functions are no rows.
            continue


DOCUMENTED = {
    **SCHEMAS,
    **{name: schema for name, schema in INSPECTION_TABLES.items() if name != "findings"},
    "completeness": COMPLETENESS,
    "diff": DIFF,
    "lag": LAG,
    "history": HISTORY,
    "rebalances": REBALANCES,
    "owners": OWNERS,
    "verdicts": ASSIGNMENT_VERDICTS,
    "assigned partitions": ASSIGNMENT_PARTITIONS,
    "forecast": FORECAST,
    "tombstones": TOMBSTONES,
    "why": WHY,
    "explanation": EXPLANATION,
    "growth": GROWTH,
    "compaction": COMPACTION,
    "load check": LOAD_CHECK,
    "files": EVIDENCE_FILES,
    "batches": schemas.BATCHES,
    "records": schemas.RECORDS,
    "dump": DUMP,
    "annotation": ANNOTATION,
    "end_txn_markers": schemas.END_TXN_MARKERS,
    "catalogue": CATALOGUE,
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_documented_table_is_that_of_a_type_of_rows(name: str) -> None:
    assert any(schema.equals(DOCUMENTED[name]) for schema, _ in schemas_by_row_type())


def test_a_finding_has_the_columns_of_its_table() -> None:
    types = {name: _without_none(each) for name, each in get_type_hints(Finding).items() if name != "is_damage"}
    assert set(types) == set(FINDINGS.names)
    assert {name for name, each in types.items() if each is int} == {field.name for field in FINDINGS if pa.types.is_integer(field.type)}


def tables() -> Iterator[pa.Table]:
    """Every table of the bundled log that takes no other input."""
    with exhume.open(DEMO_LOG) as topic:
        state = topic.state()
        yield from (state.tables[name] for name in SCHEMAS)
        yield from (summarize_groups(state), summarize_assignments(state))
        inspection = topic.inspect().tables()
        yield from (table for name, table in inspection.items() if name != "findings")
        yield summarize_record_types(inspection["record_types"])
        readers = (topic.batches(), topic.records(), topic.dump(), topic.annotate(), topic.end_txn_markers())
        yield from (reader.read_all() for reader in readers)
        yield from (topic.rebalances(), topic.owners(), topic.history(GROUP), topic.why(GROUP), topic.explain(GROUP))
        past = topic.state(at_time_ms=1_795_230_840_000)
        yield topic.lag({("orders", 0): 11})
        yield from (past.loads, topic.completeness(past), topic.diff(from_time_ms=1_795_230_840_000))
        assignments = topic.assignments(every=True)
        yield from (assignments.verdicts, assignments.partitions)
        transactions = topic.transactions(with_finished=True)
        yield from (transactions.table, transactions.partitions)
        for measure in ("group", "hour"):
            growth = topic.growth(measure)
            yield from (growth.table, growth.partitions)
        expiry = topic.expiry(now_ms=1_900_000_000_000)
        yield from (expiry.forecast, expiry.tombstones)
        checked = topic.load_check(["2.8.2", "4.3.0"])
        yield from (checked, load_matrix(checked))


def test_columns_that_cannot_be_null_have_no_nulls() -> None:
    types = list(schemas_by_row_type())
    seen: set[str] = set()
    for table in tables():
        matching = [row for schema, row in types if schema.equals(table.schema)]
        for row in matching:
            seen.add(row.__name__)
            nulls = {name: table[name].null_count for name, each in get_type_hints(row).items() if not _may_be_null(each)}
            assert not any(nulls.values()), (row.__name__, nulls)
    assert {"GroupRow", "OwnerRow", "RebalanceRow", "HistoryRow", "WhyRow", "GrowthRow", "ForecastRow", "DumpRow", "BatchRow"} <= seen


def _may_be_null(each: Any) -> bool:
    return NoneType in get_args(each)


def _without_none(each: Any) -> Any:
    return next((part for part in get_args(each) if part is not NoneType), each) if NoneType in get_args(each) else each
