"""Peak memory of a process and of what it started, looked at from outside."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

_EVERY_SECONDS = 0.01


class PeakMemory:
    """Looks at this process and its descendants, a hundred times in a second, while the `with` block runs.

    With `having`, only those count that have this text in their command line.

    `anonymous_bytes` is the largest sum of RssAnon seen: what they have allocated, without the pages of the files they read.
    `resident_bytes` is the largest sum of their RSS, which counts those. None where the system has no /proc.
    """

    def __init__(self, process_id: int, *, having: str = "") -> None:
        self.anonymous_bytes: int | None = None
        self.resident_bytes: int | None = None
        self._process_id = process_id
        self._having = having.encode()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            seen = [_memory(process_id) for process_id in family(self._process_id) if self._counts(process_id)]
            if seen:
                anonymous, resident = (sum(column) for column in zip(*seen, strict=True))
                self.anonymous_bytes = max(self.anonymous_bytes or 0, anonymous)
                self.resident_bytes = max(self.resident_bytes or 0, resident)
            if self._done.wait(_EVERY_SECONDS):
                return

    def _counts(self, process_id: int) -> bool:
        try:
            return not self._having or self._having in Path(f"/proc/{process_id}/cmdline").read_bytes()
        except OSError:
            return False


def family(process_id: int) -> Iterator[int]:
    """This process and all that it has started and that runs."""
    yield process_id
    for task in Path(f"/proc/{process_id}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            # It ended just now.
            continue
        for child in children:
            yield from family(int(child))


def _memory(process_id: int) -> tuple[int, int]:
    """RssAnon and RSS in bytes; zeros for a process that has ended."""
    try:
        lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    fields = dict(line.split(":", 1) for line in lines)
    return _bytes(fields.get("RssAnon", "0 kB")), _bytes(fields.get("VmRSS", "0 kB"))


def _bytes(text: str) -> int:
    return int(text.split(maxsplit=1)[0]) * 1024
