"""The segments of one captured partition: batches are appended byte for byte, and read back after a stop.

A segment is named after its first offset, as a broker names it. The files are the only truth about what was captured: after a kill, the
last segment is cut after its last whole batch, and capturing goes on from there.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from exhume.codecs.batches import crc_matches, end_reason, read_batch_header
from exhume.codecs.file_names import LEADER_EPOCHS, OFFSETS_TOPIC, PARTITION_METADATA, parse_file_name
from exhume.codecs.kernels import scan as header
from exhume.codecs.kernels.types import Rows
from exhume.codecs.volumes import map_file
from exhume.errors import EvidenceError

_SCANNED_BATCHES = 4096
_NO_EPOCH = -1
#: The number of gaps that the manifest lists of each partition; `missing_offsets` counts all.
MOST_GAPS = 1000


class Gap(NamedTuple):
    """Record offsets that the leader no longer had when they were fetched, both ends included."""

    first_offset: int
    last_offset: int


@dataclass(slots=True)
class Scanned:
    """The whole batches at the beginning of some bytes: `buffer[start:end]`, without those that were captured before."""

    start: int = 0
    end: int = 0
    first_offset: int | None = None
    next_offset: int = 0
    batch_count: int = 0
    record_count: int = 0
    last_epoch: int = _NO_EPOCH
    epochs: list[tuple[int, int]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    unsound_offsets: list[int] = field(default_factory=list)
    max_timestamp_ms: int = -1
    #: False if a batch does not have the number of its records in its header.
    is_counted: bool = True


def scan_batches(buffer: memoryview, next_offset: int, last_epoch: int, *, stops_at_damage: bool = False) -> Scanned:
    """Scan the batches of `buffer` that begin at `next_offset` or later; ends before the first batch that is not whole.

    With `stops_at_damage` it also ends before a batch whose checksum does not match.
    """
    scanned = Scanned(next_offset=next_offset, last_epoch=last_epoch)
    array = np.frombuffer(buffer, dtype=np.uint8)
    rows = np.empty((_SCANNED_BATCHES, header.COLUMNS), dtype=np.int64)
    position, size = 0, len(buffer)
    while position < size:
        count, after = header.scan(array, position, size, True, rows)
        if not count:
            after = _scan_compressed_messages(buffer, position, rows)
            count = 1 if after > position else 0
        if not count:
            break
        taken = _take(scanned, rows[: int(count)], stops_at_damage=stops_at_damage)
        if taken < count:
            scanned.end = int(rows[taken, header.POSITION])
            return scanned
        position = scanned.end = int(after)
    return scanned


def _scan_compressed_messages(buffer: memoryview, position: int, rows: Rows) -> int:
    """Fill the first row with a batch that the kernel leaves to others: compressed messages of formats 0 and 1. Returns its end."""
    if end_reason(buffer, position, len(buffer)) is not None:
        return position
    batch = read_batch_header(buffer, position)
    row = rows[0]
    row[header.POSITION], row[header.SIZE] = position, batch.size_bytes
    row[header.BASE_OFFSET] = row[header.LAST_OFFSET] = batch.last_offset
    row[header.RECORD_COUNT] = 0
    row[header.LEADER_EPOCH] = header.NO_LEADER_EPOCH
    row[header.MAX_TIMESTAMP] = -1
    row[header.MAGIC] = batch.magic
    row[header.IS_SOUND] = crc_matches(buffer, batch)
    return batch.end_position


def _take(scanned: Scanned, rows: Rows, *, stops_at_damage: bool) -> int:
    """Add these batches to the scan. Returns how many; the rest begins with damage that ends it."""
    taken = len(rows)
    unsound = np.flatnonzero(rows[:, header.IS_SOUND] == 0)
    if len(unsound):
        if stops_at_damage:
            taken = int(unsound[0])
        else:
            scanned.unsound_offsets += rows[unsound, header.BASE_OFFSET].tolist()
    rows = rows[:taken]
    is_new = rows[:, header.LAST_OFFSET] >= scanned.next_offset
    if not is_new.all():
        # Batches before the wanted offset come first; the kernel found them in the order of the bytes.
        first = int(np.argmax(is_new)) if is_new.any() else taken
        if scanned.batch_count == 0:
            scanned.start = int(rows[first - 1, header.POSITION] + rows[first - 1, header.SIZE])
        rows = rows[first:]
    if not len(rows):
        return taken
    bases, lasts = rows[:, header.BASE_OFFSET], rows[:, header.LAST_OFFSET]
    if scanned.first_offset is None:
        scanned.first_offset = int(bases[0]) if rows[0, header.MAGIC] == 2 else scanned.next_offset
    expected = np.concatenate(([scanned.next_offset], lasts[:-1] + 1))
    # The first offset of compressed messages is inside them.
    for number in np.flatnonzero((bases > expected) & (rows[:, header.RECORD_COUNT] > 0)).tolist():
        scanned.gaps.append(Gap(int(expected[number]), int(bases[number]) - 1))
    epochs = np.where(rows[:, header.LEADER_EPOCH] == header.NO_LEADER_EPOCH, _NO_EPOCH, rows[:, header.LEADER_EPOCH])
    highest = np.maximum.accumulate(np.concatenate(([scanned.last_epoch], epochs)))
    for number in np.flatnonzero(highest[1:] > highest[:-1]).tolist():
        scanned.epochs.append((int(epochs[number]), int(bases[number])))
    scanned.last_epoch = int(highest[-1])
    scanned.is_counted &= bool((rows[:, header.RECORD_COUNT] > 0).all()) or bool((rows[:, header.MAGIC] == 2).all())
    scanned.batch_count += len(rows)
    scanned.record_count += int(rows[:, header.RECORD_COUNT].sum())
    scanned.max_timestamp_ms = max(scanned.max_timestamp_ms, int(rows[:, header.MAX_TIMESTAMP].max()))
    scanned.next_offset = int(lasts[-1]) + 1
    return taken


@dataclass(slots=True)
class _Segment:
    path: Path
    size_bytes: int
    modified_s: float
    sha256: str | None = None


class RecordedPartition:
    """The directory of one captured partition, and the offset from which capturing goes on.

    Args:
        root: the evidence directory.
        number: the offsets partition.
        segment_bytes: a segment that has as many bytes is closed, and the next batch begins another one.
        segment_ms: a segment whose first byte was written so long ago is closed too; None: never.
    """

    def __init__(self, root: Path, number: int, *, segment_bytes: int, segment_ms: int | None) -> None:
        self.number = number
        self.path = root / f"{OFFSETS_TOPIC}-{number}"
        self.next_offset = 0
        self.last_epoch = _NO_EPOCH
        self.epochs: list[tuple[int, int]] = []
        self.gaps: list[Gap] = []
        self.missing_offsets = 0
        self.unsound_offsets: list[int] = []
        self.removed_below: int | None = None
        self.segments: list[_Segment] = []
        #: Bytes cut from the end of the last segment, which had no whole batch in them.
        self.cut_bytes = 0
        self._segment_bytes = segment_bytes
        self._segment_ms = segment_ms
        self._file: BinaryIO | None = None
        self._hash = hashlib.sha256()
        self._opened_at = 0.0
        self._is_dirty = False

    @property
    def size_bytes(self) -> int:
        """The bytes of all segments."""
        return sum(segment.size_bytes for segment in self.segments)

    def resume(self, digests: dict[str, tuple[int, str]], topic_id: str | None) -> None:
        """Find the segments of an earlier run, cut a batch that is not whole, and go on after the last whole one.

        `digests` are size and SHA-256 of files by their path in the evidence directory, as the manifest has them.

        Raises:
            EvidenceError: the directory cannot be read or written.
        """
        self.path.mkdir(exist_ok=True)
        if topic_id is not None:
            write_atomically(self.path / PARTITION_METADATA, f"version: 0\ntopic_id: {topic_id}\n")
        found = sorted(path for path in self.path.iterdir() if _is_segment(path.name))
        self.segments = [_Segment(path, status.st_size, status.st_mtime) for path in found for status in (path.stat(),)]
        for segment in self.segments:
            size, digest = digests.get(self._name(segment), (-1, ""))
            segment.sha256 = digest if size == segment.size_bytes else None
        self._read_epochs()
        while self.segments:
            last = self.segments[-1]
            buffer = map_file(last.path)
            scanned = scan_batches(buffer, 0, _NO_EPOCH, stops_at_damage=True)
            self._hash = hashlib.sha256(buffer[: scanned.end])
            self.cut_bytes += last.size_bytes - scanned.end
            if scanned.end:
                os.truncate(last.path, scanned.end)
                last.size_bytes = scanned.end
                self._take_epochs(scanned.epochs)
                self.next_offset, self.last_epoch = scanned.next_offset, max(scanned.last_epoch, self.last_epoch)
                self._file = last.path.open("ab", buffering=0)
                self._opened_at = last.modified_s
                break
            last.path.unlink()
            self.segments.pop()

    def take(self, buffer: memoryview, scanned: Scanned, *, counts_gaps: bool) -> None:
        """Append the batches of a scan; with `counts_gaps`, missing offsets before them are listed as gaps.

        Raises:
            EvidenceError: the disk refuses the bytes.
        """
        data = buffer[scanned.start : scanned.end]
        if not len(data):
            return
        assert scanned.first_offset is not None
        before = self.next_offset
        try:
            if self._is_full(len(data)):
                self.close()
            if self._file is None:
                self._begin(scanned.first_offset)
            assert self._file is not None
            _write_all(self._file, data)
        except OSError as error:
            raise EvidenceError(f"these bytes cannot be written: {error.strerror}", path=str(self.path)) from error
        self._hash.update(data)
        self.segments[-1].size_bytes += len(data)
        self._is_dirty = True
        self._take_epochs(scanned.epochs)
        self.next_offset, self.last_epoch = scanned.next_offset, scanned.last_epoch
        self.unsound_offsets += scanned.unsound_offsets
        if counts_gaps:
            if scanned.is_counted:
                self.missing_offsets += scanned.next_offset - before - scanned.record_count
            self.gaps += scanned.gaps[: MOST_GAPS - len(self.gaps)]

    def sync(self) -> bool:
        """Force the written bytes to the disk. Returns True if there were any."""
        if not self._is_dirty or self._file is None:
            return False
        os.fsync(self._file.fileno())
        self._is_dirty = False
        return True

    def write_epochs(self) -> None:
        """Write the leader epochs, with the first captured offset of each."""
        lines = [f"{epoch} {offset}\n" for epoch, offset in self.epochs]
        write_atomically(self.path / LEADER_EPOCHS, f"0\n{len(lines)}\n{''.join(lines)}")

    def close(self) -> None:
        """Close the current segment; the next batch begins another one."""
        if self._file is not None:
            self.sync()
            self._file.close()
            self._file = None
            self.segments[-1].sha256 = self._hash.hexdigest()

    def closed_before(self, time_s: float) -> list[Path]:
        """The segments whose last byte was written before this time, oldest first; never the last one."""
        return [segment.path for segment in self.segments[:-1] if segment.modified_s < time_s]

    def closed(self) -> list[tuple[float, int, Path]]:
        """Time of the last write, bytes and path of each segment but the last one."""
        return [(segment.modified_s, segment.size_bytes, segment.path) for segment in self.segments[:-1]]

    def forget(self, path: Path) -> None:
        """Leave the oldest segment out of the manifest, before its file is removed."""
        assert self.segments[0].path == path
        self.segments.pop(0)
        name = parse_file_name(self.segments[0].path.name)
        assert name is not None
        self.removed_below = name.record_offset
        self.epochs = _epochs_from(self.epochs, name.record_offset)

    def files(self) -> Iterator[dict[str, object]]:
        """Path, bytes and SHA-256 of each file, for the manifest."""
        for segment in self.segments:
            is_open = self._file is not None and segment is self.segments[-1]
            if segment.sha256 is None and not is_open:
                segment.sha256 = hashlib.sha256(map_file(segment.path)).hexdigest()
            digest = self._hash.hexdigest() if is_open else segment.sha256
            yield {"path": self._name(segment), "size_bytes": segment.size_bytes, "sha256": digest}
        for name in (LEADER_EPOCHS, PARTITION_METADATA):
            path = self.path / name
            if path.exists():
                data = path.read_bytes()
                yield {"path": f"{self.path.name}/{name}", "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    def _name(self, segment: _Segment) -> str:
        return f"{self.path.name}/{segment.path.name}"

    def _is_full(self, more_bytes: int) -> bool:
        if self._file is None or not self.segments[-1].size_bytes:
            return False
        if self.segments[-1].size_bytes + more_bytes > self._segment_bytes:
            return True
        return self._segment_ms is not None and (time.time() - self._opened_at) * 1000 >= self._segment_ms

    def _begin(self, first_offset: int) -> None:
        path = self.path / f"{first_offset:020}.log"
        self._file = path.open("xb", buffering=0)
        self._hash = hashlib.sha256()
        self._opened_at = time.time()
        self.segments.append(_Segment(path, 0, self._opened_at))
        sync_directory(self.path)

    def _take_epochs(self, epochs: list[tuple[int, int]]) -> None:
        for epoch, offset in epochs:
            if not self.epochs or epoch > self.epochs[-1][0]:
                self.epochs.append((epoch, offset))

    def _read_epochs(self) -> None:
        from exhume.codecs.checkpoints import read_leader_epochs

        path = self.path / LEADER_EPOCHS
        if path.exists() and self.segments:
            self.epochs = [(entry.epoch, entry.start_offset) for entry in read_leader_epochs(path.read_bytes())]
        for segment in self.segments[:-1]:
            # The file is older than a segment that no manifest lists.
            if segment.sha256 is None:
                self._take_epochs(scan_batches(map_file(segment.path), 0, _NO_EPOCH).epochs)
        if self.epochs:
            self.last_epoch = self.epochs[-1][0]


def _epochs_from(epochs: list[tuple[int, int]], offset: int) -> list[tuple[int, int]]:
    """The leader epochs of a log that begins at this offset, as a broker cuts them."""
    earlier = [epoch for epoch, start in epochs if start <= offset]
    return [(earlier[-1], offset), *(entry for entry in epochs if entry[1] > offset)] if earlier else epochs


def _is_segment(name: str) -> bool:
    parsed = parse_file_name(name)
    return parsed is not None and parsed.kind == "log" and parsed.origin == "log"


def _write_all(file: BinaryIO, data: memoryview) -> None:
    while len(data):
        data = data[file.write(data) :]


def write_atomically(path: Path, text: str) -> None:
    """Write a small file so that a kill leaves the old one or the new one.

    Raises:
        EvidenceError: the disk refuses it.
    """
    aside = path.with_name(f"{path.name}.tmp")
    try:
        with aside.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        aside.replace(path)
    except OSError as error:
        raise EvidenceError(f"this file cannot be written: {error.strerror}", path=str(path)) from error


def sync_directory(path: Path) -> None:
    """Force the names in this directory to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
