"""Extent of a log: which record offsets are missing, and the offset from which the log is complete.

The group leader gave each record offset to one record. Compaction removes records within batches and between them. Deletion removes records
below the log start offset. Damage removes any record. After the last missing offset and the last damaged batch, the log has every record
that was written.

Batch headers have record counts. The readers decode few batches: the last batch that lacks a record, and batches with a wrong checksum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from exhume.analysis.number_columns import Int64s, bounded
from exhume.arrow_rows import Origin
from exhume.codecs.columns.blocks import Block
from exhume.codecs.kernels import scan
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.log_pass import LogCollector, collect
from exhume.codecs.records import Record
from exhume.codecs.salvage import Hole
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader


@dataclass(frozen=True, slots=True)
class LogExtent:
    """Extent of one log in record offsets.

    Attributes:
        first_offset: the offset of the first record; None if the log has no record.
        next_offset: the offset after the last batch; the base offset of the first segment if the log has no batch.
        end_offset: the log end offset. It is higher than `next_offset` if the newest segment is empty and starts later.
        start_offset: the offset at which a broker starts to read. Below it the log has no segment, or all records are deleted.
        complete_from_offset: from here to `next_offset`, the log has every record that was written.
        missing_offsets: the number of offsets from 0 to the log end that have no record.
        damaged_offsets: the number of these offsets whose records are in damaged batches and cannot be decoded.
        first_damage_offset: the first offset at which damage may have removed records; None if the log has no damage.
        log_start_offset: the offset of the log start checkpoint, None if there is no checkpoint. Records below it are deleted, even if the
            file still has them.
        cleaner_offset: the offset of the cleaner checkpoint, None if there is no checkpoint. The log below it has been compacted.
        last_timestamp_ms: the greatest timestamp of a batch.
    """

    first_offset: int | None
    next_offset: int
    end_offset: int
    start_offset: int
    complete_from_offset: int
    missing_offsets: int
    damaged_offsets: int
    first_damage_offset: int | None
    log_start_offset: int | None
    cleaner_offset: int | None
    last_timestamp_ms: int | None

    @property
    def missing_after_start(self) -> int:
        """The number of missing offsets from `start_offset` on. All offsets below it count as missing."""
        return max(self.missing_offsets - self.start_offset, 0)

    def is_complete_after(self, record_offset: int | None) -> bool:
        """Return True if the log has every record from this offset to the last batch; None stands for offset 0."""
        return (0 if record_offset is None else record_offset) >= self.complete_from_offset


#: By replica and offsets partition.
LogExtents = Mapping[Origin, LogExtent]


def log_extents(reader: SegmentReader) -> LogExtents:
    """Return the extents of all logs of this reader; reads batch headers and few records."""
    found = ExtentReaders()
    collect(reader, [found])
    return found.extents(reader.evidence.partitions)


class ExtentReaders:
    """Collect the extents of logs, or of parts of them."""

    def __init__(self) -> None:
        self._by_origin: dict[Origin, ExtentReader] = {}

    def of(self, partition: PartitionDirectory) -> Sequence[ExtentReader]:
        """Return the reader for the log of this directory."""
        return [self.reader(partition)]

    def reader(self, partition: PartitionDirectory) -> ExtentReader:
        """Return the reader for the log of this directory."""
        return self._by_origin.setdefault((partition.replica, partition.offsets_partition), ExtentReader())

    def join(self, later: ExtentReaders) -> None:
        """Add the next parts of the logs."""
        for origin, reader in later._by_origin.items():
            self._by_origin.setdefault(origin, ExtentReader()).join(reader)

    def extents(self, directories: Iterable[PartitionDirectory]) -> LogExtents:
        """Return the extents of the logs in these directories, also of logs without a batch."""
        found: dict[Origin, LogExtent] = {}
        for directory in directories:
            origin = (directory.replica, directory.offsets_partition)
            if origin not in found and directory.read_segments:
                found[origin] = self.reader(directory).extent(directory)
        return found


@dataclass(slots=True)
class ExtentReader(LogCollector):
    """Read the extent of one log, or of a part of it, batch by batch."""

    needs_records: ClassVar[bool] = False
    first_offset: int | None = None
    #: The highest offset so far. A batch with lower offsets adds nothing.
    highest_offset: int = -1
    missing_offsets: int = 0
    damaged_offsets: int = 0
    first_damage_offset: int | None = None
    last_timestamp_ms: int | None = None
    #: The offset after the last gap. If that gap is in a batch, `_last_gap` finds the offset.
    _complete_from: int = 0
    _last_gap: Callable[[], int] | None = None

    def add_hole(self, hole: Hole) -> None:
        """Add bytes that hold no batch."""
        if hole.is_damage:
            self._note_damage(self.highest_offset + 1)

    def add_batch(self, found: SegmentBatch) -> None:
        """Add a batch that may be damaged, out of order, or without a record count."""
        batch = found.batch
        base_offset, last_offset, count = batch.base_offset, bounded(batch.last_offset), batch.record_count
        self._note_time(batch.max_timestamp_ms)
        if base_offset is None or count is None or found.is_damaged:
            self._add_records(found)
            return
        if base_offset <= self.highest_offset < last_offset and count < last_offset - base_offset + 1:
            # Some of its offsets are new, and the header does not show which of them have records.
            self._add_records(found)
            return
        if self.first_offset is None and count > 0:
            self.first_offset = _first_offset(found, base_offset, last_offset, count)
        missing = last_offset - self.highest_offset - count
        if missing > 0 and last_offset > self.highest_offset:
            self.missing_offsets += missing
            self._note_gap(found, base_offset, last_offset, count, self.highest_offset)
        if count > last_offset - base_offset + 1:
            self._note_damage(self.highest_offset + 1, last_offset)
        self.highest_offset = max(self.highest_offset, last_offset)

    def _add_records(self, found: SegmentBatch) -> None:
        """Add a batch by its records: its header is incomplete or may be wrong."""
        last_offset = bounded(found.batch.last_offset)
        offsets = [bounded(record.record_offset) for record in found.records()]
        if self.first_offset is None and offsets:
            self.first_offset = offsets[0]
        damaged_from, missing_before = self.highest_offset + 1, self.missing_offsets
        for before, offset in [*((offset - 1, offset) for offset in offsets), (last_offset, last_offset)]:
            if before > self.highest_offset:
                self.missing_offsets += before - self.highest_offset
                self._set_complete_from(before + 1)
            self.highest_offset = max(self.highest_offset, offset)
        if found.is_damaged:
            lost = (found.batch.record_count or 0) - len(offsets)
            self.damaged_offsets += max(min(lost, self.missing_offsets - missing_before), 0)
            self._note_damage(damaged_from, last_offset)

    def add_block(self, block: Block) -> None:
        """Add all batches of this block."""
        if block.careful is None:
            self._add_sound(block)
        else:
            for each in block.careful:
                self.add_batch(each.found)

    def _add_sound(self, block: Block) -> None:
        """Add batches that are sound and in order."""
        base_offsets, last_offsets, counts = (block.columns[column] for column in (scan.BASE_OFFSET, scan.LAST_OFFSET, scan.RECORD_COUNT))
        self._note_time(int(block.columns[scan.MAX_TIMESTAMP].max()))
        for number in np.flatnonzero(counts > 0).tolist() if self.first_offset is None else ():
            base_offset, last_offset, count = (int(column[number]) for column in (base_offsets, last_offsets, counts))
            self.first_offset = _first_offset(block.batch(number), base_offset, last_offset, count)
            if self.first_offset is not None:
                break
        for number in np.flatnonzero(counts > last_offsets - base_offsets + 1).tolist():
            before = int(last_offsets[number - 1]) if number else -1
            self._note_damage(max(self.highest_offset, before) + 1, int(last_offsets[number]))
        # Offsets rise in a block, so at most one batch has offsets on both sides of the highest offset so far.
        first = int(np.searchsorted(last_offsets, self.highest_offset, side="right"))
        if first < len(block) and base_offsets[first] <= self.highest_offset:
            self.add_batch(block.batch(first))
            first += 1
        if first == len(block):
            return
        highest = np.append(self.highest_offset, last_offsets[first:-1])
        missing = last_offsets[first:] - highest - counts[first:]
        lacking = np.flatnonzero(missing > 0)
        if len(lacking):
            last = int(lacking[-1])
            self.missing_offsets += int(missing[lacking].sum())
            base_offset, last_offset, count = (int(column[first + last]) for column in (base_offsets, last_offsets, counts))
            self._note_gap(block.batch(first + last), base_offset, last_offset, count, int(highest[last]))
        self.highest_offset = int(last_offsets[-1])

    def _note_time(self, timestamp_ms: int | None) -> None:
        if timestamp_ms is not None and timestamp_ms >= 0:
            self.last_timestamp_ms = max(timestamp_ms, self.last_timestamp_ms or 0)

    def _note_damage(self, first_offset: int, last_offset: int = -1) -> None:
        """Note damage that may have removed records from the first offset on. Records up to the last offset may be wrong."""
        if self.first_damage_offset is None:
            self.first_damage_offset = first_offset
        if last_offset >= self.complete_from_offset:
            self._set_complete_from(last_offset + 1)

    def _note_gap(self, found: SegmentBatch, base_offset: int, last_offset: int, count: int, highest: int) -> None:
        """Note the last gap so far, which is before this batch or in it."""
        if count == last_offset - base_offset + 1:
            self._set_complete_from(base_offset)
        else:
            self._last_gap = partial(_after_last_gap, found.later_records(), highest, last_offset)

    def _set_complete_from(self, record_offset: int) -> None:
        self._complete_from, self._last_gap = record_offset, None

    @property
    def complete_from_offset(self) -> int:
        """The first offset after all missing offsets and damaged batches so far."""
        if self._last_gap is not None:
            self._set_complete_from(self._last_gap())
        return self._complete_from

    def __reduce__(self) -> tuple[type[ExtentReader], tuple[int | None, int, int, int, int | None, int | None, int]]:
        complete_from = self.complete_from_offset
        offsets = (self.first_offset, self.highest_offset, self.missing_offsets, self.damaged_offsets)
        return ExtentReader, (*offsets, self.first_damage_offset, self.last_timestamp_ms, complete_from)

    def join(self, later: ExtentReader) -> None:
        """Add the next part of the log."""
        if self.first_offset is None:
            self.first_offset = later.first_offset
        if later.first_damage_offset is not None and self.first_damage_offset is None:
            self.first_damage_offset = max(later.first_damage_offset, self.highest_offset + 1)
        if later.complete_from_offset > self.highest_offset + 1:
            self._set_complete_from(later.complete_from_offset)
        # The later part counts all offsets below its first offset as missing.
        self.missing_offsets += max(later.missing_offsets - self.highest_offset - 1, 0)
        self.damaged_offsets += later.damaged_offsets
        self.highest_offset = max(self.highest_offset, later.highest_offset)
        self._note_time(later.last_timestamp_ms)

    def extent(self, directory: PartitionDirectory) -> LogExtent:
        """Return the extent of the log in this directory."""
        first_segment, newest_segment = _segment_bounds(directory)
        next_offset, missing, complete_from = self.highest_offset + 1, self.missing_offsets, self.complete_from_offset
        if self.highest_offset < 0:
            next_offset = missing = complete_from = first_segment
        end_offset = max(next_offset, newest_segment)
        return LogExtent(
            first_offset=self.first_offset,
            next_offset=next_offset,
            end_offset=end_offset,
            start_offset=directory.start_offset,
            complete_from_offset=complete_from,
            # Compaction removed the records after the last batch.
            missing_offsets=missing + end_offset - next_offset,
            damaged_offsets=self.damaged_offsets,
            first_damage_offset=self.first_damage_offset,
            log_start_offset=directory.log_start_offset,
            cleaner_offset=directory.cleaner_offset,
            last_timestamp_ms=self.last_timestamp_ms,
        )


def _first_offset(found: SegmentBatch, base_offset: int, last_offset: int, count: int) -> int | None:
    """Return the offset of the first record of this batch; None if it has no record."""
    if count == last_offset - base_offset + 1:
        return base_offset
    return next((record.record_offset for record in found.records()), None)


def _after_last_gap(records: Callable[[], Sequence[Record]], highest: int, last_offset: int) -> int:
    """Return the offset after the last gap of a batch with these records. `highest` is the highest offset before the batch."""
    complete_from = last_offset + 1
    for record in records():
        if record.record_offset > highest + 1:
            complete_from = record.record_offset
        highest = max(highest, record.record_offset)
    return complete_from if highest >= last_offset else last_offset + 1


def _segment_bounds(directory: PartitionDirectory) -> tuple[int, int]:
    """Return the base offsets of the first and of the last segment that is read."""
    bases = [segment.base_offset for segment in directory.read_segments] or [0]
    return bases[0], bases[-1]


class CoveredOffsets:
    """Find gaps between record offsets in the order of the log. Lower offsets after higher ones add nothing."""

    __slots__ = ("highest",)

    def __init__(self, highest: int = -1) -> None:
        self.highest = highest

    def gaps(self, before: Int64s, last: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Return the first and the last offset of each gap of these steps, and the number of the step.

        Each step covers the offsets after `before` up to `last`. The offsets up to `before` must come in earlier steps, or they are a gap.
        """
        reached = np.maximum.accumulate(np.append(self.highest, last))
        self.highest = int(reached[-1])
        steps = np.flatnonzero(before > reached[:-1])
        return reached[steps] + 1, before[steps], steps
