"""Columns as text: the rows are those that the modules `csv` and `json` write one by one."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from exhume.cli.arrow_json import dump, json_rows
from exhume.cli.csv_rows import csv_rows
from tests.strategies import examples

_CELLS = st.text(st.sampled_from("ab ,\"'\n\r\tü=é\u2028"), max_size=4)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b c", "ü"]), inner, max_size=2),
    max_leaves=5,
)


@examples(100)
@given(st.integers(1, 3).flatmap(lambda width: st.lists(st.tuples(*[_CELLS] * width), max_size=5)))
def test_rows_of_csv_are_those_of_the_module(rows: list[tuple[str, ...]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)

    columns = [pa.array(cells, pa.string()) for cells in zip(*rows, strict=True)]

    found = csv_rows(columns).decode()
    # The module leaves a carriage return without quotes before Python 3.13, and its own reader refuses that.
    assert found == text.getvalue() or "\r" in found
    assert [tuple(row) for row in csv.reader(io.StringIO(found, newline=""))] == rows


@examples(100)
@given(st.lists(st.tuples(st.none() | st.text(max_size=4), _VALUES, st.none() | st.lists(st.integers(0, 9), max_size=2)), max_size=5))
@example([("a", {"offset": 1, "name": "b", "none": None, "is": True}, []), ("a", "NaN", None), (None, [1.5, -0.0], [1])])
def test_rows_of_json_are_those_of_each_object(rows: list[tuple[str | None, Any, list[int] | None]]) -> None:
    texts = [json.dumps(value, separators=(",", ":"), ensure_ascii=False) for _, value, _ in rows]
    batch = pa.record_batch(
        {
            "name": pa.array([name for name, _, _ in rows], pa.string()),
            "value": pa.array(texts, pa.string()).cast(pa.json_()),
            "numbers": pa.array([numbers for _, _, numbers in rows], pa.list_(pa.int64())),
        }
    )
    # A value of the column is read as the reader of an answer reads it: numbers that JSON does not have become text.
    values = [json.loads(text, parse_constant=str) for text in texts]

    lines = json_rows(batch, "\n").decode().split("\n")

    expected = [dump({"name": name, "value": value, "numbers": numbers}) for (name, _, numbers), value in zip(rows, values, strict=True)]
    assert lines == [*expected, ""]
