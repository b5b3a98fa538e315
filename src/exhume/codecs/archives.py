"""Archives as volumes: tar (plain, gzip, bzip2, xz, zstd) and zip.

An archive may be hostile. It is read once from front to back. The members that can hold evidence are copied one after the other into one
anonymous temporary file, which is then mapped. No path of an archive reaches the file system. Links and devices are left out. The number
of members and of unfolded bytes is limited. The members before a damaged place are used.
"""

from __future__ import annotations

import calendar
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from exhume.codecs.archive_streams import CHUNK_BYTES, DAMAGE, ArchiveKind, ForwardStream, archive_kind, decompressed
from exhume.codecs.file_names import as_text, matters, parse_directory_name
from exhume.codecs.limits import LIMITS
from exhume.codecs.mapping import map_descriptor
from exhume.codecs.volumes import Entry, join, reason, temporary_file, unreadable
from exhume.errors import EvidenceError
from exhume.findings import Finding, Findings

_MAX_PATH_PARTS = 64
_BY_ITSELF = "Find out who made this archive; if you trust it, give the file itself"
_LISTED_TWICE = "the archive lists this member more than once; it is read once"
_WHOLE_COPY = "Give a whole copy of the archive"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """The limits of one archive. A segment never has more than 2 GiB: positions in it are int32.

    `directories`: of the tree of the members that are kept. `unpacked_bytes` and `ratio`: an archive unfolds to at most so many bytes, and
    so many times its own size besides. Preallocated indexes are zeros, so honest archives may have a high ratio up to some size.
    """

    members: int = 1_000_000
    directories: int = 100_000
    member_bytes: int = 2**31
    kept_bytes: int = 64 * 2**30
    unpacked_bytes: int = 4 * 2**30
    ratio: int = field(default_factory=lambda: LIMITS.unpack_ratio)


@dataclass(frozen=True, slots=True)
class _Member:
    """A member that is kept, from `start` on in the temporary file."""

    start: int
    entry: Entry


class _LimitReachedError(Exception):
    """The archive exceeds a limit; the members read so far are used."""

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy


class ArchiveFile(Protocol):
    """An archive file, local or in an object store."""

    @property
    def shown(self) -> str: ...

    @property
    def identity(self) -> str: ...

    def open(self) -> IO[bytes]:
        """Open the whole archive at its start."""
        ...


@dataclass(frozen=True, slots=True)
class _LocalFile:
    path: Path

    @property
    def shown(self) -> str:
        return str(self.path)

    @property
    def identity(self) -> str:
        return os.path.realpath(self.path)

    def open(self) -> IO[bytes]:
        return self.path.open("rb")


class ArchiveVolume:
    """An archive as a tree of the members that can matter. Shown paths have the form `archive.tar!path/of/member`.

    A pickled volume holds its arguments only: the process that loads it unpacks the archive again.

    Args:
        archive: the path of the archive, or an object that opens it.
        temp_dir: the directory for members while they are in use; the system's directory for temporary files if None.

    Raises:
        EvidenceError: the file is no archive, or so damaged that no member can be read, or there is no room to unpack it.
        RequestError: nothing can be written to `temp_dir`.
    """

    def __init__(self, archive: Path | ArchiveFile, temp_dir: Path | None = None, limits: ArchiveLimits | None = None) -> None:
        self.findings = Findings()
        self._archive: ArchiveFile = _LocalFile(archive) if isinstance(archive, Path) else archive
        self._temp_dir = temp_dir
        self._limits = limits or ArchiveLimits()
        self._members: dict[str, _Member] = {}
        self._directories: dict[str, set[str]] = {"": set()}
        self._member_count = 0
        self._left_bytes = 0
        self._kept_bytes = 0
        self._kept: memoryview | None = None
        with ExitStack() as stack:
            file = stack.enter_context(temporary_file(temp_dir))
            self._read(file)
            self._kept = map_descriptor(file.fileno(), self._kept_bytes)

    def __reduce__(self) -> tuple[type[ArchiveVolume], tuple[Any, ...]]:
        return ArchiveVolume, (self._archive, self._temp_dir, self._limits)

    def entries(self, directory: str) -> list[Entry]:
        return [entry for name in sorted(self._directories.get(directory, ())) if (entry := self.find(join(directory, name))) is not None]

    def find(self, path: str) -> Entry | None:
        if path in self._directories:
            return Entry(path, is_directory=True)
        member = self._members.get(path)
        return member.entry if member else None

    def expect(self, paths: Sequence[str]) -> None:
        """Do nothing: the files are already unpacked."""

    def open(self, path: str) -> memoryview:
        member = self._members.get(path)
        if member is None or self._kept is None:
            why = "the archive has no such member" if self._kept is not None else "the archive was closed"
            raise EvidenceError(why, path=self.shown(path), remedy="Open the archive again")
        return self._kept[member.start : member.start + member.entry.size_bytes]

    def open_window(self, path: str, start: int, end: int) -> memoryview:  # noqa: ARG002
        return self.open(path)[:end]

    def read(self, path: str, start: int, size_bytes: int) -> bytes:
        return bytes(self.open(path)[start : start + size_bytes])

    def shown(self, path: str) -> str:
        return as_text(f"{self._archive.shown}!{path}" if path else self._archive.shown)

    def identity(self, path: str) -> str:
        return f"{self._archive.identity}!{path}"

    def close(self) -> None:
        self._kept = None

    def _read(self, file: IO[bytes]) -> None:
        """Read the archive from front to back and keep in `file` the members that can hold evidence."""
        keeper = _Keeper(file)
        try:
            with self._archive.open() as stream:
                kind = archive_kind(stream)
                if kind is None:
                    raise EvidenceError(
                        "not an archive that exhume can read",
                        path=self.shown(""),
                        remedy="Give a tar (plain, gzip, bzip2, xz, zstd) or a zip",
                    )
                self._left_bytes = self._limits.unpacked_bytes + self._limits.ratio * stream.seek(0, os.SEEK_END)
                stream.seek(0)
                if kind == "zip":
                    self._read_zip(stream, keeper)
                else:
                    self._read_tar(ForwardStream(decompressed(stream, kind), self._left_bytes), kind, keeper)
        except _LimitReachedError as limit:
            remedy = limit.remedy or "Unpack the part that you need, on a disk with enough space, and give the directory"
            self._report("archive_limit", "", f"{limit}; all later members are left out", remedy)
        except OSError as error:
            raise unreadable(self.shown(""), error) from error
        self._kept_bytes = keeper.finish()

    def _read_tar(self, stream: ForwardStream, kind: ArchiveKind, keeper: _Keeper) -> None:
        path = ""
        try:
            archive = tarfile.TarFile(fileobj=stream)
            while (member := stream.read_header(archive)) is not None:
                # tarfile keeps every member in memory, and nothing here needs them.
                archive.members.clear()  # type: ignore[attr-defined]
                path = member.name
                self._take_tar_member(archive, member, stream, keeper)
            if stream.stopped_at_end_mark:
                return
            why = stream.damage or ("its end mark is missing" if stream.stopped_at_end else "the next bytes are not a member")
        except (tarfile.TarError, *_HOSTILE_HEADER) as error:
            why = stream.damage or str(error)
        if stream.is_beyond_limit:
            raise self._unfolds_too_far()
        if not self._member_count:
            remedy = "If this is a single compressed file, unpack it first" if kind != "tar" else _WHOLE_COPY
            raise EvidenceError(f"the {kind} data contains no tar archive: {why}", path=self.shown(""), remedy=remedy)
        self._report("archive_damaged", path, f"the archive is cut or damaged after this member: {why}", _WHOLE_COPY)

    def _take_tar_member(self, archive: tarfile.TarFile, member: tarfile.TarInfo, stream: ForwardStream, keeper: _Keeper) -> None:
        if not member.isfile() and not member.isdir():
            self._skip_special(member.name, "a link" if member.issym() or member.islnk() else "a device or a pipe")
            return
        path = self._enter(member.name, is_directory=member.isdir())
        if path is None:
            return
        entry = Entry(path, size_bytes=member.size, mtime_ms=_milliseconds(member.mtime))
        if member.issparse():
            content = archive.extractfile(member)
            if content is not None:
                self._keep(entry, content.read, keeper)
        else:
            # Read directly: tarfile returns no byte of a chunk that is cut.
            stream.seek(member.offset_data)
            self._keep(entry, stream.read, keeper)

    def _read_zip(self, stream: IO[bytes], keeper: _Keeper) -> None:
        try:
            archive = zipfile.ZipFile(stream)
        except (zipfile.BadZipFile, *_HOSTILE_HEADER) as error:
            remedy = "A zip has its list of members at its end: give a whole copy, or repair this one (zip -FF)"
            raise EvidenceError(f"the zip has no list of members: {error}", path=self.shown(""), remedy=remedy) from error
        with archive:
            seen: dict[tuple[int, str], int] = {}
            for member in archive.infolist():
                # Entries of the list may name one local member; it is read once.
                known = (member.header_offset, member.filename)
                seen[known] = seen.get(known, 0) + 1
                if seen[known] > 1:
                    self._count()
                    if seen[known] == 2 and _can_matter(_parts(member.filename)):
                        self._report("duplicate_segment", member.filename, _LISTED_TWICE, None, is_damage=False)
                elif stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                    self._skip_special(member.filename, "a link or a device")
                elif (path := self._enter(member.filename, is_directory=member.filename.endswith("/"))) is not None:
                    self._take_zip_member(archive, member, path, keeper)

    def _take_zip_member(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: str, keeper: _Keeper) -> None:
        self._left_bytes -= min(max(member.file_size, 0), self._limits.member_bytes)
        if self._left_bytes < 0:
            raise self._unfolds_too_far()
        entry = Entry(path, size_bytes=member.file_size, mtime_ms=_zip_mtime_ms(member))
        expected = member.CRC
        # zipfile withholds the last chunk of a member whose checksum is wrong, so `_keep` compares instead.
        member.CRC = None  # type: ignore[assignment]
        try:
            with archive.open(member) as content:
                self._keep(entry, content.read, keeper, expected_crc=expected)
        except (*DAMAGE, *_HOSTILE_HEADER) as error:
            self._report("archive_damaged", path, f"this member cannot be unpacked: {error}", _WHOLE_COPY)

    def _count(self) -> None:
        self._member_count += 1
        if self._member_count > self._limits.members:
            raise _LimitReachedError(f"the archive has more than {self._limits.members} members")

    def _enter(self, name: str, *, is_directory: bool) -> str | None:
        """Add the directories of this member to the tree; return the path to keep it under, None for a member that is not kept."""
        self._count()
        parts = _parts(name)
        can_matter = not is_directory and _can_matter(parts)
        if ".." in parts or len(parts) > _MAX_PATH_PARTS:
            if can_matter:
                sentence = "the path of this member leads out of the archive or has too many parts; the member is left out"
                self._report("hostile_member", name, sentence, _BY_ITSELF)
            return None
        partition = parse_directory_name(parts[-1]) if is_directory and parts else None
        # A directory that holds nothing to read takes no memory, but an empty partition is worth a word.
        if can_matter or (partition is not None and partition.offsets_partition is not None):
            self._enter_directory(parts if is_directory else parts[:-1])
        return "/".join(parts) if can_matter else None

    def _unfolds_too_far(self) -> _LimitReachedError:
        return _LimitReachedError(
            f"the archive unfolds to more than {self._limits.unpacked_bytes} bytes and {self._limits.ratio} times its own size",
            remedy="If you trust it, raise --unpack-ratio, or unpack the part that you need and give the directory",
        )

    def _enter_directory(self, parts: list[str]) -> None:
        if "/".join(parts) in self._directories:
            return
        if len(self._directories) > self._limits.directories:
            raise _LimitReachedError(f"the members with evidence are in more than {self._limits.directories} directories")
        for length, name in enumerate(parts):
            parent = "/".join(parts[:length])
            self._directories[parent].add(name)
            path = join(parent, name)
            if path not in self._directories:
                self._directories[path] = set()
                if path in self._members:
                    self._report_both(path)

    def _report_both(self, path: str) -> None:
        # The tree shows the directory.
        self._report("hostile_member", path, "the archive has a file and a directory of this name; the file is left out", _BY_ITSELF)

    def _skip_special(self, name: str, what: str) -> None:
        self._count()
        parts = [part for part in name.split("/") if part]
        partition = parse_directory_name(parts[-1]) if parts else None
        if _can_matter(parts) or (partition is not None and partition.offsets_partition is not None):
            self._report(
                "special_member",
                name,
                f"this member is {what}, not a file; it is left out",
                "Pack the files that the links point to (tar -h)",
            )

    def _keep(self, entry: Entry, read: Callable[[int], bytes], keeper: _Keeper, expected_crc: int | None = None) -> None:
        """Copy a member into the temporary file, as far as it can be read."""
        path, size_bytes = entry.path, entry.size_bytes
        if not 0 <= size_bytes <= self._limits.member_bytes:
            sentence = f"this member has {size_bytes} bytes by its header, no segment more than {self._limits.member_bytes}; it is left out"
            self._report("member_too_large", path, sentence, "Unpack it yourself and give the file")
            return
        if keeper.position + size_bytes > self._limits.kept_bytes:
            raise _LimitReachedError(f"the members with evidence have more than {self._limits.kept_bytes} bytes")
        start = keeper.position
        crc, damage = keeper.copy(read, size_bytes)
        kept_bytes = keeper.position - start
        if kept_bytes < size_bytes:
            sentence = f"the archive has only {kept_bytes} of the {size_bytes} bytes of this member; they are used"
            self._report("archive_damaged", path, f"{sentence} ({damage})" if damage else sentence, _WHOLE_COPY)
        elif damage or expected_crc not in (None, crc):
            self._report("archive_damaged", path, f"{damage or 'the checksum is wrong'}; the bytes are used as they are", _WHOLE_COPY)
        self._add_member(_Member(start, Entry(path, size_bytes=kept_bytes, mtime_ms=entry.mtime_ms)), keeper)

    def _add_member(self, member: _Member, keeper: _Keeper) -> None:
        path = member.entry.path
        first = self._members.setdefault(path, member)
        directory, _, name = path.rpartition("/")
        self._directories[directory].add(name)
        if first is member:
            if path in self._directories:
                self._report_both(path)
            return
        is_same = first.entry.size_bytes == member.entry.size_bytes and keeper.is_same(first.start, member.start, member.entry.size_bytes)
        sentence = (
            "the archive has this member twice, with the same bytes"
            if is_same
            else "the archive has two members of this name with different bytes; the first is read"
        )
        remedy = None if is_same else "Unpack the other one yourself and give the file"
        self._report("duplicate_segment", path, sentence, remedy, is_damage=False)

    def _report(self, code: str, path: str, sentence: str, remedy: str | None, *, is_damage: bool = True) -> None:
        self.findings.add(Finding(code=code, sentence=sentence, path=self.shown(path), remedy=remedy, is_damage=is_damage))


class _Keeper:
    """The temporary file that holds the copied members, one after the other."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.position = 0

    def copy(self, read: Callable[[int], bytes], size_bytes: int) -> tuple[int, str | None]:
        """Copy up to this many bytes; return their CRC-32, and the error if some could not be read."""
        crc = 0
        try:
            while size_bytes > 0 and (chunk := read(min(CHUNK_BYTES, size_bytes))):
                self._write(chunk)
                crc = zlib.crc32(chunk, crc)
                size_bytes -= len(chunk)
        except (*DAMAGE, tarfile.TarError) as error:
            return crc, str(error) or type(error).__name__
        return crc, None

    def is_same(self, first: int, second: int, size_bytes: int) -> bool:
        """Return True if the bytes at these two positions are the same."""
        self.finish()
        kept = map_descriptor(self._file.fileno(), self.position)
        return kept[first : first + size_bytes] == kept[second : second + size_bytes]

    def finish(self) -> int:
        """Set the size of the file to the copied bytes, and return it."""
        try:
            self._file.flush()
            self._file.truncate(self.position)
        except OSError as error:
            raise _no_room(error) from error
        return self.position

    def _write(self, chunk: bytes) -> None:
        try:
            # Preallocated indexes are all zeros: they become a hole and take no room.
            if chunk.strip(b"\0"):
                self._file.seek(self.position)
                self._file.write(chunk)
        except OSError as error:
            raise _no_room(error) from error
        self.position += len(chunk)


def _no_room(error: OSError) -> EvidenceError:
    return EvidenceError(
        f"the archive cannot be unpacked: {reason(error)}", remedy="Name a directory with more space for temporary files (--temp-dir)"
    )


#: The errors that the standard library raises for forged headers, besides its own kinds.
_HOSTILE_HEADER = (ValueError, OverflowError, IndexError, KeyError, NotImplementedError, RecursionError)


def _parts(name: str) -> list[str]:
    return [part for part in name.split("/") if part not in ("", ".")]


def _can_matter(parts: list[str]) -> bool:
    return bool(parts) and matters(parts[-2] if len(parts) > 1 else "", parts[-1])


def _milliseconds(seconds: float) -> int | None:
    return int(seconds * 1000) if abs(seconds) < 2**53 else None


def _zip_mtime_ms(member: zipfile.ZipInfo) -> int | None:
    """The time of a member, taken as UTC because it has no zone. None if it is not a valid time."""
    year, month, day, hour, minute, second = member.date_time
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 62):
        return None
    return calendar.timegm((year, month, day, hour, minute, second)) * 1000
