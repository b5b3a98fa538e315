"""Rows by key: as Arrow's own `group_by` groups them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exhume.analysis.number_columns import RowGroups
from exhume.int64 import LARGEST_INT64, LEAST_INT64

_SCHEMA = pa.schema([("group", pa.string()), ("partition", pa.int32()), ("time_ms", pa.int64())])
_TIMES = st.none() | st.integers(-3, 3) | st.sampled_from([LEAST_INT64, LARGEST_INT64])
_ROWS = st.lists(st.tuples(st.sampled_from([None, "", "a", "b"]), st.none() | st.integers(-1, 2), _TIMES), max_size=30)


@settings(deadline=None)
@given(rows=_ROWS, cut=st.integers(0, 30))
def test_rows_are_grouped_as_arrow_groups_them(rows: list[tuple[str | None, int | None, int | None]], cut: int) -> None:
    parts = [
        pa.Table.from_pylist([dict(zip(_SCHEMA.names, row, strict=True)) for row in part], _SCHEMA) for part in (rows[:cut], rows[cut:])
    ]
    table = pa.concat_tables(parts)
    found = RowGroups(table, ("group", "partition"))
    expected = table.group_by(["group", "partition"], use_threads=False).aggregate([([], "count_all"), ("time_ms", "max")]).to_pylist()

    assert len(set(found.keys)) == len(found.keys)
    assert dict(zip(found.keys, zip(found.counts(), found.greatest("time_ms"), strict=True), strict=True)) == {
        (row["group"], row["partition"]): (row["count_all"], row["time_ms_max"]) for row in expected
    }
    assert [found.keys[number] for number in found.numbers] == [row[:2] for row in rows]


@pytest.mark.parametrize("names", [("group",), ("group", "partition")])
def test_a_table_without_rows_has_no_keys(names: tuple[str, ...]) -> None:
    found = RowGroups(_SCHEMA.empty_table(), names)

    assert (found.keys, found.counts(), found.greatest("time_ms")) == ([], [], [])
