"""Work that another thread does in order: what waits, and what an error ends."""

from __future__ import annotations

import threading
from functools import partial
from threading import Event

import pytest

from exhume.codecs.columns.following import Following

_THREADS = pytest.mark.parametrize("threads", [1, 2, 8])


@_THREADS
def test_pieces_are_done_in_order(threads: int) -> None:
    done: list[int] = []

    with Following(threads) as following:
        for number in range(50):
            following.do(partial(done.append, number))

    assert done == [*range(50)]


@pytest.mark.parametrize(("threads", "others"), [(1, 0), (2, 3)])
def test_another_thread_does_all_but_the_first(threads: int, others: int) -> None:
    seen: list[threading.Thread] = []

    with Following(threads) as following:
        for _ in range(4):
            following.do(lambda: seen.append(threading.current_thread()))

    here = threading.current_thread()
    assert seen[0] is here
    assert sum(each is not here for each in seen) == others
    assert len({*seen[1:]}) == 1


def test_few_pieces_wait() -> None:
    gate, submitted = Event(), list[int]()

    def wait() -> None:
        gate.wait()

    def read() -> None:
        with Following(2) as following:
            following.do(lambda: None)
            for number in range(20):
                following.do(wait)
                submitted.append(number)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        # The reader cannot go on while the first of these pieces is not done.
        reader.join(0.05)
        assert len(submitted) <= 2
    finally:
        gate.set()
        reader.join()

    assert submitted == [*range(20)]


@_THREADS
def test_the_reader_gets_the_error_of_a_piece(threads: int) -> None:
    def fail() -> None:
        raise ValueError("piece")

    def read() -> None:
        with Following(threads) as following:
            following.do(lambda: None)
            following.do(fail)
            for _ in range(9):
                following.do(lambda: None)

    with pytest.raises(ValueError, match="piece"):
        read()


@_THREADS
def test_an_error_of_the_reader_is_not_replaced(threads: int) -> None:
    def fail() -> None:
        raise ValueError("piece")

    def read() -> None:
        with Following(threads) as following:
            following.do(lambda: None)
            if threads > 1:
                following.do(fail)
            raise KeyError("reader")

    with pytest.raises(KeyError, match="reader"):
        read()
