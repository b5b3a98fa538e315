"""Tables of numbers in few bytes return the numbers that they were made of."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from exhume.analysis.number_columns import Int64s, NarrowTable

_INT64S = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 300)


@st.composite
def _tables(draw: st.DrawFn, columns: int) -> Int64s:
    rows = draw(st.integers(0, 6))
    return np.array(draw(st.lists(st.lists(_INT64S, min_size=rows, max_size=rows), min_size=columns, max_size=columns)), np.int64)


@given(st.integers(1, 5).flatmap(lambda columns: st.lists(_tables(columns), min_size=1, max_size=3)))
def test_narrow_tables_keep_every_number(tables: list[Int64s]) -> None:
    joined = NarrowTable.joined([*map(NarrowTable, tables)])
    whole = np.concatenate(tables, axis=1)
    rows = np.arange(whole.shape[1])[::-2]

    assert len(joined) == whole.shape[1]
    assert np.array_equal(joined.rows(rows), whole[:, rows].T)
    assert all(np.array_equal(joined.column(number), column) for number, column in enumerate(whole))
    assert all(np.array_equal(joined.column(number, rows), column[rows]) for number, column in enumerate(whole))


def test_a_narrow_table_is_small() -> None:
    rows = 10_000
    columns = [10**12 + np.arange(rows) % 200, np.full(rows, -1), np.arange(rows)]
    table = NarrowTable(columns)

    assert sum(differences.nbytes for _, differences in table._parts) == rows * (1 + 1 + 2)
