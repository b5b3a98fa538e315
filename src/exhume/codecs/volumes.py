"""Volumes: trees of directories whose files open as read-only buffers.

A `Volume` lists one directory at a time and opens one file at a time. An unreadable entry becomes a finding in a list, because the other
entries still count, and an `EvidenceError` on opening. Paths inside a volume are parts joined by `/`, the empty path is its
root. Names that are no valid text keep their bytes (surrogate escapes). A volume can be pickled: another process opens it again.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from exhume.codecs.file_names import as_text, matters, parse_file_name
from exhume.codecs.mapping import map_descriptor
from exhume.errors import EvidenceError, RequestError
from exhume.findings import Finding, Findings


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a directory of a volume. Directories have no size; `mtime_ms` is None where it is not known."""

    path: str
    is_directory: bool = False
    size_bytes: int = 0
    mtime_ms: int | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Volume(Protocol):
    """A tree of files to read, local or remote. `findings` has a finding for each unreadable entry so far."""

    @property
    def findings(self) -> Findings: ...

    def entries(self, directory: str) -> list[Entry]:
        """The readable entries of this directory, sorted by name."""
        ...

    def find(self, path: str) -> Entry | None:
        """The entry at this path; None if there is none, or if it cannot be read."""
        ...

    def expect(self, paths: Sequence[str]) -> None:
        """Announce small files that are read next and may be missing; a remote volume requests them all at once."""
        ...

    def open(self, path: str) -> memoryview:
        """The bytes of this file, read-only. They stay valid while any object refers to the buffer; call `release` to free it early.

        Raises:
            EvidenceError: the file cannot be opened.
        """
        ...

    def open_window(self, path: str, start: int, end: int) -> memoryview:
        """Open a file as `open` does, up to the byte `end`. The caller reads no byte before `start`; a remote volume does not fetch it."""
        ...

    def read(self, path: str, start: int, size_bytes: int) -> bytes:
        """Read this number of bytes, fewer if the file ends earlier; a remote volume fetches only these.

        Raises:
            EvidenceError: the file cannot be opened or read.
        """
        ...

    def shown(self, path: str) -> str:
        """This path as valid text for people, also if the name is not valid text."""
        ...

    def identity(self, path: str) -> str:
        """A text that is the same for all names of one file or directory."""
        ...

    def close(self) -> None:
        """Release the resources of the volume. Buffers in use stay valid."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFile:
    """One file of a volume, with its size at the time of the list."""

    volume: Volume = field(repr=False, compare=False)
    entry: Entry

    @property
    def path(self) -> str:
        """Its path as text for people."""
        return self.volume.shown(self.entry.path)

    @property
    def size_bytes(self) -> int:
        return self.entry.size_bytes

    @property
    def mtime_ms(self) -> int | None:
        return self.entry.mtime_ms

    def open(self) -> memoryview:
        """The bytes of the file as `Volume.open` returns them: a context manager that need not be closed."""
        return self.volume.open(self.entry.path)

    def read(self, start: int, size_bytes: int) -> bytes:
        """Some of its bytes, as `Volume.read` returns them."""
        return self.volume.read(self.entry.path, start, size_bytes)


def join(directory: str, name: str) -> str:
    """The path of `name` in `directory`, both inside a volume."""
    return f"{directory}/{name}" if directory and name else directory or name


class LocalVolume:
    """A directory of this machine. Links are followed, except in circles; nothing is opened for writing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.findings = Findings()
        self._shown: dict[str, str] = {}

    def entries(self, directory: str) -> list[Entry]:
        try:
            with os.scandir(self._local(directory)) as scan:
                names = sorted(item.name for item in scan)
        except OSError as error:
            self._report(directory, error)
            return []
        return [entry for name in names if (entry := self.find(join(directory, name))) is not None]

    def find(self, path: str) -> Entry | None:
        local = self._local(path)
        try:
            status = local.stat()
        except FileNotFoundError:
            if local.is_symlink():
                self._report_file(
                    "broken_link", path, "the target of this link does not exist; it is left out", "Copy the file that the link points to"
                )
            return None
        except OSError as error:
            self._report(path, error)
            return None
        if stat.S_ISDIR(status.st_mode):
            if local.is_symlink() and self._leads_back(path):
                self._add("link_loop", path, "this link leads back to a directory that contains it; it is not followed", None)
                return None
            return Entry(path, is_directory=True)
        if not stat.S_ISREG(status.st_mode):
            self._report_file("special_file", path, "neither a file nor a directory; it is left out", None)
            return None
        if not os.access(local, os.R_OK):
            denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            self._report_file("unreadable", path, f"cannot be read: {reason(denied)}; it is left out", remedy(denied))
            return None
        name = parse_file_name(local.name)
        if name is not None and name.kind == "log" and (failure := _failure_to_map(local)) is not None:
            self._report_file("unreadable", path, f"{failure.message}; it is left out", failure.remedy)
            return None
        return Entry(path, size_bytes=status.st_size, mtime_ms=status.st_mtime_ns // 1_000_000)

    def expect(self, paths: Sequence[str]) -> None:
        """Do nothing: the files are local."""

    def open(self, path: str) -> memoryview:
        return map_file(self._local(path))

    def open_window(self, path: str, start: int, end: int) -> memoryview:  # noqa: ARG002
        return self.open(path)[:end]

    def read(self, path: str, start: int, size_bytes: int) -> bytes:
        with self.open(path) as buffer:
            return bytes(buffer[start : start + size_bytes])

    def shown(self, path: str) -> str:
        # Called for every record, so that the result is kept.
        if path not in self._shown:
            self._shown[path] = as_text(str(self._local(path)))
        return self._shown[path]

    def identity(self, path: str) -> str:
        return os.path.realpath(self._local(path))

    def close(self) -> None:
        """Do nothing: each mapping ends with the last buffer that refers to it."""

    def _local(self, path: str) -> Path:
        return self.root / path

    def _leads_back(self, path: str) -> bool:
        """Return True if the link at `path` leads to one of the directories that contain it."""
        target = self.identity(path)
        parts = path.split("/")
        return any(self.identity("/".join(parts[:length])) == target for length in range(len(parts)))

    def _report(self, path: str, error: OSError) -> None:
        if error.errno == errno.ELOOP:
            local = self._local(path)
            what_to_do = "Copy the file that the link points to"
            self._add(
                "link_loop", path, "this link leads to itself; it is left out", what_to_do, is_damage=matters(local.parent.name, local.name)
            )
        else:
            self._add("unreadable", path, f"cannot be read: {reason(error)}; it is left out", remedy(error), is_damage=True)

    def _report_file(self, code: str, path: str, sentence: str, what_to_do: str | None) -> None:
        """Report an unreadable file, unless its name shows that it cannot be evidence."""
        local = self._local(path)
        if matters(local.parent.name, local.name):
            self._add(code, path, sentence, what_to_do, is_damage=True)

    def _add(self, code: str, path: str, sentence: str, what_to_do: str | None, *, is_damage: bool = False) -> None:
        self.findings.add(Finding(code=code, sentence=sentence, path=self.shown(path), remedy=what_to_do, is_damage=is_damage))


def _failure_to_map(path: Path) -> EvidenceError | None:
    """Return the error if this file cannot be opened, mapped or begun: it costs one segment, and not the answer."""
    try:
        buffer = map_file(path)
        # A read reports a broken disk as an error; a mapping would end the process.
        descriptor = _opened(path)
        try:
            os.read(descriptor, 1)
        finally:
            os.close(descriptor)
        buffer.release()
    except EvidenceError as error:
        return error
    except OSError as error:
        return unreadable(as_text(str(path)), error)
    return None


def map_file(path: Path) -> memoryview:
    """The bytes of this file as a read-only mapping; an empty buffer for an empty file.

    The mapping exists while any object refers to the buffer.

    Raises:
        EvidenceError: the file cannot be opened or mapped.
    """
    try:
        descriptor = _opened(path)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise EvidenceError("neither a file nor a directory", path=as_text(str(path)), remedy="Give a regular file")
            return map_descriptor(descriptor, status.st_size)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise unreadable(as_text(str(path)), error) from error


def _opened(path: Path) -> int:
    """Open a file to read, without a change of its access time where the system allows that: to its owner and to root."""
    # O_NONBLOCK: a pipe with the name of a segment must not wait for a writer.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags | getattr(os, "O_NOATIME", 0))
    except PermissionError:
        return os.open(path, flags)


def temporary_file(temp_dir: Path | None) -> IO[bytes]:
    """A file without a name, in the system's directory for temporary files if none is given.

    Raises:
        RequestError: nothing can be written there.
    """
    try:
        return tempfile.TemporaryFile(dir=temp_dir)
    except OSError as error:
        message = f"no temporary file can be made in {temp_dir or tempfile.gettempdir()}: {reason(error)}"
        raise RequestError(message, remedy="Name a directory with space for unpacked and fetched files (--temp-dir)") from error


def unreadable(path: str, error: OSError) -> EvidenceError:
    """The error for a file or directory that the system refuses to read."""
    return EvidenceError(f"cannot be read: {reason(error)}", path=path, remedy=remedy(error))


def reason(error: OSError) -> str:
    """The message of the system in lower case, as part of a sentence."""
    return (error.strerror or str(error)).lower()


def remedy(error: OSError) -> str:
    """The remedy for this error."""
    return _REMEDIES.get(error.errno or 0, "Copy the evidence to a healthy disk and read the copy")


_REMEDIES = {
    errno.EACCES: "Run as a user who may read it, or change the permissions of a copy",
    errno.EPERM: "Run as a user who may read it, or change the permissions of a copy",
    errno.ENOENT: "Check the path",
    errno.ENOTDIR: "Check the path",
    errno.EISDIR: "Name a file in it",
    errno.ELOOP: "The link leads to itself: give the directory that it was meant for",
    errno.ENAMETOOLONG: "Check the path",
    errno.ENOMEM: "This process may not map so much (ulimit -v) or so many files (vm.max_map_count): raise it, or give fewer partitions",
    errno.EMFILE: "Raise the limit on open files (ulimit -n), or give fewer partitions at a time",
    errno.ENFILE: "Too many files are open on this machine: close some and try again",
}
