"""The directory for the machine code of kernels: in the user's cache directory, never beside the evidence. Needs no compiler.

The name of the directory depends on the sources and on their place: a change of any module in `KERNEL_ROOMS` or of `KERNEL_FACTS` leads to
another directory, also for a package in a zip. If no directory can be made, each process compiles its kernels again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

_PACKAGE = Path(__file__).resolve().parent.parent
#: The directories of all kernels.
KERNEL_ROOMS = ("codecs/kernels", "replay/survivors", "analysis/detectors/commit_loops")
#: Kernels take constants from these other modules only.
KERNEL_FACTS = (
    "codecs/batch_format.py",
    "durations.py",
    "codecs/layouts/classic_group.py",
    "codecs/layouts/offsets.py",
    "codecs/record_types.py",
    "analysis/number_columns.py",
)

_PREFIX = "kernels-"
_WARM = "warm"
_UNUSED_SECONDS = 30 * 24 * 3600

#: The function to call before the first kernel is compiled; empty if there is none.
_waiting: list[Callable[[], None]] = []


@cache
def directory() -> Path:
    """The directory for these sources and this Python; it may not exist."""
    sources = hashlib.sha256(f"{sys.version} {sys.platform}".encode())
    for stamp in _stamps():
        sources.update(f"{stamp}\n".encode())
    return _root() / f"{_PREFIX}{sources.hexdigest()[:16]}"


def _stamps() -> Iterator[str]:
    """Yield the texts that change when these sources or their place change."""
    yield str(_PACKAGE)
    archive = next((parent for parent in _PACKAGE.parents if parent.is_file()), None)
    if archive is None:
        paths = {path for room in KERNEL_ROOMS for path in (_PACKAGE / room).glob("*.py")}
        for path in sorted(paths | {_PACKAGE / module for module in KERNEL_FACTS}):
            status = path.stat()
            yield f"{path.relative_to(_PACKAGE)} {status.st_size} {status.st_mtime_ns}"
        return
    rooms = [PurePosixPath(_PACKAGE.relative_to(archive), room) for room in KERNEL_ROOMS]
    facts = [PurePosixPath(_PACKAGE.relative_to(archive), module) for module in KERNEL_FACTS]
    with ZipFile(archive) as content:
        for member in sorted(content.infolist(), key=lambda member: member.filename):
            name = PurePosixPath(member.filename)
            if name in facts or (name.parent in rooms and name.suffix == ".py"):
                yield f"{name} {member.file_size} {member.CRC}"


def _root() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "exhume"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "exhume"


def prepare() -> Path | None:
    """Make the directory if it is missing; return None if it cannot be made. Delete code that was not used for a month."""
    try:
        place = directory()
        if not place.is_dir():
            place.mkdir(parents=True, mode=0o700)
            for other in place.parent.glob(f"{_PREFIX}*"):
                if time.time() - other.stat().st_mtime > _UNUSED_SECONDS:
                    shutil.rmtree(other, ignore_errors=True)
        os.utime(place)
    except (OSError, RuntimeError):
        return None
    return place if os.access(place, os.W_OK) else None


def is_warm() -> bool:
    """Return True if the directory has all compiled code that a load needs."""
    try:
        return (directory() / _WARM).exists()
    except (OSError, RuntimeError):
        return False


def mark_warm() -> None:
    """Record that the directory has all compiled code that a load needs."""
    place = prepare()
    if place is not None:
        (place / _WARM).touch()


def before_compiling(tell: Callable[[], None]) -> None:
    """Call `tell` once, before the next kernel is compiled, in the thread that needs the kernel."""
    _waiting[:] = [tell]


def about_to_compile() -> None:
    """Call the waiting function. The compiler calls this before it compiles a kernel, but not for code from the cache."""
    told = [*_waiting]
    _waiting.clear()
    for tell in told:
        tell()
