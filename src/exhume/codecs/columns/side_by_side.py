"""Do work on threads, a few pieces ahead of the reader, and give the results in the order of the log."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice
from threading import Event

import pyarrow as pa

from exhume.findings import Finding


@dataclass(frozen=True, slots=True)
class Result:
    """A table, and the findings about its records; `table` is None if there are only findings."""

    table: pa.RecordBatch | None
    findings: Iterable[Finding] = ()

    @property
    def size_bytes(self) -> int:
        return 0 if self.table is None else self.table.nbytes


@dataclass(frozen=True, slots=True)
class Work:
    """Results to make.

    With `is_ahead`, a thread makes them before the reader needs them; else the thread of the reader makes each after all results before it.
    The thread of the reader calls `at_end` after the last result.
    """

    results: Iterator[Result]
    is_ahead: bool = True
    at_end: Callable[[], None] = field(default=lambda: None)


#: The most bytes and results of one work that are made ahead, but at least one result: a compressed batch may unfold to any size, and a
#: table of few rows takes more memory than their bytes.
_AHEAD_BYTES, _AHEAD_RESULTS = 64 * 1024 * 1024, 256


def in_turn(works: Iterable[Work]) -> Iterator[Result]:
    """Yield all results of these works, in order."""
    for work in works:
        yield from work.results
        work.at_end()


def side_by_side(works: Iterable[Work], threads: int) -> Generator[Result]:
    """Yield the same results as `in_turn`. Threads make the results of several works at a time; `works` gives them as needed.

    The thread of the reader makes the first result.
    """
    works = iter(works)
    for work in islice(works, 1):
        yield from islice(work.results, 1)
        works = chain([work], works)
    yield from _ahead(works, threads)


def _ahead(works: Iterable[Work], threads: int) -> Iterator[Result]:
    is_stopped = Event()

    def begin(work: Work) -> Iterator[Result]:
        made: list[Result] = []
        size_bytes = 0
        try:
            for result in work.results:
                made.append(result)
                size_bytes += result.size_bytes
                if size_bytes >= _AHEAD_BYTES or len(made) >= _AHEAD_RESULTS or is_stopped.is_set():
                    break
        except Exception as error:
            # The reader gets the error after the results before it.
            return chain(made, _raising(error))
        return chain(made, work.results)

    with ThreadPoolExecutor(threads, thread_name_prefix="exhume-decode") as pool:
        coming: deque[tuple[Work, Future[Iterator[Result]] | None]] = deque()
        waiting = _to_the_error(works)
        try:
            while True:
                for work in islice(waiting, threads + 1 - len(coming)):
                    coming.append((work, pool.submit(begin, work) if work.is_ahead else None))
                if not coming:
                    return
                work, begun = coming.popleft()
                yield from work.results if begun is None else begun.result()
                work.at_end()
        finally:
            # The threads end soon, also after an error.
            is_stopped.set()
            for _, begun in coming:
                if begun is not None:
                    begun.cancel()


def _to_the_error(works: Iterable[Work]) -> Iterator[Work]:
    """Yield the works; if taking one raises an error, yield a work that raises it."""
    try:
        yield from works
    except Exception as error:
        yield Work(_raising(error))


def _raising(error: Exception) -> Iterator[Result]:
    raise error
    yield
