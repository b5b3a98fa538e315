"""States as plain values, by the local engine and by Spark, for comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import exhume
from exhume.findings import SCHEMA as FINDINGS
from exhume.replay.spark.state import StateFrames
from exhume.replay.spark.wide import plain_schema
from exhume.replay.state_tables import SCHEMAS
from tests.judges import corpus

if TYPE_CHECKING:
    import pyarrow as pa

State = Mapping[str, Counter[str]]


def some(turn: int, of: int) -> list[Path]:
    """A share of the bundled log directories."""
    return corpus.data_directories()[turn::of]


def locally(places: Path | str | Sequence[Path], **options: Any) -> State:
    """Every table and the findings of the local engine: how often there is each row."""
    with exhume.open(places) as topic:
        state = topic.state(**options)
        return {name: _rows(table) for name, table in state.tables.items()} | {"findings": _rows(topic.findings.to_table())}


def on_spark(state: StateFrames) -> State:
    """The same of Spark's."""
    tables = {name: frame.toArrow() for name, frame in state.items()}
    for name, table in tables.items():
        assert table.schema.names == plain_schema(FINDINGS if name == "findings" else SCHEMAS[name]).names
    return {name: _rows(table) for name, table in tables.items()}


def _rows(table: pa.Table) -> Counter[str]:
    table = table.cast(plain_schema(table.schema))
    return Counter(map(repr, table.to_pylist()))


def differences(found: State, expected: State) -> dict[str, Any]:
    """What is not the same, by table."""
    return {
        name: {"more": dict(found[name] - expected[name]), "missing": dict(expected[name] - found[name])}
        for name in expected
        if found[name] != expected[name]
    }
