"""Do work in order on one other thread, while the thread of the reader prepares the next piece."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

#: The most pieces that wait: each holds the tables of a record block.
_MOST_WAITING = 2


class Following:
    """Does pieces of work in order. The first piece is done at once; with several threads, another thread does the later ones.

    The thread of the reader gets the error of a piece at a later piece, or at the end.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._coming: deque[Future[None]] = deque()
        self._has_first = False

    def do(self, piece: Callable[[], None]) -> None:
        """Do this piece after all pieces before it. Waits while too many pieces are not done."""
        if self._threads == 1 or not self._has_first:
            self._has_first = True
            piece()
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="exhume-follow")
        while len(self._coming) >= _MOST_WAITING:
            self._coming.popleft().result()
        self._coming.append(self._pool.submit(piece))

    def finish(self) -> None:
        """Wait for all pieces."""
        while self._coming:
            self._coming.popleft().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            for future in self._coming:
                future.cancel()
            if self._pool is not None:
                self._pool.shutdown()
