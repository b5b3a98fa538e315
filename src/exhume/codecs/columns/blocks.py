"""Read segments as blocks: a kernel scans batches that are sound and in order, and a careful reader finds all others.

A block is a run of batches as columns. Its form does not depend on the reader that filled it, so each answer has one body of code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from exhume.codecs.batch_format import MOST_OFFSETS_IN_SEGMENT
from exhume.codecs.batches import Batch, CrcStatus, end_reason, first_offset, read_header_fields
from exhume.codecs.columns.arrow import Flags, SameValues
from exhume.codecs.columns.careful_batches import CarefulBatch, has_base_offsets, header_rows
from exhume.codecs.columns.sections import Sections
from exhume.codecs.file_content import looks_like
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.codecs.log_directory import PartitionDirectory, SegmentFile
from exhume.codecs.salvage import Found, Hole
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader
from exhume.codecs.wire import Buffer
from exhume.findings import Findings
from exhume.int64 import LARGEST_INT64

_BLOCK_BATCHES = 8192
#: The most batches, and the approximate bytes of their records, of a block that the careful reader fills.
_CAREFUL_BATCHES, _CAREFUL_BYTES = 1024, 4 * 1024 * 1024


def readable(buffer: Buffer) -> Bytes:
    """Return these bytes as an array of uint8 that cannot be written."""
    content = np.frombuffer(buffer, np.uint8) if len(buffer) else np.empty(0, np.uint8)
    content.flags.writeable = False
    return content


@dataclass(slots=True, eq=False)
class Block:
    """Batches of one segment that follow one another.

    `rows` has a row for each batch and the columns of `kernels.scan`; `columns` has the same numbers with each column in one piece of
    memory. `careful` has the batches that the careful reader found; None if a kernel scanned all of them, found them sound and in order,
    and so without findings. Use each block before the next.
    """

    reader: SegmentReader
    partition: PartitionDirectory
    segment: SegmentFile
    buffer: memoryview
    content: Bytes
    rows: Int64s
    columns: Int64s
    same: SameValues = field(repr=False)
    careful: Sequence[CarefulBatch] | None = None
    _bounds: dict[int, tuple[int, int]] = field(init=False, repr=False, default_factory=dict)

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    @property
    def crc_status(self) -> CrcStatus:
        """The result of the checksums that a kernel verified."""
        return "ok" if self.reader.options.verify else "not_checked"

    def bounds(self, column: int) -> tuple[int, int]:
        """Return the least and the greatest value of this column."""
        if column not in self._bounds:
            values = self.columns[column]
            self._bounds[column] = int(values.min()), int(values.max())
        return self._bounds[column]

    def first_offsets(self) -> Int64s:
        """Return the lowest record offset of each batch."""
        if self.careful is None:
            offsets: Int64s = self.columns[scan.BASE_OFFSET]
            return offsets
        return np.array([each.first_offset for each in self.careful], np.int64)

    def has_base_offsets(self) -> Flags | None:
        """Return False for each batch whose base offset is unknown: a wrapper without a readable record; None: all are known."""
        return None if self.careful is None else has_base_offsets(self.careful)

    def record_counts(self) -> Int64s:
        """Return the number of records that each batch has, or that its header states if they were not read."""
        if self.careful is None:
            counts: Int64s = self.columns[scan.RECORD_COUNT]
            return counts
        return np.array([each.record_count for each in self.careful], np.int64)

    def sections(self) -> Sections:
        """Return the sections of records of these batches, which a kernel scanned."""
        return Sections(self.content, self.rows, self.reader.options.cap_bytes)

    def batch(self, number: int, findings: Findings | None = None) -> SegmentBatch:
        """Return one batch; its records are read one by one, and `findings` (default: those of the reader) get their problems."""
        if self.careful is not None:
            return self.careful[number].found
        position = int(self.rows[number, scan.POSITION])
        return self.reader.sound_batch(self.partition, self.segment, self.buffer, position, findings)

    def of_batches(self, batches: Sequence[CarefulBatch]) -> Block:
        """Return a block of these batches of the same segment."""
        rows = header_rows(batches)
        return replace(self, rows=rows, columns=np.ascontiguousarray(rows.T), careful=batches)


def blocks(
    reader: SegmentReader,
    offsets_partitions: Collection[int] | None = None,
    *,
    besides: Collection[str] = (),
    with_records: bool,
) -> Iterator[Block]:
    """Yield all batches of the segments of these offsets partitions (None: of all) in order; findings go to the reader.

    Args:
        reader: the segments.
        offsets_partitions: the offsets partitions; None: all.
        besides: the paths of segments that are not read.
        with_records: the answer needs the records, so problems of records are findings too.
    """
    scratch = Scratch()
    for partition, segment, next_base_offset in reader.segments(offsets_partitions):
        if segment.path in besides:
            reader.finish(segment)
            continue
        for item in blocks_of(reader, partition, segment, next_base_offset, scratch, with_records=with_records):
            if isinstance(item, Block):
                yield item


class Scratch:
    """Memory that each block of a kernel fills again."""

    def __init__(self) -> None:
        self.same = SameValues()
        self.rows = np.empty((_BLOCK_BATCHES, scan.COLUMNS), np.int64)
        # Columns at a distance of a power of two would evict one another from the cache.
        self.columns = np.empty((scan.COLUMNS, _BLOCK_BATCHES + 8), np.int64)


def blocks_of(
    reader: SegmentReader,
    partition: PartitionDirectory,
    segment: SegmentFile,
    next_base_offset: int | None,
    scratch: Scratch,
    *,
    with_records: bool,
) -> Iterator[Block | Hole]:
    """Yield the batches and holes of one segment, in order."""
    opened = OpenSegment(reader, partition, segment, next_base_offset, segment.open())
    for block in opened.sound_blocks(scratch):
        yield block
        reader.advance(opened.position)
    yield from opened.rest(scratch, with_records=with_records)


@dataclass(slots=True)
class OpenSegment:
    """A segment in two parts: the blocks up to the first batch that is not sound or not in order, and the rest."""

    reader: SegmentReader
    partition: PartitionDirectory
    segment: SegmentFile
    next_base_offset: int | None
    buffer: memoryview
    _last_position: int | None = field(default=None, init=False)

    @property
    def position(self) -> int:
        """The position after the last block so far."""
        return 0 if self._last_position is None else read_header_fields(self.buffer, self._last_position).end_position

    def sound_blocks(self, scratch: Scratch, leading: SegmentBatch | None = None) -> Iterator[Block]:
        """Yield the blocks that a kernel scans, from the first batch on, or from the batch after `leading`."""
        for block in _scanned(self._whole(scratch), self.next_base_offset, leading):
            self._last_position = int(block.rows[-1, scan.POSITION])
            yield block

    def rest(self, scratch: Scratch, *, with_records: bool) -> Iterator[Block | Hole]:
        """Yield the rest of the segment. Call it after the last of `sound_blocks`."""
        whole = self._whole(scratch)
        waiting: list[CarefulBatch] = []
        for item in self._items(whole, scratch):
            if isinstance(item, SegmentBatch):
                waiting.append(CarefulBatch(item, with_records=with_records))
                is_full = len(waiting) >= _CAREFUL_BATCHES or sum(each.size_bytes for each in waiting) >= _CAREFUL_BYTES
                if not is_full:
                    continue
            if waiting:
                yield whole.of_batches(waiting)
                waiting = []
            if not isinstance(item, SegmentBatch):
                yield item
        if waiting:
            yield whole.of_batches(waiting)

    def _items(self, whole: Block, scratch: Scratch) -> Iterator[Block | SegmentBatch | Hole]:
        """Yield batches of the careful reader, then again blocks of a kernel where possible."""
        while self.position < len(self.buffer):
            leading: SegmentBatch | None = None
            found = self.reader.items(self.partition, self.segment, self.buffer, self.next_base_offset, batch_before_at=self._last_position)
            for item in found:
                yield item
                if isinstance(item, SegmentBatch) and _leads_on(whole, self.next_base_offset, item.found):
                    leading = item
                    break
            if leading is None:
                break
            self._last_position = leading.batch.byte_position
            for block in self.sound_blocks(scratch, leading):
                yield block
                self.reader.advance(self.position)
        self.reader.finish(self.segment)

    def _whole(self, scratch: Scratch) -> Block:
        content = readable(self.buffer)
        return Block(self.reader, self.partition, self.segment, self.buffer, content, scratch.rows, scratch.columns, scratch.same)


def _leads_on(whole: Block, next_base_offset: int | None, found: Found) -> bool:
    """Return True if a kernel can continue after this batch: it is in its place, and the next batch too."""
    position, buffer = found.end_position, whole.buffer
    is_as_stated = found.stated_size_bytes is None and found.stated_magic is None
    if found.crc_status != whole.crc_status or found.grade == "displaced" or not is_as_stated:
        return False
    if end_reason(buffer, position, len(buffer)) is not None:
        return False
    following = read_header_fields(buffer, position)
    if following.magic < 2 and following.codec:
        return False
    lowest, beyond, epoch = _limits(whole, next_base_offset, found.batch)
    goes_on = following.partition_leader_epoch is None or epoch <= following.partition_leader_epoch
    return lowest <= first_offset(following) <= following.last_offset < beyond and goes_on


def _limits(whole: Block, next_base_offset: int | None, before: Batch | None) -> tuple[int, int, int]:
    """Return the limits of the next batch: its lowest record offset, the first record offset that is too large, its lowest leader epoch."""
    base_offset = whole.segment.base_offset
    beyond = min(base_offset + MOST_OFFSETS_IN_SEGMENT + 1, LARGEST_INT64)
    if next_base_offset is not None:
        beyond = min(beyond, next_base_offset)
    if before is None:
        return max(base_offset, 0), beyond, -1
    epoch = -1 if before.partition_leader_epoch is None else before.partition_leader_epoch
    return max(base_offset, 0, before.last_offset + 1), beyond, epoch


def _scanned(whole: Block, next_base_offset: int | None, leading: SegmentBatch | None) -> Iterator[Block]:
    """Yield blocks from the first batch of a segment on, or from the batch after `leading`.

    Ends before the first batch that is not sound or not in order. Each block fills the rows again.
    """
    content = whole.content
    position = 0
    window = whole.segment.window
    before = None if leading is None else leading.batch
    if before is None and window is None and looks_like(whole.buffer) is not None:
        return
    if before is None and window is not None and window.batch_before_at is not None:
        before = read_header_fields(whole.buffer, window.batch_before_at)
    lowest, beyond, epoch = _limits(whole, next_base_offset, before)
    if before is not None:
        position = before.end_position
    while position < len(content):
        count, position = scan.scan(content, position, len(content), whole.reader.options.verify, whole.rows)
        sound = scan.in_order(whole.rows, count, lowest, beyond, epoch, whole.columns)
        if sound:
            block = replace(whole, rows=whole.rows[:sound], columns=whole.columns[:, :sound])
            lowest, epoch = int(block.columns[scan.LAST_OFFSET, -1]) + 1, int(scan.least_epoch_after(block.columns[scan.LEADER_EPOCH, -1]))
            yield block
        if sound < _BLOCK_BATCHES:
            return
