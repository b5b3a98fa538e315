"""Progress of jobs on Spark: a bar for each phase, on a terminal."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from exhume.cli.progress import Progress
from exhume.cli.run import Interrupted
from exhume.replay.spark.watching import JobWatch

if TYPE_CHECKING:
    from exhume.codecs.log_directory import PartitionDirectory


@contextmanager
def shown_phases(session: Any) -> Iterator[Callable[[str, Iterable[PartitionDirectory]], None]]:
    """Show a bar for each phase of this session.

    The yielded function begins a phase: it takes its name and the partitions to read. The bar has their total bytes, and advances when
    tasks end.
    """
    phases = _Phases()
    with JobWatch(session, phases.advance) as watch, _interrupts_cancel(watch):

        def begin(name: str, partitions: Iterable[PartitionDirectory]) -> None:
            watch.begin(name)
            phases.begin(name, partitions)

        try:
            yield begin
        finally:
            phases.end()


@contextmanager
def _interrupts_cancel(watch: JobWatch) -> Iterator[None]:
    """Cancel the jobs of this watch on an interrupt. Spark's own handler fails, because it cannot send its message then."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    is_interrupted = False

    def interrupt(*_: object) -> None:
        nonlocal is_interrupted
        if is_interrupted:
            # The files so far are being deleted: another interrupt would leave some.
            return
        is_interrupted = True
        # Silence py4j: it logs the interrupted call.
        logging.disable(logging.CRITICAL)
        watch.cancel()
        raise Interrupted

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception:
        # py4j wraps an exception that is raised during a call.
        if is_interrupted:
            raise Interrupted from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)
        logging.disable(logging.NOTSET)


class _Phases:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bar: Progress | None = None
        self._total_bytes = 0

    def begin(self, name: str, partitions: Iterable[PartitionDirectory]) -> None:
        sizes = [segment.size_bytes for partition in partitions for segment in partition.read_segments]
        segments, self._total_bytes = len(sizes), sum(sizes)
        self.end()
        if segments:
            label = f"{name}, {segments} segment{'s' * (segments > 1)}"
            with self._lock:
                self._bar = Progress(label, total_bytes=self._total_bytes).__enter__()

    def advance(self, done_tasks: int, tasks: int) -> None:
        """Move the bar; another thread calls this."""
        with self._lock:
            if self._bar is not None and tasks:
                # The number of tasks may grow: the bar never moves back.
                self._bar.advance(max(self._total_bytes * done_tasks // tasks - self._bar.done_bytes, 0))

    def end(self) -> None:
        with self._lock:
            if self._bar is not None:
                self._bar.__exit__(None, None, None)
                self._bar = None
