"""Segments in runs: batches of format 2 and plain messages that are sound and in order, scanned by a kernel; what lies between two runs,
batch by batch.
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
    """These bytes as an array of uint8 that cannot be written: kernels are compiled for one kind of array only."""
    content = np.frombuffer(buffer, np.uint8) if len(buffer) else np.empty(0, np.uint8)
    content.flags.writeable = False
    return content


@dataclass(slots=True)
class Run:
    """Batches of a segment that follow one another; findings have nothing to say about them.

    `rows` has a row for each batch and the columns of `kernels.scan`; `columns` is the same with each column in one place. Both are valid
    until the next run is asked for.
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
        """The least and the greatest value of this column."""
        if column not in self._bounds:
            values = self.columns[column]
            self._bounds[column] = int(values.min()), int(values.max())
        return self._bounds[column]

    def sections(self) -> Sections:
        """Where the records of these batches lie, once they are asked for."""
        return Sections(self.content, self.rows, self.reader.options.cap_bytes)

    def batch(self, number: int) -> SegmentBatch:
        """One batch of this run, to be read record by record."""
        position = int(self.rows[number, scan.POSITION])
        return self.reader.sound_batch(self.partition, self.segment, self.buffer, position)


def runs(
    reader: SegmentReader, offsets_partitions: Collection[int] | None = None, *, watch: Watch | None = None
) -> Iterator[Run | SegmentBatch]:
    """Return the batches of `reader.batches` in the same order, in runs if possible; `watch` is the same."""
    scratch = Scratch()
    for partition, segment, behind in reader.segments(offsets_partitions):
        for item in runs_of(reader, partition, segment, behind, scratch):
            if watch is not None:
                watch(partition, item)
            if not isinstance(item, Hole):
                yield item


class Scratch:
    """What is filled again for each run."""

    def __init__(self) -> None:
        self.same = SameValues()
        self.rows = np.empty((_BLOCK_BATCHES, scan.COLUMNS), np.int64)
        # Columns whose distance is a power of two would push one another out of the cache.
        self.columns = np.empty((scan.COLUMNS, _BLOCK_BATCHES + 8), np.int64)


def runs_of(
    reader: SegmentReader, partition: PartitionDirectory, segment: SegmentFile, behind: int | None, scratch: Scratch
) -> Iterator[Run | SegmentBatch | Hole]:
    """What `reader.items` gives of one segment, in runs as far as they go."""
    opened = OpenSegment(reader, partition, segment, behind, segment.open())
    for run in opened.runs(scratch):
        yield run
        reader.advance(opened.position)
    yield from opened.rest(scratch)


@dataclass(slots=True)
class OpenSegment:
    """A segment in two parts: its runs as far as nothing is odd, and the rest. `behind` is the base offset of the next segment."""

    reader: SegmentReader
    partition: PartitionDirectory
    segment: SegmentFile
    behind: int | None
    buffer: memoryview
    _last_position: int | None = field(default=None, init=False)

    @property
    def position(self) -> int:
        """The byte behind the last run so far."""
        return 0 if self._last_position is None else read_header_fields(self.buffer, self._last_position).end_position

    def runs(self, scratch: Scratch, leading: SegmentBatch | None = None) -> Iterator[Run]:
        """From the first batch on, or from the one behind this batch."""
        for run in _scanned(self._whole(scratch), self.behind, leading):
            self._last_position = int(run.rows[-1, scan.POSITION])
            yield run

    def rest(self, scratch: Scratch) -> Iterator[Run | SegmentBatch | Hole]:
        """What is odd, batch by batch, and runs again behind it. To be asked for when all runs were."""
        whole = self._whole(scratch)
        while self.position < len(self.buffer):
            leading: SegmentBatch | None = None
            for item in self.reader.items(self.partition, self.segment, self.behind, batch_before_at=self._last_position):
                yield item
                if isinstance(item, SegmentBatch) and _leads_on(whole, self.behind, item.found):
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
    """True for a batch behind which a run seems to begin: it is where it belongs, and so is the next one."""
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
    """The lowest record offset that the next batch may have, the one that is too large, and the lowest leader epoch."""
    base_offset = whole.segment.base_offset
    beyond = min(base_offset + MOST_OFFSETS_IN_SEGMENT + 1, LARGEST_INT64)
    if next_base_offset is not None:
        beyond = min(beyond, next_base_offset)
    if before is None:
        return max(base_offset, 0), beyond, -1
    epoch = -1 if before.partition_leader_epoch is None else before.partition_leader_epoch
    return max(base_offset, 0, before.last_offset + 1), beyond, epoch


def stretches(found: Iterable[_Columns | SegmentBatch]) -> Iterator[_Columns | Iterator[SegmentBatch]]:
    """The same, with batches that follow one another taken together; each stretch is to be consumed before the next."""
    for are_batches, stretch in groupby(found, key=lambda each: isinstance(each, SegmentBatch)):
        if are_batches:
            yield cast("Iterator[SegmentBatch]", stretch)
        else:
            yield from cast("Iterator[_Columns]", stretch)


def _scanned(whole: Run, next_base_offset: int | None, behind: SegmentBatch | None) -> Iterator[Run]:
    """The batches of a segment from its first one on, or from the one behind this batch; ends in front of what is odd. The rows are filled
    again for each run.
    """
    content = whole.content
    position = 0
    window = whole.segment.window
    before = None if behind is None else behind.batch
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
            lowest, epoch = int(run.columns[scan.LAST_OFFSET, -1]) + 1, int(scan.least_epoch_behind(run.columns[scan.LEADER_EPOCH, -1]))
            yield run
        if sound < _BLOCK_BATCHES:
            return
