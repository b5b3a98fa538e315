"""Tables that threads make ahead: their order, what ends them, and what is left to the thread that reads."""

from __future__ import annotations

import threading
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
        assert not is_here()
        yield table(number)
        yield PAUSE
        met.append((number, is_here()))
        yield table(number)

    for count, each in enumerate(side_by_side(map(work, range(20)), threads)):
        assert len(met) == (count + 1) // 2
        assert each["number"][0].as_py() == count // 2

    assert met == [(number, True) for number in range(20)]


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


def test_little_is_made_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AHEAD_BYTES", 3 * table(0).nbytes)
    made: list[Any] = []

    def work(first: int) -> Made:
        for number in range(first, first + 50):
            made.append(number)
            yield table(number)

    reader = side_by_side((work(100 * number) for number in range(50)), 2)
    first = next(reader)
    reader.close()

    assert first["number"][0].as_py() == 0
    # Three pieces of work are begun, and one more when the first was taken.
    assert len(made) <= 4 * 3


def test_whoever_stops_reading_ends_what_is_under_way() -> None:
    def work(number: int) -> Made:
        yield table(number)
        # Being told to stop ends it, long before it has made too much.
        while number:
            yield table(number)

    reader = side_by_side((work(number) for number in range(2)), 2)
    next(reader)
    reader.close()

    assert not [thread for thread in threading.enumerate() if thread.name.startswith("exhume-decode")]
