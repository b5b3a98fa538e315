"""Progress of long work on standard error: bytes done, rate, time left. Only on a terminal, and not for fast work."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from exhume.cli import notes
from exhume.escape import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

#: Work that ends earlier shows no bar.
SHOWN_AFTER_SECONDS = 0.5

_running: set[Progress] = set()


def make_way() -> None:
    """Remove all bars from the screen, before an answer goes to the terminal."""
    for progress in _running:
        progress.make_way()


class Progress:
    """A context manager around work over bytes; the work calls `advance` with the number of bytes done.

    The bar shows only if standard error is a terminal. It disappears when the work ends, or when an answer appears on a terminal.
    `total_bytes` None: unknown; it may be set during the work.

        with Progress("reading", total_bytes=size_bytes) as progress:
            for segment in segments:
                ...
                progress.advance(segment.size_bytes)
    """

    def __init__(self, label: str, *, total_bytes: int | None = None) -> None:
        self.label = self._label = printable(label)
        self._passes = 0
        self.total_bytes = total_bytes
        self.done_bytes = 0
        self._is_watched = notes.are_wanted() and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._started_at = time.monotonic()
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    @property
    def is_shown(self) -> bool:
        """True while a bar is on the screen."""
        return self._bar is not None

    def advance(self, size_bytes: int) -> None:
        """Count these bytes as done. Cheap enough to call for each batch."""
        self.done_bytes += size_bytes
        if not self._is_watched:
            return
        if self._bar is None:
            if time.monotonic() - self._started_at < SHOWN_AFTER_SECONDS:
                return
            self._show()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self.done_bytes, total=self.total_bytes, description=self.label)

    def reach(self, done_bytes: int, total_bytes: int) -> None:
        """Say that one of several passes over the bytes is at this place; the label names the pass, and the work after its end.

        A pass begins when fewer bytes are done than before.
        """
        self._passes += done_bytes < self.done_bytes or not self._passes
        pass_label = self._label if self._passes == 1 else f"{self._label}, pass {self._passes}"
        self.label = f"{pass_label}: evaluating" if done_bytes >= total_bytes > 0 else pass_label
        self.total_bytes = total_bytes
        self.advance(done_bytes - self.done_bytes)

    def make_way(self) -> None:
        """Remove the bar for good, before an answer appears on the same terminal."""
        self._is_watched = False
        self._remove()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
        self._task = self._bar.add_task(self.label, total=self.total_bytes, completed=self.done_bytes)
        self._bar.start()

    def __enter__(self) -> Self:
        self._started_at = time.monotonic()
        _running.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._remove()
        _running.discard(self)

    def _remove(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
