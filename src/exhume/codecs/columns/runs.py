"""Read segments in runs: a kernel scans the batches of format 2 and the plain messages that are sound and in order.

All batches between two runs are read one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TypeVar, cast

import numpy as np

from exhume.codecs.batch_format import MOST_OFFSETS_IN_SEGMENT
from exhume.codecs.batches import Batch, CrcStatus, end_reason, first_offset, read_header_fields
from exhume.codecs.columns.arrow import SameValues
from exhume.codecs.columns.sections import Sections
from exhume.codecs.file_content import looks_like
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.codecs.log_directory import PartitionDirectory, SegmentFile
from exhume.codecs.salvage import Found, Hole
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader, Watch
from exhume.codecs.wire import Buffer
from exhume.int64 import LARGEST_INT64

_Columns = TypeVar("_Columns")

_BLOCK_BATCHES = 8192


def readable(buffer: Buffer) -> Bytes:
    """Return these bytes as an array of uint8 that cannot be written."""
    content = np.frombuffer(buffer, np.uint8) if len(buffer) else np.empty(0, np.uint8)
    content.flags.writeable = False
    return content


@dataclass(slots=True)
class Run:
    """Batches of a segment that follow one another, and have no findings.

    `rows` has a row for each batch and the columns of `kernels.scan`; `columns` has the same numbers with each column in one piece of
    memory. Use each run before the next.
    """

    reader: SegmentReader
    partition: PartitionDirectory
    segment: SegmentFile
    buffer: memoryview
    content: Bytes
    rows: Int64s
    columns: Int64s
    same: SameValues = field(repr=False)
    _bounds: dict[int, tuple[int, int]] = field(init=False, repr=False, default_factory=dict)

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    @property
    def crc_status(self) -> CrcStatus:
        return "ok" if self.reader.options.verify else "not_checked"

    def bounds(self, column: int) -> tuple[int, int]:
        """Return the least and the greatest value of this column."""
        if column not in self._bounds:
            values = self.columns[column]
            self._bounds[column] = int(values.min()), int(values.max())
        return self._bounds[column]

    def sections(self) -> Sections:
        """Return the sections of records of these batches."""
        return Sections(self.content, self.rows, self.reader.options.cap_bytes)

    def batch(self, number: int) -> SegmentBatch:
        """Return one batch of this run; its records are read one by one."""
        position = int(self.rows[number, scan.POSITION])
        return self.reader.sound_batch(self.partition, self.segment, self.buffer, position)


def runs(
    reader: SegmentReader, offsets_partitions: Collection[int] | None = None, *, watch: Watch | None = None
) -> Iterator[Run | SegmentBatch]:
    """Return the batches of `reader.batches` in the same order, in runs if possible; `watch` is the same."""
    scratch = Scratch()
    for partition, segment, next_base_offset in reader.segments(offsets_partitions):
        for item in runs_of(reader, partition, segment, next_base_offset, scratch):
            if watch is not None:
                watch(partition, item)
            if not isinstance(item, Hole):
                yield item


class Scratch:
    """Memory that each run fills again."""

    def __init__(self) -> None:
        self.same = SameValues()
        self.rows = np.empty((_BLOCK_BATCHES, scan.COLUMNS), np.int64)
        # Columns at a distance of a power of two would evict one another from the cache.
        self.columns = np.empty((scan.COLUMNS, _BLOCK_BATCHES + 8), np.int64)


def runs_of(
    reader: SegmentReader, partition: PartitionDirectory, segment: SegmentFile, next_base_offset: int | None, scratch: Scratch
) -> Iterator[Run | SegmentBatch | Hole]:
    """Yield the same as `reader.items` for one segment, in runs if possible."""
    opened = OpenSegment(reader, partition, segment, next_base_offset, segment.open())
    for run in opened.runs(scratch):
        yield run
        reader.advance(opened.position)
    yield from opened.rest(scratch)


@dataclass(slots=True)
class OpenSegment:
    """A segment in two parts: the runs up to the first batch that is not sound or not in order, and the rest."""

    reader: SegmentReader
    partition: PartitionDirectory
    segment: SegmentFile
    next_base_offset: int | None
    buffer: memoryview
    _last_position: int | None = field(default=None, init=False)

    @property
    def position(self) -> int:
        """The position after the last run so far."""
        return 0 if self._last_position is None else read_header_fields(self.buffer, self._last_position).end_position

    def runs(self, scratch: Scratch, leading: SegmentBatch | None = None) -> Iterator[Run]:
        """Yield the runs from the first batch on, or from the batch after `leading`."""
        for run in _scanned(self._whole(scratch), self.next_base_offset, leading):
            self._last_position = int(run.rows[-1, scan.POSITION])
            yield run

    def rest(self, scratch: Scratch) -> Iterator[Run | SegmentBatch | Hole]:
        """Yield the rest of the segment: batches one by one, then again runs if possible. Call it after the last of `runs`."""
        whole = self._whole(scratch)
        while self.position < len(self.buffer):
            leading: SegmentBatch | None = None
            for item in self.reader.items(self.partition, self.segment, self.next_base_offset, batch_before_at=self._last_position):
                yield item
                if isinstance(item, SegmentBatch) and _leads_on(whole, self.next_base_offset, item.found):
                    leading = item
                    break
            if leading is None:
                return
            self._last_position = leading.batch.byte_position
            for run in self.runs(scratch, leading):
                yield run
                self.reader.advance(self.position)
        self.reader.finish(self.segment)

    def _whole(self, scratch: Scratch) -> Run:
        content = readable(self.buffer)
        return Run(self.reader, self.partition, self.segment, self.buffer, content, scratch.rows, scratch.columns, scratch.same)


def _leads_on(whole: Run, next_base_offset: int | None, found: Found) -> bool:
    """Return True if a run can begin after this batch: it is in its place, and the next batch too."""
    position, buffer = found.end_position, whole.buffer
    is_as_stated = found.stated_size_bytes is None and found.stated_magic is None
    if found.crc_status != whole.crc_status or found.grade == "displaced" or not is_as_stated:
        return False
    if end_reason(buffer, position, len(buffer)) is not None:
        return False
    following = read_header_fields(buffer, position)
    if following.magic < 2 and following.codec:
        return False
    lowest, beyond, epoch = _bounds(whole, next_base_offset, found.batch)
    goes_on = following.partition_leader_epoch is None or epoch <= following.partition_leader_epoch
    return lowest <= first_offset(following) <= following.last_offset < beyond and goes_on


def _bounds(whole: Run, next_base_offset: int | None, before: Batch | None) -> tuple[int, int, int]:
    """Return the limits of the next batch: its lowest record offset, the first record offset that is too large, its lowest leader epoch."""
    base_offset = whole.segment.base_offset
    beyond = min(base_offset + MOST_OFFSETS_IN_SEGMENT + 1, LARGEST_INT64)
    if next_base_offset is not None:
        beyond = min(beyond, next_base_offset)
    if before is None:
        return max(base_offset, 0), beyond, -1
    epoch = -1 if before.partition_leader_epoch is None else before.partition_leader_epoch
    return max(base_offset, 0, before.last_offset + 1), beyond, epoch


def group_batches(found: Iterable[_Columns | SegmentBatch]) -> Iterator[_Columns | Iterator[SegmentBatch]]:
    """Yield the same items, but single batches that follow one another as one iterator. Use each iterator before the next item."""
    for are_batches, group in groupby(found, key=lambda each: isinstance(each, SegmentBatch)):
        if are_batches:
            yield cast("Iterator[SegmentBatch]", group)
        else:
            yield from cast("Iterator[_Columns]", group)


def _scanned(whole: Run, next_base_offset: int | None, leading: SegmentBatch | None) -> Iterator[Run]:
    """Yield runs from the first batch of a segment on, or from the batch after `leading`.

    Ends before the first batch that is not sound or not in order. Each run fills the rows again.
    """
    content = whole.content
    position = 0
    window = whole.segment.window
    before = None if leading is None else leading.batch
    if before is None and window is None and looks_like(whole.buffer) is not None:
        return
    if before is None and window is not None and window.batch_before_at is not None:
        before = read_header_fields(whole.buffer, window.batch_before_at)
    lowest, beyond, epoch = _bounds(whole, next_base_offset, before)
    if before is not None:
        position = before.end_position
    while position < len(content):
        count, position = scan.scan(content, position, len(content), whole.reader.options.verify, whole.rows)
        sound = scan.in_order(whole.rows, count, lowest, beyond, epoch, whole.columns)
        if sound:
            run = replace(whole, rows=whole.rows[:sound], columns=whole.columns[:, :sound])
            lowest, epoch = int(run.columns[scan.LAST_OFFSET, -1]) + 1, int(scan.least_epoch_after(run.columns[scan.LEADER_EPOCH, -1]))
            yield run
        if sound < _BLOCK_BATCHES:
            return
