"""Tables of a log made on threads, a few pieces ahead of whoever reads them, in the order of the log.

A piece of work gives tables. Where it comes to something odd it gives `PAUSE` first: from there on it goes on in the thread of the reader,
when all in front of it has been read. So findings and errors come as they do on one thread, and what takes long can be interrupted.
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
    """The one value that is no table."""

    PAUSE = 0


PAUSE: Literal[Pause.PAUSE] = Pause.PAUSE

#: What a piece of work gives.
Made = Iterator[pa.RecordBatch | Literal[Pause.PAUSE]]

#: How much of one piece is made ahead at most, and one table at least: a compressed batch may unfold to anything. A table of few rows takes
#: up more than their bytes.
_AHEAD_BYTES, _AHEAD_TABLES = 64 * 1024 * 1024, 256


def in_turn(works: Iterable[Made]) -> Iterator[pa.RecordBatch]:
    """All tables of these pieces of work, one behind the other."""
    return (table for made in works for table in made if table is not PAUSE)


def side_by_side(works: Iterable[Made], threads: int) -> Generator[pa.RecordBatch]:
    """As `in_turn`; up to a pause, so many pieces are worked on at a time. `works` is asked for the next ones as they are needed.

    The first table is made by the thread of the reader: kernels are compiled for it, and a compiler is interrupted there only.
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
            # It is met behind what came before it.
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
            # Whatever ends this, what is under way ends soon.
            is_stopped.set()
            for future in coming:
                future.cancel()


def _to_the_error(works: Iterable[Made]) -> Iterator[Made]:
    """The works, and in place of what cannot be had one that says so."""
    try:
        yield from works
    except Exception as error:
        yield _raising(error)


def _raising(error: Exception) -> Iterator[pa.RecordBatch]:
    raise error
    yield
