"""Tables that threads make ahead: their order, what ends them, and what is left to the thread that reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from exhume.codecs.columns import side_by_side as module
from exhume.codecs.columns.side_by_side import Result, Work, in_turn, side_by_side

_THREADS = pytest.mark.parametrize("threads", [1, 2, 8])


def table(number: int) -> Result:
    return Result(pa.record_batch({"number": [number]}))


def number_of(result: Result) -> int:
    assert result.table is not None
    number: int = result.table["number"][0].as_py()
    return number


def numbers(results: Iterator[Result]) -> list[int]:
    return [number_of(each) for each in results]


def is_here() -> bool:
    return threading.current_thread() is threading.main_thread()


@_THREADS
def test_tables_come_in_order(threads: int) -> None:
    works = [Work(iter([table(3 * number), table(3 * number + 1), table(3 * number + 2)])) for number in range(40)]

    assert numbers(side_by_side(works, threads)) == list(range(120))


def test_in_turn_gives_the_same() -> None:
    assert numbers(in_turn([Work(iter([table(0), table(1)])), Work(iter([table(2)]))])) == [0, 1, 2]


@_THREADS
def test_the_reader_does_work_that_is_not_ahead_after_all_work_before_it(threads: int) -> None:
    done: list[str] = []

    def ahead(number: int) -> Iterator[Result]:
        assert is_here() == (number == 0)
        yield table(2 * number)

    def here(number: int) -> Iterator[Result]:
        assert is_here()
        assert done[-1] == f"end of {number}"
        yield table(2 * number + 1)

    def works() -> Iterator[Work]:
        for number in range(20):
            yield Work(ahead(number), at_end=partial(done.append, f"end of {number}"))
            yield Work(here(number), is_ahead=False)

    assert numbers(side_by_side(works(), threads)) == list(range(40))
    assert done == [f"end of {number}" for number in range(20)]


@_THREADS
def test_works_may_be_empty(threads: int) -> None:
    works = [[table(0)], [table(1)]], [[], [table(2), table(3)]], [list[Result]()], list[list[Result]]()

    assert [numbers(side_by_side(map(Work, map(iter, each)), threads)) for each in works] == [[0, 1], [2, 3], [], []]


@_THREADS
def test_an_error_comes_behind_what_was_in_front_of_it(threads: int) -> None:
    def work(number: int) -> Iterator[Result]:
        yield table(number)
        if number == 3:
            raise ValueError("broken")

    seen: list[int] = []
    with pytest.raises(ValueError, match="broken"):
        seen.extend(number_of(each) for each in side_by_side(map(Work, map(work, range(20))), threads))

    assert seen == [0, 1, 2, 3]


@_THREADS
def test_work_that_cannot_be_had_is_missed_in_its_turn(threads: int) -> None:
    def works() -> Iterator[Work]:
        yield Work(iter([table(0)]))
        yield Work(iter([table(1)]))
        raise ValueError("no such file")

    seen: list[int] = []
    with pytest.raises(ValueError, match="no such file"):
        seen.extend(number_of(each) for each in side_by_side(works(), threads))

    assert seen == [0, 1]


@pytest.mark.parametrize(("limit", "most"), [("_AHEAD_BYTES", 3 * table(0).size_bytes), ("_AHEAD_RESULTS", 3)])
def test_little_is_made_ahead(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, limit, most)
    made: list[Any] = []

    def work(first: int) -> Iterator[Result]:
        for number in range(first, first + 50):
            made.append(number)
            yield table(number)

    reader = side_by_side((Work(work(100 * number)) for number in range(50)), 2)
    first, second = next(reader), next(reader)
    reader.close()

    assert numbers(iter([first, second])) == [0, 1]
    # The first table, and what three pieces of work are begun with, and one more when the first was taken.
    assert len(made) <= 1 + 4 * 3


def test_whoever_stops_reading_ends_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    is_at_work, is_read = threading.Event(), threading.Event()
    made: list[Result] = []
    monkeypatch.setattr(module, "_AHEAD_RESULTS", 1_000_000)

    def endless() -> Iterator[Result]:
        while True:
            is_at_work.set()
            made.append(table(1))
            yield made[-1]
            # The first table is made while the other piece is read; being told to stop is what ends this.
            is_read.wait()
            time.sleep(0.001)

    reader = side_by_side([Work(iter([table(0), table(0)])), Work(endless())], 2)
    next(reader)
    assert not is_at_work.is_set()
    next(reader)
    is_at_work.wait()
    is_read.set()
    reader.close()

    assert len(made) < 1_000_000
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("exhume-decode")]
