"""Find the log directories among the given paths.

    a data directory       has a file of a log directory's root, or directories named `__consumer_offsets-N`
    a partition directory  has segments in it, or is named `__consumer_offsets-N`
    a segment file         begins with a batch, or is named like a segment
    an archive             is searched like a directory
    any other directory    is searched, level by level

A place is a path of this machine or a URI (`codecs.uris`).

Names only decide what to read; the reader then checks the content of each file.
"""

from __future__ import annotations

import os
import re
import stat
import struct
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

from exhume.codecs.file_content import begins_like_a_log, looks_like
from exhume.codecs.file_names import (
    OFFSETS_TOPIC,
    FileKind,
    FileName,
    as_text,
    is_root_file,
    is_side_file,
    parse_directory_name,
    parse_file_name,
)
from exhume.codecs.uris import Uri, has_lost_a_slash
from exhume.codecs.volumes import Entry, LocalVolume, Volume, join, map_file, unreadable
from exhume.errors import EvidenceError
from exhume.findings import Finding, Findings

if TYPE_CHECKING:
    from exhume.codecs.remote_volume import RemoteFile, RemoteVolume

#: The limit of a search; a search of more directories was started in the wrong place.
MAX_SEARCHED_DIRECTORIES = 20_000

_KINDS: dict[FileKind, str] = {
    "index": "an offset index",
    "timeindex": "a time index",
    "txnindex": "a transaction index",
    "snapshot": "a producer snapshot",
    "checkpoint": "a snapshot of the cluster metadata",
}
_ARCHIVE_SUFFIX = re.compile(r"\.(tar|tgz|tbz2?|txz|zip|tar\.(gz|bz2|xz|zst))$")
_SEGMENT = re.compile(r"[0-9]{20}\.log(\.|$)")
_INT64 = struct.Struct(">q")
_MAGIC_BYTES = 512
_LOOKED_AT_BYTES = 1024 * 1024
_LOG_REMEDY = "Give a segment (.log), a partition directory or a log directory"


@dataclass(slots=True)
class Given:
    """A partition directory that the caller named, and the only segment files to read of it (name to base offset); None: all."""

    name: str
    files: dict[str, int] | None


@dataclass(slots=True)
class Place:
    """A log directory in a volume: all of it (`is_data_directory`), or its `given` directories, by path in the volume."""

    volume: Volume
    directory: str
    name: str
    is_data_directory: bool = False
    given: dict[str, Given] = field(default_factory=dict)


def find_places(paths: Sequence[Path | Uri], findings: Findings, temp_dir: Path | None = None) -> tuple[list[Place], list[Volume]]:
    """Return the log directories of these paths in the order of the search, and their volumes.

    Raises:
        EvidenceError: a path that is missing, unreadable or no evidence; or no partition of the offsets topic in any path.
    """
    search = _Search(findings, temp_dir)
    for path in paths:
        search.add(path)
    search.require_partition(paths)
    return list(search.places.values()), search.volumes


class _Search:
    """Collects places; a directory that is reached twice is one place."""

    def __init__(self, findings: Findings, temp_dir: Path | None) -> None:
        self.places: dict[str, Place] = {}
        self.volumes: list[Volume] = []
        self._findings = findings
        self._temp_dir = temp_dir
        self._archives: set[str] = set()
        self._found_partition = False
        self._other_topics: set[str] = set()
        self._archives_passed: list[str] = []

    def add(self, path: Path | Uri) -> None:
        """Search one of the paths given."""
        if isinstance(path, Uri):
            self._add_uri(path)
            return
        try:
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                self._add_directory(path)
            elif not stat.S_ISREG(mode):
                raise EvidenceError("neither a file nor a directory", path=as_text(str(path)), remedy="Give a regular file or a directory")
            elif _is_archive(path):
                self._add_archive(path, path.name)
            else:
                self._add_segment_file(path)
        except OSError as error:
            why = unreadable(as_text(str(path)), error)
            if has_lost_a_slash(path):
                why.remedy = "Give a URI as text, with both slashes: a path keeps only one of them"
            raise why from error

    def require_partition(self, paths: Sequence[Path | Uri]) -> None:
        """Raise unless at least one partition was found."""
        if self._found_partition:
            return
        message = f"no partition of {OFFSETS_TOPIC} found: no directory named {OFFSETS_TOPIC}-N and no segment ({'0' * 20}.log)"
        if self._other_topics:
            message += f", only other topics ({', '.join(sorted(self._other_topics)[:3])})"
        remedy = "Give the log directory of a broker (log.dirs), one of its partition directories, or segment files"
        if self._archives_passed:
            remedy = f"The directory has archives: give them by name ({self._archives_passed[0]})"
        # The unreadable file may be the one that the user wanted.
        unread = next((finding for volume in self.volumes for finding in volume.findings if finding.is_damage), None)
        if unread is not None:
            message += f"; {unread.path} {unread.sentence}"
            remedy = unread.remedy or remedy
        raise EvidenceError(message, path=", ".join(as_text(str(path)) for path in paths), remedy=remedy)

    def _add_directory(self, path: Path) -> None:
        path = _named(path)
        volume = LocalVolume(path)
        entries = volume.entries("")
        if not _is_data_directory(entries) and _is_partition_directory(entries, path.name):
            parent = _named(path.parent)
            self._add_partition(LocalVolume(parent), "", parent.name, path.name)
        else:
            self._search(volume, path.name)

    def _add_uri(self, uri: Uri) -> None:
        # Clients of object stores take long to import, and most evidence is on this machine.
        from exhume.codecs.file_systems import refused
        from exhume.codecs.remote_volume import RemoteFile, RemoteVolume

        above = RemoteVolume(uri.parent, self._temp_dir)
        volume = RemoteVolume(uri, self._temp_dir)
        found = volume.stat()
        if found is None:
            raise refused(str(uri), FileNotFoundError())
        if found.is_directory:
            entries = volume.entries("")
            if uri.path and not _is_data_directory(entries) and _is_partition_directory(entries, uri.name):
                self._add_partition(above, "", uri.parent.name, uri.name)
            else:
                self._search(volume, uri.name)
        elif _is_remote_archive(above, uri.name):
            self._add_archive(RemoteFile(above, uri.name), uri.name)
        else:
            base_offset = _remote_base_offset(above, uri.name, found.size_bytes)
            log_directory = uri.parent.parent
            self._add_partition(
                RemoteVolume(log_directory, self._temp_dir), "", log_directory.name, uri.parent.name, {uri.name: base_offset}
            )

    def _add_archive(self, archive: Path | RemoteFile, name: str) -> None:
        identity, shown = (os.path.realpath(archive), str(archive)) if isinstance(archive, Path) else (archive.identity, archive.shown)
        if identity in self._archives:
            self._report_twice(as_text(shown))
            return
        self._archives.add(identity)
        from exhume.codecs.archives import ArchiveVolume

        self._search(ArchiveVolume(archive, self._temp_dir), _ARCHIVE_SUFFIX.sub("", name))

    def _add_segment_file(self, path: Path) -> None:
        directory = _named(path.parent)
        base_offset = _base_offset(path)
        log_directory = _named(directory.parent)
        self._add_partition(LocalVolume(log_directory), "", log_directory.name, directory.name, {path.name: base_offset})

    def _search(self, volume: Volume, name: str) -> None:
        """Find the log directories of this volume, level by level. `name` is that of its root."""
        self._use(volume)
        waiting = deque([("", name)])
        searched = 0
        while waiting:
            directory, own_name = waiting.popleft()
            searched += 1
            if searched > MAX_SEARCHED_DIRECTORIES:
                sentence = f"this directory contains more than {MAX_SEARCHED_DIRECTORIES} directories; the search stopped"
                remedy = "Give the log directories themselves"
                self._findings.add(Finding(code="search_ended", sentence=sentence, path=volume.shown(""), remedy=remedy, is_damage=True))
                return
            entries = volume.entries(directory)
            partition = parse_directory_name(own_name)
            if _is_data_directory(entries):
                self._add_data_directory(volume, directory, own_name, entries)
            elif not _is_partition_directory(entries, own_name):
                waiting.extend((entry.path, entry.name) for entry in entries if entry.is_directory)
                self._archives_passed += [volume.shown(entry.path) for entry in entries if _ARCHIVE_SUFFIX.search(entry.name)]
            elif partition is not None and partition.topic != OFFSETS_TOPIC:
                self._other_topics.add(partition.topic)
            elif directory:
                parent = directory.rpartition("/")[0]
                self._add_partition(volume, parent, parent.rpartition("/")[2] or name, own_name)
            else:
                # An archive of the files of one partition has them in its root.
                self._place(volume, "", name).given[""] = Given(name, None)
                self._found_partition = True

    def _add_data_directory(self, volume: Volume, directory: str, name: str, entries: list[Entry]) -> None:
        self._found_partition |= any(map(_is_offsets_partition, entries))
        place = self._place(volume, directory, name)
        if place.is_data_directory:
            self._report_twice(volume.shown(directory))
        place.is_data_directory = True
        for path, given in list(place.given.items()):
            if not _has_suffix(given):
                del place.given[path]
                self._report_twice(place.volume.shown(path))

    def _add_partition(self, volume: Volume, directory: str, directory_name: str, name: str, files: dict[str, int] | None = None) -> None:
        """Add the partition directory `name` of this log directory, or some files of it."""
        self._found_partition = True
        place = self._place(volume, directory, directory_name)
        path = join(place.directory, name)
        given = Given(name, files)
        earlier = place.given.get(path)
        if place.is_data_directory and not (_has_suffix(given) and earlier is None):
            self._report_twice(place.volume.shown(join(path, next(iter(files))) if files else path))
        elif earlier is None:
            place.given[path] = given
        elif earlier.files is not None and files is not None and not earlier.files.keys() & files.keys():
            earlier.files |= files
        else:
            self._report_twice(place.volume.shown(join(path, next(iter(files))) if files else path))
            if files is None:
                earlier.files = None

    def _place(self, volume: Volume, directory: str, name: str) -> Place:
        identity = volume.identity(directory)
        if identity not in self.places:
            self._use(volume)
            self.places[identity] = Place(volume, directory, name)
        return self.places[identity]

    def _use(self, volume: Volume) -> None:
        if volume not in self.volumes:
            self.volumes.append(volume)

    def _report_twice(self, path: str) -> None:
        sentence = "given more than once, by itself or with a directory that contains it; it is read once"
        remedy = "Leftovers of a directory are read with --include"
        self._findings.add(Finding(code="duplicate_segment", severity="info", sentence=sentence, path=path, remedy=remedy))


def _named(path: Path) -> Path:
    """Return this path in a form that ends with a name, not with `.` or `..`."""
    return path if path.name not in ("", "..") else path.resolve()


def _is_archive(path: Path) -> bool:
    if parse_file_name(path.name) is not None:
        return False
    with path.open("rb") as stream:
        return _is_packed(stream)


def _is_remote_archive(volume: RemoteVolume, name: str) -> bool:
    return parse_file_name(name) is None and _is_packed(BytesIO(volume.read(name, 0, _MAGIC_BYTES)))


def _is_packed(stream: IO[bytes]) -> bool:
    # Most evidence has no archive, and needs none of the modules that unpack one.
    from exhume.codecs.archive_streams import archive_kind

    return archive_kind(stream) is not None


def _base_offset(path: Path) -> int:
    """The base offset of this segment file by its name, else by its first batch; raises `EvidenceError` for a file that is no log."""
    shown = as_text(str(path))
    name = _segment_name(path.name, shown)
    return _checked_base_offset(name, map_file(path), shown)


def _remote_base_offset(volume: RemoteVolume, file: str, size_bytes: int) -> int:
    """The base offset of a remote segment file. A file with the size and the name of a segment is not fetched for it."""
    name = _segment_name(file, volume.shown(file))
    if name is not None and size_bytes > _LOOKED_AT_BYTES:
        return name.record_offset
    return _checked_base_offset(name, volume.open(file), volume.shown(file))


def _segment_name(file: str, shown: str) -> FileName | None:
    name = parse_file_name(file)
    if name is not None and name.kind != "log":
        raise EvidenceError(f"this is {_KINDS[name.kind]}, not a log", path=shown, remedy="Give the .log beside it, or the directory")
    if is_side_file(file):
        raise EvidenceError("this is a checkpoint or metadata, not a log", path=shown, remedy="Give the directory that contains it")
    return name


def _checked_base_offset(name: FileName | None, buffer: memoryview, shown: str) -> int:
    what = looks_like(buffer)
    if what is not None:
        raise EvidenceError(f"not a log: it looks like {what}", path=shown, remedy=_LOG_REMEDY)
    if name is not None:
        return name.record_offset
    if not begins_like_a_log(buffer):
        raise EvidenceError("not a log: neither its name nor its first bytes are those of a segment", path=shown, remedy=_LOG_REMEDY)
    return max(int(_INT64.unpack_from(buffer)[0]), 0)


def _is_data_directory(entries: Iterable[Entry]) -> bool:
    return any(_is_offsets_partition(entry) or (not entry.is_directory and is_root_file(entry.name)) for entry in entries)


def _is_offsets_partition(entry: Entry) -> bool:
    name = parse_directory_name(entry.name) if entry.is_directory else None
    return name is not None and name.offsets_partition is not None


def _is_partition_directory(entries: Iterable[Entry], name: str) -> bool:
    own = parse_directory_name(name)
    if own is not None and own.offsets_partition is not None:
        return True
    # A broker writes 20 digits; other programs number their logs with fewer.
    return any(not entry.is_directory and _SEGMENT.match(entry.name) is not None for entry in entries)


def _has_suffix(given: Given) -> bool:
    """Return True for a whole partition directory with a suffix, which a search of the data directory would not read."""
    name = parse_directory_name(given.name)
    return given.files is None and (name is None or name.suffix is not None or name.offsets_partition is None)
