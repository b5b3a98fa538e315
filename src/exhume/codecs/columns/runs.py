"""Segments in runs: batches of format 2 that are sound and in order, scanned by a kernel; from the first other one on, batch by batch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TypeVar, cast

import numpy as np

from exhume.codecs.batches import MOST_OFFSETS_IN_SEGMENT, CrcStatus, read_header_fields
from exhume.codecs.columns.arrow import SameValues
from exhume.codecs.file_content import looks_like
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.primitives import Bytes, Int64s
from exhume.codecs.log_directory import PartitionDirectory, SegmentFile
from exhume.codecs.salvage import Hole
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader
from exhume.codecs.volumes import fetch_pages

_Columns = TypeVar("_Columns")

_BLOCK_BATCHES = 8192
#: Page by page, fetching a mapping takes longer than verifying it.
_FETCHED_BYTES = 64 * 1024 * 1024


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

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    @property
    def crc_status(self) -> CrcStatus:
        return "ok" if self.reader.options.verify else "not_checked"

    def batch(self, number: int) -> SegmentBatch:
        """One batch of this run, to be read record by record."""
        position = int(self.rows[number, scan.POSITION])
        return self.reader.sound_batch(self.partition, self.segment, self.buffer, position)


def runs(reader: SegmentReader, offsets_partitions: Collection[int] | None = None) -> Iterator[Run | SegmentBatch]:
    """Every batch that `reader.batches` gives, in the same order, in runs as far as they go."""
    scratch = Scratch()
    for partition, segment, behind in reader.segments(offsets_partitions):
        for item in runs_of(reader, partition, segment, behind, scratch):
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
    buffer = segment.open()
    whole = Run(reader, partition, segment, buffer, content_of(buffer), scratch.rows, scratch.columns, scratch.same)
    last_position, position = None, 0
    for run in _scanned(whole, behind):
        last_position = int(run.rows[-1, scan.POSITION])
        position = last_position + int(run.rows[-1, scan.SIZE])
        yield run
        reader.advance(position)
    if position == len(whole.content):
        reader.finish(segment)
    else:
        yield from reader.items(partition, segment, behind, behind_batch_at=last_position)


def stretches(found: Iterable[_Columns | SegmentBatch]) -> Iterator[_Columns | Iterator[SegmentBatch]]:
    """The same, with batches that follow one another taken together; each stretch is to be consumed before the next."""
    for are_batches, stretch in groupby(found, key=lambda each: isinstance(each, SegmentBatch)):
        if are_batches:
            yield cast("Iterator[SegmentBatch]", stretch)
        else:
            yield from cast("Iterator[_Columns]", stretch)


def content_of(buffer: memoryview) -> Bytes:
    """The bytes of a segment for kernels."""
    content = np.frombuffer(buffer, np.uint8) if len(buffer) else np.empty(0, np.uint8)
    # Kernels are compiled for one kind of array only.
    content.flags.writeable = False
    return content


def _scanned(whole: Run, next_base_offset: int | None) -> Iterator[Run]:
    """The batches of a segment from its first one on; ends in front of what is odd. The rows are filled again for each run."""
    content, base_offset = whole.content, whole.segment.base_offset
    position = fetched = 0
    lowest, epoch = max(base_offset, 0), -1
    window = whole.segment.window
    if window is None and looks_like(whole.buffer) is not None:
        return
    if window is not None and window.behind_batch_at is not None:
        before = read_header_fields(whole.buffer, window.behind_batch_at)
        position, lowest = before.end_position, before.last_offset + 1
        epoch = -1 if before.partition_leader_epoch is None else before.partition_leader_epoch
    beyond = base_offset + MOST_OFFSETS_IN_SEGMENT + 1
    if next_base_offset is not None:
        beyond = min(beyond, next_base_offset)
    while position < len(content):
        if fetched < min(position + _FETCHED_BYTES // 2, len(content)):
            fetch_pages(whole.buffer, max(fetched, position), min(position + _FETCHED_BYTES, len(content)))
            fetched = position + _FETCHED_BYTES
        count, position = scan.scan(content, position, len(content), whole.reader.options.verify, whole.rows)
        sound = scan.in_order(whole.rows, count, lowest, beyond, epoch, whole.columns)
        if sound:
            run = replace(whole, rows=whole.rows[:sound], columns=whole.columns[:, :sound])
            lowest, epoch = int(run.columns[scan.LAST_OFFSET, -1]) + 1, int(run.columns[scan.LEADER_EPOCH, -1])
            yield run
        if sound < _BLOCK_BATCHES:
            return
