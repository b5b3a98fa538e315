"""The log of one offsets partition as a broker serves it to its coordinator.

A broker does not read all bytes on its disk. At its start it finds the log end in the newest segment; `broker_start` has the rest of the
start. The load then reads batch after batch from the log start to the log end and verifies no checksum. `StrictLog` does the same without
changing a file; `salvaged_batches` is the lenient reading with all sound batches.

Source: Log/LogLoader, LogSegment, FileLogInputStream, Kafka 2.8.2 and 4.3.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from exhume.codecs.batch_format import HEADER_BYTES
from exhume.codecs.batches import Batch, BatchWalk, EndReason, first_offset, overflows, read_header_fields
from exhume.codecs.columns.blocks import readable
from exhume.codecs.indexes import last_indexed_position
from exhume.codecs.kernels import scan
from exhume.codecs.lenient_records import read_records_leniently
from exhume.codecs.log_directory import PartitionDirectory, SegmentFile
from exhume.codecs.records import Record, read_records
from exhume.codecs.salvage import Found, salvage
from exhume.codecs.wire import Buffer
from exhume.errors import EvidenceError
from exhume.findings import Finding
from exhume.replay.load_problems import LoadProblem, ProblemKind
from exhume.replay.verdict import LoadAborted

#: The default of the broker's `offsets.load.buffer.size`.
DEFAULT_LOAD_BUFFER_BYTES = 5 * 1024 * 1024

#: How the broker stopped: `clean` trusts the log, `unclean` checks it from the recovery point on. `clean_copy` and `unclean_copy` are the
#: same for a broker that starts on these files: it also checks each segment without an `.index`, which a copy may lack.
Stop = Literal["clean", "unclean", "clean_copy", "unclean_copy"]


def is_unclean(stop: Stop) -> bool:
    """Return True if a broker checks the log from the recovery point on."""
    return stop in ("unclean", "unclean_copy")


def is_copy(stop: Stop) -> bool:
    """Return True if a broker starts on these files, without the indexes that a copy may lack."""
    return stop in ("clean_copy", "unclean_copy")


@dataclass(slots=True)
class LoadedBatch:
    """One batch of a load, and the reader of its records.

    `records_read` counts the records read so far, the first of them at `first_read_offset`.
    """

    path: str
    batch: Batch
    buffer: Buffer
    read: Callable[[], Iterable[Record]]
    records_read: int = 0
    first_read_offset: int | None = None

    @property
    def is_control(self) -> bool:
        return self.batch.is_control

    @property
    def is_transactional(self) -> bool:
        return self.batch.is_transactional

    @property
    def producer_id(self) -> int:
        return self.batch.producer_id

    @property
    def producer_epoch(self) -> int:
        return self.batch.producer_epoch

    @property
    def last_offset(self) -> int:
        return self.batch.last_offset

    @property
    def next_offset(self) -> int:
        return self.batch.next_offset

    def records(self) -> Iterator[Record]:
        """The records of this batch; raises `LoadAborted` if a broker's own reader throws."""
        try:
            for record in self.read():
                self.records_read += 1
                if self.first_read_offset is None:
                    self.first_read_offset = record.record_offset
                yield record
        except EvidenceError as error:
            problem = LoadProblem(ProblemKind.BATCH_UNREADABLE, record_offset=first_offset(self.batch), detail=error.message)
            raise LoadAborted(problem, path=self.path, byte_position=self.batch.byte_position) from error


@dataclass(slots=True)
class ServedSegment:
    """The part of a segment that the broker serves: `buffer[:end]`."""

    file: SegmentFile
    buffer: Buffer
    end: int

    def open(self) -> None:
        """Open the bytes; the broker serves all of them."""
        self.buffer = self.file.open()
        self.end = len(self.buffer)


@dataclass(slots=True)
class StrictLog:
    """The log that a broker serves from this partition after such a stop.

    `refused` is the reason why the broker does not start. `losses` are findings about records that its start drops from the log, `hidden`
    the bytes at which its reader stops silently. It serves `start_offset` to `end_offset`; the log end can be after the last record.
    """

    partition: PartitionDirectory
    stop: Stop
    start_offset: int
    end_offset: int
    segments: list[ServedSegment]
    refused: LoadProblem | None = None
    losses: list[Finding] = field(default_factory=list)
    hidden: list[tuple[SegmentFile, int, int]] = field(default_factory=list)
    load_buffer_bytes: int = DEFAULT_LOAD_BUFFER_BYTES

    def batches(self) -> Iterator[LoadedBatch]:
        """Every batch that a load reads from the log start to the log end, in its order.

        Each read of the load returns batches of one segment, up to the size of the load buffer: of the last segment whose base offset is
        not after the next offset to read, from the first batch that ends at or after this offset. So of segments that overlap, a load
        reads no record twice, and may leave records out.

        Raises:
            LoadAborted: the broker's reader throws on these bytes.
        """
        number, next_offset = 0, self.start_offset
        while number < len(self.segments):
            left_bytes, is_empty, is_found = self.load_buffer_bytes, True, False
            for batch in self.batches_of(self.segments[number]):
                if not is_found and batch.last_offset < next_offset:
                    continue
                if batch.batch.size_bytes > left_bytes and not is_empty:
                    if self._segment_of(next_offset) > number:
                        break
                    left_bytes = self.load_buffer_bytes
                is_found, is_empty = True, False
                left_bytes -= batch.batch.size_bytes
                next_offset = batch.next_offset
                yield batch
            number = max(number + 1, self._segment_of(next_offset))

    def _segment_of(self, record_offset: int) -> int:
        """Return the number of the last segment whose base offset is not after this one; -1 without one."""
        return bisect_right(self.segments, record_offset, key=lambda segment: segment.file.base_offset) - 1

    def batches_of(self, segment: ServedSegment, position: int = 0) -> Iterator[LoadedBatch]:
        """The batches of one segment, from the batch at this byte on."""
        walk = BatchWalk(segment.buffer, position, segment.end)
        for batch in walk:
            if batch.last_offset >= self.start_offset:
                yield LoadedBatch(segment.file.path, batch, segment.buffer, _reader(segment.buffer, batch))
        assert walk.end is not None
        if walk.end.reason == "cut_batch" and overflows(segment.buffer, walk.end.byte_position):
            raise LoadAborted(LoadProblem(ProblemKind.BATCH_SIZE_OVERFLOWS), path=segment.file.path, byte_position=walk.end.byte_position)
        if walk.end.reason == "cut_batch":
            self.hidden.append((segment.file, walk.end.byte_position, segment.end))
        if walk.end.reason in ("size_too_small", "bad_magic"):
            kind = ProblemKind.BATCH_TOO_SMALL if walk.end.reason == "size_too_small" else ProblemKind.MAGIC_UNKNOWN
            raise LoadAborted(LoadProblem(kind), path=segment.file.path, byte_position=walk.end.byte_position)


def _reader(buffer: Buffer, batch: Batch) -> Callable[[], Iterable[Record]]:
    return lambda: read_records(buffer, batch)


def served_files(partition: PartitionDirectory) -> list[SegmentFile]:
    """The segments that a broker reads: no leftovers beside the log, unless the log has nothing else."""
    read = partition.read_segments
    logs = {file.base_offset for file in read if file.origin == "log"}
    stand_in = [file for file in read if file.origin == "log" or (file.origin == "swap" and file.base_offset not in logs)]
    return stand_in or read


def list_log(partition: PartitionDirectory, stop: Stop) -> StrictLog:
    """The log of this partition with no segment opened and without its end."""
    files = served_files(partition)
    start_offset = partition.log_start_offset or (files[0].base_offset if files else 0)
    log = StrictLog(partition, stop, start_offset, 0, [ServedSegment(file, b"", file.size_bytes) for file in files])
    if partition.malformed_names:
        log.refused = LoadProblem(ProblemKind.START_NAME_MALFORMED, path=partition.malformed_names[0])
    return log


class FileWalk:
    """The batches of a file as the log layer steps over them: it reads sizes, and treats every magic above 2 as 2."""

    def __init__(self, segment: ServedSegment, position: int) -> None:
        self._segment = segment
        self._position = position
        self.byte_position = position
        self.reason: EndReason = "end"

    def __iter__(self) -> Iterator[Batch]:
        buffer, end = self._segment.buffer, self._segment.end
        position = self._position
        while True:
            walk = BatchWalk(buffer, position, end)
            yield from walk
            assert walk.end is not None
            self.byte_position, self.reason = walk.end.byte_position, walk.end.reason
            at = self.byte_position
            if self.reason != "bad_magic" or buffer[at + 16] > 0x7F or at + HEADER_BYTES[2] > end:
                return
            newer = read_header_fields(buffer, at, magic=2)
            yield newer
            position = newer.end_position


def find_end(log: StrictLog) -> FileWalk | None:
    """Set the log end after the last batch of the newest segment: step over its batches from its last index entry.

    Returns the walk, which has its end and the reason for it; None for an empty segment.
    """
    if not log.segments or log.refused:
        return None
    newest = log.segments[-1]
    log.end_offset = newest.file.base_offset
    # A copy may have no index: a kernel steps over most batches.
    walk = FileWalk(newest, _last_whole_batch(newest, last_indexed_position(newest.file, newest.end)))
    for batch in walk:
        log.end_offset = batch.next_offset
    if walk.reason == "size_too_small":
        log.refused = LoadProblem(ProblemKind.START_BATCH_TOO_SMALL, path=newest.file.path, byte_position=walk.byte_position)
    return walk


def _last_whole_batch(segment: ServedSegment, position: int) -> int:
    """Return the position of the last batch that a kernel reaches from the batch at `position`."""
    content, rows = readable(segment.buffer), np.empty((scan.BLOCK_BATCHES, scan.COLUMNS), np.int64)
    next_position, count = position, len(rows)
    while count == len(rows):
        count, next_position = scan.scan(content, next_position, segment.end, False, rows)
        if count:
            position = int(rows[count - 1, scan.POSITION])
    return position


def hidden_findings(log: StrictLog) -> Iterator[Finding]:
    """The places where a broker's reader stops before readable batches: a wrong size hides them, and the load succeeds."""
    for file, start, end in log.hidden:
        found = salvage(file.open()[start:end], base_offset=file.base_offset)
        # The batch with the wrong size begins here, or the truncated one at the end of a copy.
        readable = [item for item in found if isinstance(item, Found) and item.batch.byte_position > 0]
        if readable:
            yield Finding(
                code="hidden_from_broker",
                severity="incident",
                sentence=f"a broker stops reading this segment here without an error: {len(readable)} readable batches follow, "
                f"up to offset {max(item.batch.last_offset for item in readable)}",
                replica=log.partition.replica,
                offsets_partition=log.partition.offsets_partition,
                path=file.path,
                byte_position=start,
                size_bytes=end - start,
                last_record_offset=max(item.batch.last_offset for item in readable),
                remedy="Use --mode lenient to see what they hold",
                is_damage=True,
            )


def salvaged_batches(partition: PartitionDirectory) -> Iterator[LoadedBatch]:
    """Every batch that can be found in this partition, damage or not, segment by segment."""
    for file in served_files(partition):
        buffer = file.open()
        for found in salvage(buffer, base_offset=file.base_offset):
            if isinstance(found, Found):
                yield LoadedBatch(file.path, found.batch, buffer, _lenient_reader(buffer, found.batch))


def _lenient_reader(buffer: Buffer, batch: Batch) -> Callable[[], Iterable[Record]]:
    return lambda: read_records_leniently(buffer, batch)[0]
