"""Differences in columns against differences row by row: random states, and moments of the logs of real brokers."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import exhume
from exhume.analysis.diff import COMPARED, diff_states
from exhume.findings import Findings
from exhume.replay.state import CoordinatorState, LazyTables
from exhume.replay.state_tables import SCHEMAS, table
from tests.judges import corpus
from tests.naive import diff as naive
from tests.strategies import times

#: Texts that are ordered one way by code points, another by UTF-16; and such that JSON has to escape.
TEXTS = (None, "", "a", "b", "ab", "\U0001f600", "\uffff", "\xe9", "\x00", 'say "so"\n', "\u2028")
NUMBERS = (None, -1, 0, 1, 2)


def anything(random_of: random.Random, data_type: pa.DataType) -> Any:
    """A value of this type out of a few, so that most meet again on the other side."""
    if pa.types.is_struct(data_type):
        return random_of.choice([None, {field.name: anything(random_of, field.type) for field in data_type}])
    if pa.types.is_list(data_type):
        return random_of.choice([None, [anything(random_of, data_type.value_type) for _ in range(random_of.randrange(3))]])
    if pa.types.is_boolean(data_type):
        return random_of.choice([None, True, False])
    if pa.types.is_integer(data_type):
        most = 2 ** (data_type.bit_width - 1)
        return random_of.choice([*NUMBERS, most - 1, -most])
    if pa.types.is_binary(data_type):
        return random_of.choice([None, b"", b"\xff", b"a"])
    if isinstance(data_type, pa.JsonType):
        return random_of.choice([None, "{}", '{"a":1}'])
    return random_of.choice(TEXTS)


def row_of(random_of: random.Random, schema: pa.Schema) -> dict[str, Any]:
    return {field.name: anything(random_of, field.type) for field in schema}


def state_of(tables: dict[str, list[dict[str, Any]]], random_of: random.Random) -> CoordinatorState:
    """A state with these rows, which lie in chunks."""

    def made(name: str) -> pa.Table:
        cut = random_of.randrange(len(tables[name]) + 1)
        return pa.concat_tables([table(name, rows) for rows in (tables[name][:cut], tables[name][cut:])])

    done = {name: made(name) for name in tables}
    return CoordinatorState("4.3.0", "strict", LazyTables({name: lambda _, name=name: done[name] for name in done}), Findings())  # type: ignore[misc]


def changed(random_of: random.Random, name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """These rows with some left out, some other, some new, in another order."""
    schema = SCHEMAS[name]
    left = []
    for row in rows:
        fate = random_of.random()
        if fate < 0.2:
            continue
        column = random_of.choice(schema)
        left.append(row if fate < 0.6 else row | {column.name: anything(random_of, column.type)})
    left += [row_of(random_of, schema) for _ in range(random_of.randrange(3))]
    random_of.shuffle(left)
    return left


@pytest.mark.parametrize("seed", range(times(60)))
def test_random_states_differ_as_they_do_row_by_row(seed: int) -> None:
    random_of = random.Random(seed)
    rows = {name: [row_of(random_of, SCHEMAS[name]) for _ in range(random_of.randrange(40))] for name in COMPARED}
    if seed % 2:
        rows["loads"] = [row | {"replica": None} for row in rows["loads"]]
    others = {name: changed(random_of, name, rows[name]) for name in rows}
    if seed % 2:
        others["loads"] = [row | {"replica": "one"} for row in others["loads"]]
    before, after = state_of(rows, random_of), state_of(others, random_of)

    found = diff_states(before, after)

    assert found.num_rows
    assert found.to_pylist() == naive.diff_states(before, after).to_pylist()
    assert found.schema == naive.diff_states(before, after).schema
    assert diff_states(before, before).num_rows == 0


def test_a_key_of_many_columns_with_many_values_is_told_apart() -> None:
    """The product of what each column can be is beyond 64 bits."""
    random_of = random.Random(1)
    rows = [
        {name: random_of.randrange(2**31) if name == "partition" else str(random_of.random()) for name in COMPARED["assignments"].key}
        for _ in range(3000)
    ]
    no_rows: dict[str, list[dict[str, Any]]] = {name: [] for name in COMPARED}
    before = state_of(no_rows | {"assignments": rows}, random_of)
    after = state_of(no_rows | {"assignments": changed(random_of, "assignments", rows)}, random_of)

    assert diff_states(before, after).to_pylist() == naive.diff_states(before, after).to_pylist()


@pytest.mark.parametrize(
    "story", ["2.8.2-lifecycle", "3.9.1-transactions-new", "4.0.0-conversion", "4.2.1-share-groups", "4.3.0-streams-groups"]
)
def test_moments_of_real_logs_differ_as_they_do_row_by_row(story: str) -> None:
    with exhume.open(corpus.BUNDLED / story / "data") as topic:
        end = topic.state()
        lasts = dict(zip(end.loads["offsets_partition"].to_pylist(), end.loads["last_record_offset"].to_pylist(), strict=True))
        moments = [
            topic.state(at_offset={partition: last * part // 4 for partition, last in lasts.items() if last}) for part in (0, 1, 2, 3)
        ]
    seen = 0
    for before, after in [*zip(moments, [*moments[1:], end], strict=True), (end, moments[0])]:
        found = diff_states(before, after)
        assert found.equals(naive.diff_states(before, after))
        seen += found.num_rows
    assert seen
