"""Where the machine code of kernels is kept: in the user's cache directory, never beside the evidence. Knows no compiler.

Code is kept for the sources that it was made of, and for their place, as the compiler does: a change of any module in `KERNEL_ROOMS` or of
`KERNEL_FACTS` leads to another directory, of a package in a zip too. Where no directory can be made, code is made for each process.
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
#: All kernels live in these directories.
KERNEL_ROOMS = ("codecs/kernels", "replay/survivors", "analysis/detectors/commit_loops")
#: From elsewhere they take numbers of these modules alone.
KERNEL_FACTS = (
    "codecs/batch_format.py",
    "durations.py",
    "codecs/layouts/classic_group.py",
    "codecs/layouts/offsets.py",
    "codecs/record_types.py",
)

_PREFIX = "kernels-"
_WARM = "warm"
_UNUSED_SECONDS = 30 * 24 * 3600

#: Whoever waits to be told that something is compiled: one, or none.
_waiting: list[Callable[[], None]] = []


@cache
def directory() -> Path:
    """The directory for these sources and this Python; it may not exist."""
    sources = hashlib.sha256(f"{sys.version} {sys.platform}".encode())
    for stamp in _stamps():
        sources.update(f"{stamp}\n".encode())
    return _root() / f"{_PREFIX}{sources.hexdigest()[:16]}"


def _stamps() -> Iterator[str]:
    """What changes with these sources, or their place."""
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
    """The directory, made where it is missing; None where it cannot be made. Code that nobody has used for a month goes."""
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
    """True when all that a load needs was compiled before, and kept."""
    try:
        return (directory() / _WARM).exists()
    except (OSError, RuntimeError):
        return False


def mark_warm() -> None:
    """Remember that it was."""
    place = prepare()
    if place is not None:
        (place / _WARM).touch()


def before_compiling(tell: Callable[[], None]) -> None:
    """Have `tell` called once, before the next kernel is compiled; in the thread that needs the kernel."""
    _waiting[:] = [tell]


def about_to_compile() -> None:
    """To be called before a kernel is compiled; not where its code is taken from the cache."""
    told = [*_waiting]
    _waiting.clear()
    for tell in told:
        tell()
