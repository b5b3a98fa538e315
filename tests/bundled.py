"""The logs of real brokers that come with the tests: one archive for each story, unpacked once for all processes of a test run.

tests/data/<story>.tar.xz, facts/<id>.tar.xz, random/<family>.tar.xz
tests/data/MANIFEST        for each archive: number of files, bytes, a SHA-256 over both names and contents, name of the story
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import io
import lzma
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKED = Path(__file__).resolve().parent / "data"
MANIFEST = PACKED / "MANIFEST"
SUFFIX = ".tar.xz"
#: The environment variable with the directory that a process and those that it starts unpack into.
SHARED = "EXHUME_UNPACKED_LOGS"

#: Path below the story -> content.
Files = dict[str, bytes]


@dataclass(frozen=True)
class Entry:
    """A line of the manifest."""

    files: int
    size_bytes: int
    sha256: str
    name: str

    def __str__(self) -> str:
        return f"{self.files:>4} {self.size_bytes:>9} {self.sha256} {self.name}"


def share() -> None:
    """Make the directory to unpack into; it goes when this process ends."""
    directory = tempfile.mkdtemp(prefix="exhume-logs-")
    os.environ[SHARED] = directory
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(directory, ignore_errors=True)

    atexit.register(remove)


@cache
def unpacked() -> Path:
    """The directory with a plain directory for each story. The first process that asks unpacks, all others wait for it."""
    if SHARED not in os.environ:
        share()
    shared = Path(os.environ[SHARED])
    stories = shared / "stories"
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stories.exists():
            unfinished = shared / "unfinished"
            unpack(unfinished)
            unfinished.rename(stories)
    return stories


def unpack(directory: Path) -> None:
    """Write every story as plain files."""
    for archive in archives():
        for path, content in read(archive).items():
            target = directory / name_of(archive) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


def archives(root: Path = PACKED) -> Iterator[Path]:
    """Every archive, in the order of the names."""
    return iter(sorted(root.rglob(f"*{SUFFIX}")))


def name_of(archive: Path, root: Path = PACKED) -> str:
    """The name of a story, such as `facts/txn-order`."""
    return archive.relative_to(root).as_posix().removesuffix(SUFFIX)


def read(archive: Path) -> Files:
    """The files of a story."""
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(archive.read_bytes()))) as tar:
        contents = ((member.name, tar.extractfile(member)) for member in tar)
        return {name: content.read() for name, content in contents if content is not None}


def read_directory(story: Path) -> Files:
    """The files of a story that is not packed."""
    return {path.relative_to(story).as_posix(): path.read_bytes() for path in sorted(story.rglob("*")) if path.is_file()}


def pack(files: Files) -> bytes:
    """An archive. The same files make the same bytes: no times, no owners, in the order of the names."""
    tarred = io.BytesIO()
    with tarfile.open(fileobj=tarred, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            tar.addfile(member, io.BytesIO(files[name]))
    return lzma.compress(tarred.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def entry_of(name: str, files: Files) -> Entry:
    """What the manifest must say of these files."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path}\0{len(files[path])}\0".encode())
        digest.update(files[path])
    return Entry(len(files), sum(map(len, files.values())), digest.hexdigest(), name)


def manifest() -> list[Entry]:
    """Every line of the manifest."""
    lines = (line.split() for line in MANIFEST.read_text(encoding="utf-8").splitlines())
    return [Entry(int(files), int(size), sha256, name) for files, size, sha256, name in lines]
