"""Tables that threads make ahead: their order, what ends them, and what is left to the thread that reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from exhume.codecs.columns import side_by_side as module
from exhume.codecs.columns.side_by_side import PAUSE, Made, in_turn, side_by_side

_THREADS = pytest.mark.parametrize("threads", [1, 2, 8])


def table(number: int) -> pa.RecordBatch:
    return pa.record_batch({"number": [number]})


def numbers(tables: Iterator[pa.RecordBatch]) -> list[int]:
    return [each["number"][0].as_py() for each in tables]


def is_here() -> bool:
    return threading.current_thread() is threading.main_thread()


@_THREADS
def test_tables_come_in_order(threads: int) -> None:
    works = [iter([table(3 * number), table(3 * number + 1), PAUSE, table(3 * number + 2)]) for number in range(40)]

    assert numbers(side_by_side(works, threads)) == list(range(120))


def test_in_turn_gives_the_same() -> None:
    assert numbers(in_turn([iter([table(0), PAUSE, table(1)]), iter([table(2)])])) == [0, 1, 2]


@_THREADS
def test_behind_a_pause_the_reader_goes_on_itself_when_all_in_front_has_been_read(threads: int) -> None:
    met: list[tuple[int, bool]] = []

    def work(number: int) -> Made:
        assert is_here() == (number == 0)
        yield table(number)
        yield PAUSE
        met.append((number, is_here()))
        yield table(number)

    for count, each in enumerate(side_by_side(map(work, range(20)), threads)):
        assert len(met) == (count + 1) // 2
        assert each["number"][0].as_py() == count // 2

    assert met == [(number, True) for number in range(20)]


@_THREADS
def test_a_first_piece_that_pauses_at_once_or_is_empty_is_done_by_the_reader(threads: int) -> None:
    works = [[PAUSE, table(0)], [table(1)]], [[], [table(2), PAUSE, table(3)]], [[PAUSE]], list[Any]()

    assert [numbers(side_by_side(map(iter, each), threads)) for each in works] == [[0, 1], [2, 3], [], []]


@_THREADS
def test_an_error_comes_behind_what_was_in_front_of_it(threads: int) -> None:
    def work(number: int) -> Made:
        yield table(number)
        if number == 3:
            raise ValueError("broken")
        yield PAUSE

    seen: list[int] = []
    with pytest.raises(ValueError, match="broken"):
        seen.extend(each["number"][0].as_py() for each in side_by_side(map(work, range(20)), threads))

    assert seen == [0, 1, 2, 3]


@_THREADS
def test_work_that_cannot_be_had_is_missed_in_its_turn(threads: int) -> None:
    def works() -> Iterator[Made]:
        yield iter([table(0)])
        yield iter([table(1)])
        raise ValueError("no such file")

    seen: list[int] = []
    with pytest.raises(ValueError, match="no such file"):
        seen.extend(each["number"][0].as_py() for each in side_by_side(works(), threads))

    assert seen == [0, 1]


@pytest.mark.parametrize(("limit", "most"), [("_AHEAD_BYTES", 3 * table(0).nbytes), ("_AHEAD_TABLES", 3)])
def test_little_is_made_ahead(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, limit, most)
    made: list[Any] = []

    def work(first: int) -> Made:
        for number in range(first, first + 50):
            made.append(number)
            yield table(number)

    reader = side_by_side((work(100 * number) for number in range(50)), 2)
    first, second = next(reader), next(reader)
    reader.close()

    assert numbers(iter([first, second])) == [0, 1]
    # The first table, and what three pieces of work are begun with, and one more when the first was taken.
    assert len(made) <= 1 + 4 * 3


def test_whoever_stops_reading_ends_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    is_at_work, is_read = threading.Event(), threading.Event()
    made: list[pa.RecordBatch] = []
    monkeypatch.setattr(module, "_AHEAD_TABLES", 1_000_000)

    def endless() -> Made:
        while True:
            is_at_work.set()
            made.append(table(1))
            yield made[-1]
            # The first table is made while the other piece is read; being told to stop is what ends this.
            is_read.wait()
            time.sleep(0.001)

    reader = side_by_side([iter([table(0), table(0)]), endless()], 2)
    next(reader)
    assert not is_at_work.is_set()
    next(reader)
    is_at_work.wait()
    is_read.set()
    reader.close()

    assert len(made) < 1_000_000
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("exhume-decode")]
