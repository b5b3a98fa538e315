"""Object stores and distributed file systems as volumes.

A directory is listed with one call. A file is read in ranges, a few at a time: small ones into memory, others into a temporary file
without a name, which is mapped like a local file. The last fetched files are kept, up to a limit, for the next reader.

All ranges of a file are of one version of it: that of its first read. Bytes that are not those of the object are an error, and no damage
of the log.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import IO, Any

import pyarrow as pa
from pyarrow import fs

from exhume.codecs.file_names import as_text
from exhume.codecs.file_systems import file_system, path_in, refused
from exhume.codecs.mapping import map_descriptor
from exhume.codecs.object_versions import is_content_of, tag_of
from exhume.codecs.uris import Uri
from exhume.codecs.volumes import Entry, join, reason, temporary_file
from exhume.errors import EvidenceError
from exhume.findings import Finding, Findings

_RANGE_BYTES = 8 * 1024 * 1024
_RANGES_AT_A_TIME, _LOOKS_AT_A_TIME = 4, 16
#: Files up to this size stay in memory.
_SMALL_BYTES = 1024 * 1024
_MARK_BYTES = 16
_KEPT_IN_MEMORY_BYTES, _KEPT_ON_DISK_BYTES = 64 * 1024 * 1024, 4 * 1024 * 1024 * 1024
_FAILURES = (OSError, pa.ArrowException)


class RemoteVolume:
    """The files below a URI. A pickled volume holds its URI and options only, no fetched bytes.

    Args:
        root: the directory, or the bucket.
        temp_dir: the directory for files while they are in use; the system's directory for temporary files if None.
        tags: the tags of files that another process has read; this one reads the same versions.
    """

    def __init__(self, root: Uri, temp_dir: Path | None = None, tags: Mapping[str, str | None] = MappingProxyType({})) -> None:
        self.root = root
        self.findings = Findings()
        #: The number of bytes fetched so far.
        self.fetched_bytes = 0
        self._temp_dir = temp_dir
        self._lock = Lock()
        self._listed: dict[str, dict[str, Entry]] = {}
        self._expected: dict[str, Entry | None] = {}
        self._tags = dict(tags)
        self._has_digests = False
        self._small, self._large = _Kept(_KEPT_IN_MEMORY_BYTES), _Kept(_KEPT_ON_DISK_BYTES)

    def __reduce__(self) -> tuple[Callable[..., RemoteVolume], tuple[Any, ...]]:
        return RemoteVolume, (self.root, self._temp_dir, self._tags)

    def entries(self, directory: str) -> list[Entry]:
        listed = self._listed.get(directory)
        if listed is None:
            try:
                found = self._file_system.get_file_info(fs.FileSelector(path_in(self.root, directory), allow_not_found=True))
            except _FAILURES as error:
                why = refused(self.shown(directory), error)
                self._report("unreadable", directory, f"{why.message}; it is left out", why.remedy)
                return []
            entries = [entry for info in found if (entry := _entry(info, join(directory, info.base_name))) is not None]
            listed = {entry.name: entry for entry in sorted(entries, key=lambda entry: entry.name)}
            self._listed[directory] = listed
        return list(listed.values())

    def find(self, path: str) -> Entry | None:
        directory, _, name = path.rpartition("/")
        if path and directory in self._listed:
            return self._listed[directory].get(name)
        if path in self._expected:
            return self._expected[path]
        try:
            return self.stat(path)
        except EvidenceError as error:
            self._report("unreadable", path, f"{error.message}; it is left out", error.remedy)
            return None

    def expect(self, paths: Sequence[str]) -> None:
        def look(path: str) -> None:
            try:
                size_bytes = len(self.open(path))
            except EvidenceError as error:
                if isinstance(error.__cause__, FileNotFoundError):
                    self._expected[path] = None
            else:
                self._expected[path] = Entry(path, size_bytes=size_bytes)

        with ThreadPoolExecutor(_LOOKS_AT_A_TIME, thread_name_prefix="exhume-look") as pool:
            list(pool.map(look, paths))

    def stat(self, path: str = "") -> Entry | None:
        """Ask the store for this entry again, without the listed ones.

        Raises:
            EvidenceError: the store refuses.
        """
        try:
            [info] = self._file_system.get_file_info([path_in(self.root, path)])
        except _FAILURES as error:
            raise refused(self.shown(path), error) from error
        return _entry(info, path)

    def open(self, path: str) -> memoryview:
        buffer = self._kept(path)
        if buffer is not None:
            return buffer
        buffer, _ = self._whole(path)
        with self._lock:
            (self._small if len(buffer) <= _SMALL_BYTES else self._large).put(path, buffer)
        return buffer[:]

    def open_window(self, path: str, start: int, end: int) -> memoryview:
        buffer = self._kept(path)
        if buffer is not None:
            return buffer[:end]
        with self._opened(path) as file, temporary_file(self._temp_dir) as spilled:
            # The bytes before the window stay a hole in the temporary file, and take no disk space.
            tag = self._tag(path, file)
            end = min(end, self._size_bytes(path, file))
            self._spill(file, path, start, end, spilled)
            self._check_tag(path, tag)
            return map_descriptor(spilled.fileno(), end)

    def _kept(self, path: str) -> memoryview | None:
        """The bytes of this file if they are still kept; they stay valid after the file is no longer kept."""
        with self._lock:
            for kept in (self._small, self._large):
                if (buffer := kept.get(path)) is not None:
                    return buffer[:]
        return None

    def read(self, path: str, start: int, size_bytes: int) -> bytes:
        with self._opened(path) as file:
            tag = self._tag(path, file)
            end = min(start + size_bytes, self._size_bytes(path, file))
            content = self._range(file, path, start, end - start) if start < end else b""
        self._check_tag(path, tag)
        return content

    def spilled(self, path: str) -> IO[bytes]:
        """The whole file as a temporary file without a name, to be closed by the caller.

        Raises:
            EvidenceError: it cannot be read to its end, or the disk is full.
            RequestError: nothing can be written to the directory for temporary files.
        """
        buffer, spilled = self._whole(path, in_file=True)
        assert spilled is not None
        buffer.release()
        return spilled

    def _whole(self, path: str, *, in_file: bool = False) -> tuple[memoryview, IO[bytes] | None]:
        """Fetch all bytes of one version of this file, a second time if they are not those of its tag; with `in_file` also as a file."""
        first: memoryview | None = None
        while True:
            with ExitStack() as stack:
                file = stack.enter_context(self._opened(path))
                tag, size_bytes = self._tag(path, file), self._size_bytes(path, file)
                spilled = None
                if size_bytes <= _SMALL_BYTES and not in_file:
                    buffer = memoryview(self._range(file, path, 0, size_bytes))
                else:
                    spilled = stack.enter_context(temporary_file(self._temp_dir))
                    self._spill(file, path, 0, size_bytes, spilled)
                    buffer = map_descriptor(spilled.fileno(), size_bytes)
                is_proven = is_content_of(tag, buffer)
                if not is_proven:
                    self._check_tag(path, tag)
                self._has_digests |= bool(is_proven and size_bytes)
                if is_proven is False and first is None:
                    first = buffer
                    continue
                # Where no tag is a digest, such as for objects with keys of the user, equal bytes are all that there is to know.
                if is_proven is False and (self._has_digests or first != buffer):
                    raise self._foreign(path, f"the bytes 0 to {size_bytes - 1} that the store sent are not those of its ETag {tag}, twice")
                if in_file:
                    stack.pop_all()
                    file.close()
                return buffer, spilled

    def _tag(self, path: str, file: pa.NativeFile) -> str | None:
        """Return the tag of an open file; raise if it is not that of its first read."""
        try:
            tag = tag_of(file)
        except _FAILURES as error:
            raise refused(self.shown(path), error, 0) from error
        with self._lock:
            first = self._tags.setdefault(path, tag)
        if tag != first:
            raise self._foreign(path, f"its ETag is {tag} and was {first} when it was first read: it changed meanwhile")
        return tag

    def _check_tag(self, path: str, tag: str | None) -> None:
        """Raise if this file has another tag now: the fetched ranges may be of two versions."""
        if tag is not None:
            with self._opened(path) as file:
                self._tag(path, file)

    def _foreign(self, path: str, message: str, byte_position: int = 0) -> EvidenceError:
        remedy = "Read a copy that no process writes to; if the object did not change, look at the proxies before the store"
        return EvidenceError(message, path=self.shown(path), byte_position=byte_position, remedy=remedy)

    def take_fetched_bytes(self) -> int:
        """Return the number of bytes fetched since the last call."""
        with self._lock:
            fetched, self.fetched_bytes = self.fetched_bytes, 0
        return fetched

    def shown(self, path: str) -> str:
        return as_text(str(self.root.at(path)))

    def identity(self, path: str) -> str:
        return str(self.root.at(path))

    def close(self) -> None:
        with self._lock:
            self._small.clear()
            self._large.clear()

    @property
    def _file_system(self) -> fs.FileSystem:
        return file_system(self.root)

    @contextmanager
    def _opened(self, path: str) -> Iterator[pa.NativeFile]:
        try:
            file = self._file_system.open_input_file(path_in(self.root, path))
        except _FAILURES as error:
            raise refused(self.shown(path), error, 0) from error
        with file:
            yield file

    def _size_bytes(self, path: str, file: pa.NativeFile) -> int:
        """Return the size of the file when it was listed; raise if a broker has changed it since."""
        directory, _, name = path.rpartition("/")
        listed = self._listed.get(directory, {}).get(name)
        size_bytes: int = file.size()
        if listed is not None and size_bytes < listed.size_bytes:
            message = f"it has {size_bytes} bytes and had {listed.size_bytes} when it was listed: it changed meanwhile"
            raise EvidenceError(message, path=self.shown(path), byte_position=size_bytes, remedy="Read a copy that no process writes to")
        return listed.size_bytes if listed is not None else size_bytes

    def _range(self, file: pa.NativeFile, path: str, start: int, size_bytes: int) -> bytes:
        """These bytes of the file, all of them; a second request is made if the first one brings fewer."""
        for _ in range(2):
            content, mark = bytearray(size_bytes), os.urandom(_MARK_BYTES)
            content[-_MARK_BYTES:] = mark[: len(content)]
            try:
                file.seek(start)
                count = file.readinto(content)
            except _FAILURES as error:
                raise refused(self.shown(path), error, start) from error
            # Arrow gives the length that it asked for. Bytes that the store did not send are as they were.
            if count == size_bytes and (size_bytes < _MARK_BYTES or not content.endswith(mark)):
                with self._lock:
                    self.fetched_bytes += size_bytes
                return bytes(content)
        raise self._foreign(path, f"the store sent fewer bytes than {start} to {start + size_bytes - 1}, twice", start)

    def _spill(self, file: pa.NativeFile, path: str, first: int, end: int, spilled: IO[bytes]) -> None:
        """Copy these bytes of the file to their places, range by range; a few ranges are fetched at the same time."""
        descriptor = spilled.fileno()

        def copy(start: int) -> None:
            size_bytes = min(_RANGE_BYTES, end - start)
            if start == first:
                content = self._range(file, path, start, size_bytes)
            else:
                # A file has one position.
                with self._opened(path) as own:
                    self._tag(path, own)
                    content = self._range(own, path, start, size_bytes)
            try:
                written = 0
                while written < len(content):
                    written += os.pwrite(descriptor, content[written:], start + written)
            except OSError as error:
                message = f"no space for fetched files: {reason(error)}"
                remedy = "Name a directory with more space for temporary files (--temp-dir)"
                raise EvidenceError(message, path=self.shown(path), byte_position=start, remedy=remedy) from error

        with ThreadPoolExecutor(_RANGES_AT_A_TIME, thread_name_prefix="exhume-fetch") as pool:
            copies = [pool.submit(copy, start) for start in range(first, end, _RANGE_BYTES)]
            try:
                for done in copies:
                    done.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _report(self, code: str, path: str, sentence: str, remedy: str | None) -> None:
        self.findings.add(Finding(code=code, sentence=sentence, path=self.shown(path), remedy=remedy, is_damage=True))


class RemoteFile:
    """One file of a volume, to read from front to back."""

    def __init__(self, volume: RemoteVolume, path: str) -> None:
        self._volume = volume
        self._path = path
        self.shown = volume.shown(path)
        self.identity = volume.identity(path)

    def open(self) -> IO[bytes]:
        """Open the whole file at its start."""
        return self._volume.spilled(self._path)


class _Kept:
    """Buffers by path; if they have too many bytes, the least recently used are dropped first."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._buffers: OrderedDict[str, memoryview] = OrderedDict()

    def get(self, path: str) -> memoryview | None:
        buffer = self._buffers.get(path)
        if buffer is not None:
            self._buffers.move_to_end(path)
        return buffer

    def put(self, path: str, buffer: memoryview) -> None:
        earlier = self._buffers.pop(path, None)
        self._bytes += len(buffer) - (len(earlier) if earlier is not None else 0)
        self._buffers[path] = buffer
        while self._bytes > self._most_bytes:
            _, gone = self._buffers.popitem(last=False)
            self._bytes -= len(gone)

    def clear(self) -> None:
        self._buffers.clear()
        self._bytes = 0


def _entry(info: fs.FileInfo, path: str) -> Entry | None:
    if info.type == fs.FileType.Directory:
        return Entry(path, is_directory=True)
    if info.type != fs.FileType.File:
        return None
    mtime_ns = info.mtime_ns
    return Entry(path, size_bytes=info.size, mtime_ms=None if mtime_ns is None else mtime_ns // 1_000_000)
