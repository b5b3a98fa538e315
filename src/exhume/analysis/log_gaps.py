"""Gaps of a log: record offsets without a record, and the reason for each gap.

The reader decodes every batch: the header of a compacted batch does not show which records it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from exhume.analysis.log_extent import CoveredOffsets, LogExtent
from exhume.analysis.number_columns import Int64s, bounded
from exhume.codecs.columns.blocks import Block
from exhume.codecs.columns.careful_batches import CarefulBatch
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.kernels import records as fields
from exhume.codecs.kernels import scan
from exhume.codecs.log_pass import LogCollector
from exhume.codecs.salvage import Hole

#: compaction: in a sound batch, or below the cleaner checkpoint; deletion: below the log start offset; damage: in damaged bytes or directly
#: before them; unknown: the cleaner of another replica may have removed the records, or a segment is missing.
GapReason = Literal["compaction", "deletion", "damage", "unknown"]

#: The kinds of gaps that a reader knows without checkpoints.
_BETWEEN, _IN_BATCH, _DAMAGED = range(3)
_ONE_IN_BATCH = np.full(1, _IN_BATCH, np.int64)
_NO_RECORDS = np.empty((2, 0), np.int64)


@dataclass(frozen=True, slots=True)
class Gap:
    """Record offsets without a record, from the first to the last one."""

    first_offset: int
    last_offset: int
    reason: GapReason


@dataclass(frozen=True, slots=True)
class LogGaps:
    """The gaps of one log from offset 0 to its end, in rising order.

    One gap may follow directly after another. `first_damage_offset` is as in `LogExtent`, but counts sound batches that cannot be decoded
    as damage, too.
    """

    extent: LogExtent
    first: Int64s
    last: Int64s
    kinds: Int64s
    first_damage_offset: int | None

    def __len__(self) -> int:
        return len(self.first)

    def __iter__(self) -> Iterator[Gap]:
        for first, last, kind in zip(self.first.tolist(), self.last.tolist(), self.kinds.tolist(), strict=True):
            yield Gap(first, last, self._reason(last, kind))

    def _reason(self, last_offset: int, kind: int) -> GapReason:
        if kind == _DAMAGED:
            return "damage"
        if last_offset < (self.extent.log_start_offset or 0):
            return "deletion"
        if kind == _IN_BATCH or last_offset < (self.extent.cleaner_offset or 0):
            return "compaction"
        return "unknown"

    @property
    def missing_offsets(self) -> int:
        """The number of missing offsets."""
        return int((self.last - self.first + 1).sum())

    def between(self, first_offset: int, last_offset: int) -> LogGaps:
        """Return the gaps, and the parts of gaps, between these two offsets; both count."""
        first, last = np.maximum(self.first, bounded(first_offset)), np.minimum(self.last, bounded(last_offset))
        wanted = first <= last
        return replace(self, first=first[wanted], last=last[wanted], kinds=self.kinds[wanted])

    def has_any(self, first_offset: int, last_offset: int) -> bool:
        """Return True if an offset between these two is missing; both count."""
        number = int(np.searchsorted(self.last, bounded(first_offset)))
        return number < len(self.first) and int(self.first[number]) <= last_offset

    def last_present(self, record_offset: int) -> int:
        """Return the last offset up to this one that is not missing; -1 if there is none."""
        for first, last in zip(self.first[::-1].tolist(), self.last[::-1].tolist(), strict=True):
            if last < record_offset:
                break
            if first <= record_offset:
                record_offset = first - 1
        return record_offset

    def first_after(self, record_offset: int) -> int | None:
        """Return the first missing offset after this one; None if there is none."""
        number = int(np.searchsorted(self.last, bounded(record_offset), side="right"))
        return max(int(self.first[number]), record_offset + 1) if number < len(self.first) else None


class GapReader(LogCollector):
    """Find the gaps of one log, record by record."""

    def __init__(self) -> None:
        self._first_damage_offset: int | None = None
        self._covered = CoveredOffsets()
        #: First and last offsets of gaps, and their kinds.
        self._found: list[Int64s] = []
        self._block: Block | None = None
        #: Positions, first and last offsets of the batches of the current block.
        self._headers = np.empty((3, 0), np.int64)
        #: The number of batches of it that have begun, and that have ended.
        self._begun = self._ended = 0
        self._is_after_hole = False

    def gaps(self, extent: LogExtent) -> LogGaps:
        """Return the gaps of the log with this extent."""
        self._end_block()
        if extent.end_offset > self._covered.highest + 1:
            end = np.array([bounded(extent.end_offset - 1)], np.int64)
            self._add(end, end, np.array([_BETWEEN], np.int64))
        first, last, kinds = np.concatenate([np.empty((3, 0), np.int64), *self._found], axis=1)
        damage = [offset for offset in (self._first_damage_offset, extent.first_damage_offset) if offset is not None]
        return LogGaps(extent, first, last, kinds, min(damage, default=None))

    def add_hole(self, hole: Hole) -> None:
        """Add bytes that hold no batch."""
        self._end_block()
        self._is_after_hole |= hole.is_damage

    def add_block(self, block: Block) -> None:
        """Begin the batches of this block."""
        self._end_block()
        self._block = block
        if block.careful is None:
            self._headers = block.columns[[scan.POSITION, scan.BASE_OFFSET, scan.LAST_OFFSET]]
        else:
            for batch in block.careful:
                self._add_batch(batch)

    def add_records(self, block: RecordBlock) -> None:
        """Add records of the current block."""
        if block.batches.careful is not None:
            self._add_unsplit(block.batches)
            return
        numbers, offsets = block.records[fields.BATCH], block.records[fields.OFFSET]
        first, last = int(numbers[0]), int(numbers[-1])
        if (offsets[1:] - offsets[:-1] == 1).all():
            # No offset is missing between these records: they are one step.
            self._add_from_block(_NO_RECORDS, first, is_at_hand=True)
            self._begun, self._ended = last + 1, last
            self._add(offsets[:1] - 1, offsets[-1:], _ONE_IN_BATCH)
        else:
            self._add_from_block(np.stack([numbers, offsets]), last, is_at_hand=True)

    def _add_unsplit(self, block: Block) -> None:
        """Add a batch of the current block that only the careful reader can read; ignore batches that were added with their block."""
        for batch in (block.careful or ()) if block is not self._block else ():
            number = int(np.searchsorted(self._headers[0], batch.found.batch.byte_position))
            if number >= self._ended:
                self._add_from_block(_NO_RECORDS, number)
                self._begun = self._ended = number + 1
                self._add_batch(batch)

    def _add_batch(self, batch: CarefulBatch) -> None:
        """Add the records of a batch that the careful reader found."""
        header, offsets = batch.found.batch, [record.record_offset for record in batch.records()]
        last_offset, expected = header.last_offset, header.record_count
        is_damaged = batch.found.is_damaged or (not offsets if expected is None else len(offsets) < expected)
        if is_damaged and self._first_damage_offset is None:
            self._first_damage_offset = self._covered.highest + 1
        base_offset = min(offsets, default=last_offset) if header.base_offset is None else header.base_offset
        steps = [(base_offset - 1, base_offset - 1), *((offset - 1, offset) for offset in offsets), (last_offset, last_offset)]
        before, last = (np.array([bounded(step[column]) for step in steps], np.int64) for column in range(2))
        self._add(before, last, np.array([_BETWEEN, *[_DAMAGED if is_damaged else _IN_BATCH] * (len(steps) - 1)], np.int64))

    def _end_block(self) -> None:
        self._add_from_block(_NO_RECORDS, self._headers.shape[1])
        self._headers, self._begun, self._ended = self._headers[:, :0], 0, 0

    def _add_from_block(self, found: Int64s, until: int, *, is_at_hand: bool = False) -> None:
        """Add these records and the batches before the number `until`; `found` has the batch number and the offset of each record.

        With `is_at_hand`, the batch `until` has begun and has not ended.
        """
        begun, ended = np.arange(self._begun, until + is_at_hand), np.arange(self._ended, until)
        # The places of the steps that begin batches, and of those that end batches. The other steps are records.
        starts = np.searchsorted(found[0], begun) + np.arange(len(begun)) + np.clip(begun - self._ended, 0, len(ended))
        ends = np.searchsorted(found[0], ended, side="right") + np.arange(len(ended)) + np.clip(ended + 1 - self._begun, 0, len(begun))
        steps = np.empty((2, found.shape[1] + len(begun) + len(ended)), np.int64)
        is_record, kinds = np.ones(steps.shape[1], np.bool_), np.full(steps.shape[1], _IN_BATCH, np.int64)
        is_record[starts] = is_record[ends] = False
        kinds[starts] = _BETWEEN
        steps[:, starts], steps[:, ends] = self._headers[1, begun] - 1, self._headers[2, ended]
        steps[:, is_record] = np.maximum(found[1], 0)
        steps[0, is_record] -= 1
        self._begun, self._ended = max(self._begun, until + is_at_hand), max(self._ended, until)
        self._add(steps[0], steps[1], kinds)

    def _add(self, before: Int64s, last: Int64s, kinds: Int64s) -> None:
        first, to, steps = self._covered.gaps(before, last)
        kinds = kinds[steps]
        if self._is_after_hole and len(last):
            kinds[:1][steps[:1] == 0] = _DAMAGED
            self._is_after_hole = False
        if len(first):
            self._found.append(np.stack([first, to, kinds]))
