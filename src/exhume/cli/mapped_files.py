"""Mapped files that can no longer be read: another process made one shorter, or its disk fails. An error names it, instead of SIGBUS."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import NoReturn

from exhume.cli.run import Interrupted
from exhume.errors import EvidenceError

_lost: list[EvidenceError] = []


def watch() -> None:
    """End the command with an error where a mapped file is lost, if the machine code of the kernels can do that here."""
    bus_error = getattr(signal, "SIGBUS", None)
    if bus_error is None or threading.current_thread() is not threading.main_thread() or signal.getsignal(bus_error) is not signal.SIG_DFL:
        return
    from exhume.codecs.kernels.bus_errors import can_survive_bus_errors, survive_bus_errors

    if can_survive_bus_errors():
        signal.signal(bus_error, _stop)
        if not survive_bus_errors():
            signal.signal(bus_error, signal.SIG_DFL)


def lost() -> EvidenceError | None:
    """Return the error if a mapped file was lost."""
    return _lost[0] if _lost else None


def _stop(*_: object) -> NoReturn:
    if not _lost:
        from exhume.codecs.kernels.bus_errors import lost_page

        path, position = _place_of(lost_page())
        message = "the bytes from here on are gone: another process made the file shorter while it was read, or the disk fails"
        remedy = "Read a copy that no process writes to"
        _lost.append(EvidenceError(message, path=path, byte_position=position, remedy=remedy))
    raise Interrupted


def _place_of(page: int) -> tuple[str | None, int | None]:
    """Return the path of the file that was mapped at this page, and its byte there, by the rest of the mapping beside the page."""
    from exhume.codecs.file_names import as_text

    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None, None
    for line in lines:
        span, _, offset, _, _, *path = line.split(maxsplit=5)
        start, end = (int(each, 16) for each in span.split("-"))
        position = int(offset, 16) + page - start
        # The lost page has no name any more, nor have others that were lost after it.
        if end >= page and position >= 0 and path and path[0].startswith("/") and _is_shorter(path[0], position):
            return as_text(path[0]), position
    return None, None


def _is_shorter(path: str, position: int) -> bool:
    try:
        return Path(path).stat().st_size <= position
    except OSError:
        return False
