"""Tables in slices of whole groups."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.analysis.group_slices import GROUP_KEY, group_slices
from tests import strategies

_SCHEMA = pa.schema([("replica", pa.string()), ("offsets_partition", pa.int32()), ("group", pa.string()), ("value", pa.int64())])
_ROWS = st.lists(st.tuples(st.sampled_from([None, "a"]), st.none() | st.integers(0, 1), st.sampled_from("xyz")), max_size=20)


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(_SCHEMA.names, (*row, number), strict=True)) for number, row in enumerate(rows)], _SCHEMA)


def _in_order(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: (row["replica"] or "", row["group"], _number(row["offsets_partition"])))


def _number(offsets_partition: int | None) -> int:
    return -1 if offsets_partition is None else offsets_partition


def _rows_of_groups(tables: dict[str, pa.Table]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in GROUP_KEY) for table in tables.values() for row in table.to_pylist())


@strategies.examples(60)
@given(offsets=_ROWS, members=_ROWS, most_rows=st.integers(1, 8))
def test_slices_have_every_row_in_order_and_each_group_once(
    offsets: list[tuple[Any, ...]], members: list[tuple[Any, ...]], most_rows: int
) -> None:
    whole = {"offsets": _table(offsets), "members": _table(members)}

    slices = [*group_slices(whole, most_rows)]

    for name, table in whole.items():
        assert [row for each in slices for row in each[name].to_pylist()] == _in_order(table)
    counts = [_rows_of_groups(each) for each in slices]
    assert sum(map(len, counts)) == len(_rows_of_groups(whole))
    assert all(count.total() - max(count.values()) < most_rows for count in counts)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_slice_has_as_many_groups_as_fit(rows: int) -> None:
    table = _table([(None, 0, name) for name in "abcdef"])

    assert [each["offsets"].num_rows for each in group_slices({"offsets": table}, rows)] == [rows] * (6 // rows)
