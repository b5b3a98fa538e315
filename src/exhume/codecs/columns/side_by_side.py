"""Make the tables of a log on threads, a few pieces ahead of the reader, in the order of the log.

A piece of work yields tables. It yields `PAUSE` before it reads a batch that kernels cannot read: the thread of the reader continues it,
after all tables before it. So findings and errors come in the same order as on one thread, and long work can be interrupted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from itertools import chain, islice
from threading import Event
from typing import Literal

import pyarrow as pa


class Pause(Enum):
    """The only value of a piece of work that is not a table."""

    PAUSE = 0


PAUSE: Literal[Pause.PAUSE] = Pause.PAUSE

#: The tables of a piece of work.
Made = Iterator[pa.RecordBatch | Literal[Pause.PAUSE]]

#: The most bytes and tables of one piece that are made ahead, but at least one table: a compressed batch may unfold to any size, and a
#: table of few rows takes more memory than their bytes.
_AHEAD_BYTES, _AHEAD_TABLES = 64 * 1024 * 1024, 256


def in_turn(works: Iterable[Made]) -> Iterator[pa.RecordBatch]:
    """Return all tables of these pieces of work, in order."""
    return (table for made in works for table in made if table is not PAUSE)


def side_by_side(works: Iterable[Made], threads: int) -> Generator[pa.RecordBatch]:
    """Yield the same tables as `in_turn`. Threads make several pieces at a time, each up to a pause; `works` gives them as needed.

    The thread of the reader makes the first table.
    """
    works = iter(works)
    for made in islice(works, 1):
        table = next(made, PAUSE)
        if table is PAUSE:
            yield from in_turn([made])
        else:
            yield table
            works = chain([made], works)
    yield from _ahead(works, threads)


def _ahead(works: Iterable[Made], threads: int) -> Iterator[pa.RecordBatch]:
    is_stopped = Event()

    def begin(made: Made) -> Iterator[pa.RecordBatch]:
        tables: list[pa.RecordBatch] = []
        size_bytes = 0
        try:
            for table in made:
                if table is PAUSE:
                    break
                tables.append(table)
                size_bytes += table.nbytes
                if size_bytes >= _AHEAD_BYTES or len(tables) >= _AHEAD_TABLES or is_stopped.is_set():
                    break
        except Exception as error:
            # The reader gets the error after the tables before it.
            return chain(tables, _raising(error))
        return chain(tables, in_turn([made]))

    with ThreadPoolExecutor(threads, thread_name_prefix="exhume-decode") as pool:
        coming: deque[Future[Iterator[pa.RecordBatch]]] = deque()
        waiting = _to_the_error(works)
        try:
            while True:
                for made in islice(waiting, threads + 1 - len(coming)):
                    coming.append(pool.submit(begin, made))
                if not coming:
                    return
                yield from coming.popleft().result()
        finally:
            # The threads end soon, also after an error.
            is_stopped.set()
            for future in coming:
                future.cancel()


def _to_the_error(works: Iterable[Made]) -> Iterator[Made]:
    """Yield the works; if taking one raises an error, yield a work that raises it."""
    try:
        yield from works
    except Exception as error:
        yield _raising(error)


def _raising(error: Exception) -> Iterator[pa.RecordBatch]:
    raise error
    yield
