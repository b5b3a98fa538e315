"""Lines of JSON and CSV: they are those that are made cell by cell."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from itertools import count
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exhume.cli import lines
from exhume.cli.arrow_json import dump
from exhume.cli.lines import csv_lines, json_lines
from exhume.codecs.segment_reader import ReadOptions
from tests.cli import one_by_one
from tests.strategies import examples, times

_CELLS = st.text(st.sampled_from("ab ,\"'\n\r\tü=é\u2028"), max_size=4)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b c", "ü"]), inner, max_size=2),
    max_leaves=5,
)


def joined(pieces: Iterable[memoryview]) -> bytes:
    return b"".join(bytes(piece) for piece in pieces)


def jsonl(*batches: pa.RecordBatch) -> bytes:
    return joined(json_lines(batches[0].schema, batches, before=b"", after=b"\n"))


@examples(100)
@given(st.integers(1, 3).flatmap(lambda width: st.lists(st.tuples(*[_CELLS] * width), min_size=1, max_size=5)))
def test_raw_csv_is_that_of_the_module(rows: list[tuple[str, ...]]) -> None:
    text = io.StringIO(newline="")
    names = [f"column {number}" for number in range(len(rows[0]))]
    csv.writer(text, lineterminator="\n").writerows([names, *rows])
    batch = pa.record_batch([pa.array(cells, pa.string()) for cells in zip(*rows, strict=True)], names)

    found = joined(csv_lines(batch.schema, [batch], raw=True)).decode()

    # The module leaves a carriage return without quotes before Python 3.13, and its own reader refuses that.
    assert found == text.getvalue() or "\r" in found
    assert [tuple(row) for row in csv.reader(io.StringIO(found, newline=""))] == [tuple(names), *rows]


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

    found = jsonl(batch).decode().split("\n")

    expected = [dump({"name": name, "value": value, "numbers": numbers}) for (name, _, numbers), value in zip(rows, values, strict=True)]
    assert found == [*expected, ""]


def test_every_type_with_hostile_cells() -> None:
    draw = Random(1)
    for _ in range(times(1000)):
        batch = one_by_one.hostile_batch(draw, draw.choice((0, 1, 2, 30)))
        raw = draw.random() < 0.5

        assert joined(json_lines(batch.schema, [batch], before=b",\n", after=b"")) == one_by_one.json_rows(batch, ",\n", "")
        assert joined(csv_lines(batch.schema, [batch], raw=raw)) == one_by_one.csv_rows(batch, raw=raw)


def test_each_hostile_text_beside_others_and_in_all_rows() -> None:
    for text in one_by_one.TEXTS:
        for values in ([text], [text, text], [text, "a"], ["a", None, text]):
            batch = pa.record_batch({"text": values, "number": range(len(values))})

            assert jsonl(batch) == one_by_one.json_rows(batch, "", "\n"), values
            for raw in (False, True):
                assert joined(csv_lines(batch.schema, [batch], raw=raw)) == one_by_one.csv_rows(batch, raw=raw), values


def test_lines_of_many_batches_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_ROWS", 100)
    monkeypatch.setattr(lines, "_PIECE_BYTES", 1000)
    batches = [pa.record_batch({"n": range(first, first + 250), "text": ["x" * (first % 7)] * 250}) for first in range(0, 10_000, 250)]

    assert jsonl(*batches) == b"".join(one_by_one.json_rows(batch, "", "\n") for batch in batches)


def test_a_line_longer_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_PIECE_BYTES", 64)
    batch = pa.record_batch({"text": ["a", '"' * 5000, "b", "c" * 5000, "d"], "n": [1, 2, 3, 4, 5]})

    assert jsonl(batch) == one_by_one.json_rows(batch, "", "\n")
    assert joined(csv_lines(batch.schema, [batch], raw=False)) == one_by_one.csv_rows(batch, raw=False)


def test_an_error_comes_after_the_lines_of_the_rows_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_ROWS", 2)
    whole = [pa.record_batch({"n": [number]}) for number in range(7)]

    def failing() -> Iterator[pa.RecordBatch]:
        yield from whole
        raise OSError("the disk is gone")

    found = b""
    with pytest.raises(OSError, match="the disk is gone"):  # noqa: PT012
        for piece in json_lines(whole[0].schema, failing(), before=b"", after=b"\n"):
            found += piece

    assert found == b"".join(one_by_one.json_rows(batch, "", "\n") for batch in whole)


def test_a_reader_that_leaves_stops_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_ROWS", 1)
    numbers = count(1)
    batches = (pa.record_batch({"n": [number]}) for number in numbers)

    pieces = json_lines(pa.schema({"n": pa.int64()}), batches, before=b"", after=b"\n")
    assert [bytes(next(pieces)) for _ in range(3)] == [b'{"n":1}\n', b'{"n":2}\n', b'{"n":3}\n']
    pieces.close()

    assert next(numbers) < 20 + ReadOptions().most_threads
