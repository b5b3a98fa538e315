"""Fold one part of a log: as far as a kernel gets in one call, then block by block; around batches that no kernel takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from exhume.codecs.batch_format import MOST_OFFSETS_IN_SEGMENT
from exhume.codecs.columns.blocks import readable
from exhume.codecs.columns.sections import Sections
from exhume.codecs.file_content import looks_like
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.lz4 import SLACK_BYTES
from exhume.codecs.kernels.records import LEAST_BYTES
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.errors import DecompressionError
from exhume.int64 import LARGEST_INT64
from exhume.replay.broker_log import StrictLog
from exhume.replay.clock_counts import ClockCounts
from exhume.replay.fold.careful_batches import CarefulReader
from exhume.replay.fold.cuts import Cut, NotPlainRecords, RunOfBatches, TimeCutter
from exhume.replay.fold.kernels.batches import fold
from exhume.replay.fold.kernels.chosen_groups import choose_groups, fold_chosen
from exhume.replay.fold.kernels.scanning import scan_and_fold
from exhume.replay.fold.plan import SegmentRange
from exhume.replay.fold.result import FoldResult, LogRecords
from exhume.replay.fold.rules import (
    BAD_RECORD,
    BEYOND_OFFSET,
    CHOSEN_GROUPS,
    DONE,
    LAST_COUNTED_OFFSET,
    LOWEST_OFFSET,
    NOT_PLAIN_BATCH,
    SEED,
    START_OFFSET,
)
from exhume.replay.fold.tables import (
    BEGINS_WITHIN,
    FIRST_BASE_OFFSET,
    FIRST_LEADER_EPOCH,
    KEYS,
    LAST_BATCH,
    LAST_OFFSET_SEEN,
    LEADER_EPOCH_SEEN,
    NEXT_OFFSET,
    RECORDS_DONE,
    STATUS,
    Tables,
    drop_old_metadata,
    given_up,
    new_tables,
    with_room,
    with_room_for,
)
from exhume.replay.reading import CompiledLoad

#: So few batches that the processor still has their bytes in its cache after it has verified them.
_NEAR_BATCHES = 128
#: The most that one call folds: records, bytes, batches.
_MOST_ROOM = (1 << 15, 8 << 20, 1 << 12)
#: The approximate number of decompressed bytes that are folded in one run.
_RUN_BYTES = 8 * 1024 * 1024
#: The bytes that a kernel folds between two reports of progress.
_STEP_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CutFold:
    """A cut within a part, where moments of these numbers end.

    `folds_before` counts the folds of the part before it. With `has_branch`, it is within a batch, and the next fold is a branch: that of
    the first records of the batch, whose other records belong to the fold after it.
    """

    moments: tuple[int, ...]
    folds_before: int
    has_branch: bool


@dataclass(slots=True)
class PartFold:
    """The fold of a part: one for the batches before each cut, and one for the rest, in order; with branches.

    `clock` has the times of all its records, if moments are times; `end_offset` is the log end, if the part has it. `unread_segments` are
    those with bytes that the kernels did not take: a reader of findings must read them.
    """

    folds: Iterable[FoldResult] = ()
    cuts: list[CutFold] = field(default_factory=list)
    clock: ClockCounts | None = None
    end_offset: int | None = None
    unread_segments: frozenset[int] = frozenset()


def fold_part(
    log: StrictLog,
    ranges: Sequence[SegmentRange],
    rules: Int64s,
    fast: CompiledLoad,
    *,
    groups: Sequence[str] = (),
    cutter: TimeCutter | None = None,
    careful_reader: CarefulReader | None = None,
) -> PartFold:
    """Fold these bytes of the log by these rules, for these groups only (none: all).

    The segments must be open. `careful_reader` reads the batches of the same log that the kernels do not take. If the fold ends early, the
    last of its folds has the reason.
    """
    folding = _Folding(log, rules, fast, cutter, careful_reader)
    if groups:
        folding.tables = choose_groups(groups, folding.tables, rules)
    try:
        folding.run(ranges)
    except NotPlainRecords:
        given_up(folding.tables, BAD_RECORD)
    return folding.finished()


class _Folding:
    """A fold of a part that is under way."""

    def __init__(self, log: StrictLog, rules: Int64s, fast: CompiledLoad, cutter: TimeCutter | None, careful: CarefulReader | None) -> None:
        self._log = log
        self._rules = rules
        self._fast = fast
        self._cutter = cutter
        self._careful = careful
        self.tables = new_tables(int(rules[SEED]))
        self._records = LogRecords(log.segments)
        if careful is not None:
            careful.rules = rules
            self._records.mended = careful.mended
        self._folds: list[FoldResult] = []
        self._cuts: list[CutFold] = []
        #: The segments that the fold did not read to their ends.
        self._unread: set[int] = set()
        self._rows = np.empty((_NEAR_BATCHES, scan.COLUMNS), np.int64)
        self._bodies = np.empty((_NEAR_BATCHES, 2), np.int64)
        self._memory = np.empty(_RUN_BYTES + SLACK_BYTES, np.uint8)

    def run(self, ranges: Sequence[SegmentRange]) -> None:
        """Fold these ranges, up to one that is not done."""
        self.tables.counts[BEGINS_WITHIN] = bool(ranges) and ranges[0].start > 0
        self._unread = {each.segment for each in ranges}
        for segment_range in ranges:
            self._fold_range(segment_range)
            if not self._goes_on or (self._careful is not None and self._careful.is_over):
                break
            self._unread.discard(segment_range.segment)

    def finished(self) -> PartFold:
        """Return the fold of the part."""
        result = self._result()
        result.careful_segments = self._unread
        if self._careful is not None:
            result.careful_segments, result.ends_at = self._unread | self._careful.careful_segments, self._careful.ends_at
            result.hidden_from = self._careful.hidden_from
        return PartFold([*self._folds, result], self._cuts, None if self._cutter is None else self._cutter.counts)

    @property
    def _goes_on(self) -> bool:
        return bool(self.tables.counts[STATUS] == DONE) and not self._fast.is_stopped.is_set()

    def _result(self) -> FoldResult:
        return FoldResult(self.tables, self._records)

    def _fold_range(self, segment_range: SegmentRange) -> None:
        number, careful = segment_range.segment, self._careful
        segment = self._log.segments[number]
        if segment_range.start == 0 and looks_like(memoryview(segment.buffer)) is not None:
            given_up(self.tables, NOT_PLAIN_BATCH)
            return
        bound_offsets(self._rules, self._log, number)
        self.tables.counts[LEADER_EPOCH_SEEN] = -1
        if careful is not None:
            careful.last_batch_at = segment_range.start
        end, is_rest = segment.end, segment_range.end == segment.end
        position = self._fold_batches(segment_range)
        while careful is not None and self.tables.counts[STATUS] != DONE and not self._fast.is_stopped.is_set():
            self.tables, next_position = careful.pass_over(self.tables, number, position)
            if self.tables.counts[STATUS] != DONE:
                break
            if careful.is_over:
                if self._cutter is not None:
                    # The order of a log in time has also the records after the moment.
                    raise NotPlainRecords
                break
            if next_position > segment_range.end or (segment.end != end and not is_rest):
                # Other parts have bytes of this batch, or bytes that no broker reads.
                given_up(self.tables, NOT_PLAIN_BATCH)
                break
            self._fast.advance(next_position - position)
            position = self._fold_batches(replace(segment_range, start=next_position, end=min(segment_range.end, segment.end)))

    def _fold_batches(self, segment_range: SegmentRange) -> int:
        """Fold the batches of this range up to one that the kernels do not take; return the byte after the last folded batch."""
        content = readable(self._log.segments[segment_range.segment].buffer)
        position, expected = segment_range.start, 0
        while position < segment_range.end and self._goes_on:
            start, known = position, int(self.tables.counts[KEYS])
            if self._cutter is None:
                position = self._fold_ahead(content, replace(segment_range, start=position), expected)
            if known and position > start:
                # At the beginning of a log all keys are new: they allow no estimate.
                more = int(self.tables.counts[KEYS]) - known
                expected = known + more + more * (segment_range.end - position) // (position - start)
            if position == start and self.tables.counts[STATUS] == DONE:
                position = self._fold_block(content, replace(segment_range, start=position))
            if self._careful is not None and position > start:
                self._careful.last_batch_at = int(self.tables.counts[LAST_BATCH])
        return position

    def _fold_ahead(self, content: Bytes, segment_range: SegmentRange, expected: int) -> int:
        """Fold the first batches of this range in one call of a kernel; return the byte after the last folded batch."""
        room = _room_for(segment_range.end - segment_range.start)
        self.tables = with_room(drop_old_metadata(self.tables), *room, expected)
        unfolded = self._memory.view()
        unfolded.flags.writeable = False
        position = scan_and_fold(
            content,
            segment_range.start,
            min(segment_range.start + _STEP_BYTES, segment_range.end),
            segment_range.end,
            self._fast.read.verify,
            self._rows,
            self._bodies,
            self._fast.read.cap_bytes,
            self._memory,
            unfolded,
            segment_range.segment,
            self._rules,
            self.tables,
            np.array(room, np.int64),
        )
        self._fast.advance(position - segment_range.start)
        return int(position)

    def _fold_block(self, content: Bytes, segment_range: SegmentRange) -> int:
        """Fold the first batches of this range, in runs; return the byte after the last folded batch."""
        rows = np.empty((scan.BLOCK_BATCHES, scan.COLUMNS), np.int64)
        count, _ = scan.scan(content, segment_range.start, segment_range.end, self._fast.read.verify, rows)
        done = self._fold_rows(content, rows, count, segment_range.segment)
        if not done:
            return segment_range.start
        self.tables.counts[LAST_BATCH] = rows[done - 1, scan.POSITION]
        return int(rows[done - 1, scan.POSITION] + rows[done - 1, scan.SIZE])

    def _fold_rows(self, content: Bytes, rows: Int64s, count: int, segment: int) -> int:
        """Fold these rows of batches; return the number of those that are folded.

        Without batches, no whole batch begins where one should.
        """
        counts, done = self.tables.counts, 0
        if not count:
            self._stop_at_unread(NOT_PLAIN_BATCH)
            return done
        if counts[FIRST_BASE_OFFSET] < 0:
            counts[[FIRST_BASE_OFFSET, FIRST_LEADER_EPOCH]] = rows[0, [scan.BASE_OFFSET, scan.LEADER_EPOCH]]
        counts[LAST_OFFSET_SEEN] = rows[count - 1, scan.LAST_OFFSET]
        try:
            for run in _runs(content, rows, count, self._fast.read.cap_bytes):
                done = self._fold_run(run, segment)
                if done < run.last:
                    return done
        except DecompressionError:
            self._stop_at_unread(BAD_RECORD)
            return done
        self._fast.advance(int(rows[:count, scan.SIZE].sum()))
        self.tables = drop_old_metadata(self.tables)
        return done

    def _stop_at_unread(self, status: int) -> None:
        """Stop at a batch of which no kernel reads a record."""
        if self._cutter is not None:
            # The order of a log in time has all its records.
            raise NotPlainRecords
        self.tables.counts[RECORDS_DONE] = 0
        given_up(self.tables, status)

    def _fold_run(self, run: RunOfBatches, segment: int) -> int:
        """Fold this run, and cut it at moments; return the number of the batch at which the fold ends."""
        if self._cutter is None:
            return self._fold(run, run.first, run.last, segment)
        start_offset = int(self._rules[START_OFFSET])
        done = run.first
        for cut in self._cutter.cuts(run, start_offset):
            done = self._fold(run, done, cut.batch, segment)
            if done < cut.batch:
                break
            self._cut(run, cut, segment)
        else:
            self._rules[LAST_COUNTED_OFFSET] = self._cutter.last_offset
            done = self._fold(run, done, run.last, segment)
        if done < run.last:
            self._cutter.end_at(run, done + 1, start_offset)
        return done

    def _fold(self, run: RunOfBatches, first: int, last: int, segment: int) -> int:
        """Fold these batches of a run; return the number of the batch at which the fold ends."""
        if first == last:
            return last
        self.tables = with_room_for(self.tables, run.rows, first, last, run.bodies)
        if self._rules[CHOSEN_GROUPS]:
            room = np.full(3, LARGEST_INT64)
            return int(fold_chosen(run.rows, first, last, run.data, run.bodies, segment, self._rules, self.tables, room))
        return int(fold(run.rows, first, last, run.data, run.bodies, segment, self._rules, self.tables))

    # Moments before the last one

    def _cut(self, run: RunOfBatches, cut: Cut, segment: int) -> None:
        result = self._result()
        if not result.is_empty:
            counts = self.tables.counts
            later = self._later_tables(int(run.rows[cut.batch, scan.BASE_OFFSET]))
            counts[LAST_OFFSET_SEEN] = counts[NEXT_OFFSET] - 1
            self._folds.append(result.detached())
            self.tables = later
        has_branch = bool(run.rows[cut.batch, scan.BASE_OFFSET] <= cut.last_offset)
        self._cuts.append(CutFold(cut.moments, len(self._folds), has_branch))
        if has_branch:
            self._folds.append(self._branch(run, cut, segment))

    def _later_tables(self, base_offset: int) -> Tables:
        """Return the tables of a fold that begins at the batch with this base offset."""
        later = new_tables(int(self._rules[SEED]))
        same = [NEXT_OFFSET, LEADER_EPOCH_SEEN, LAST_OFFSET_SEEN]
        later.counts[same] = self.tables.counts[same]
        later.counts[[FIRST_BASE_OFFSET, FIRST_LEADER_EPOCH]] = base_offset, self.tables.counts[LEADER_EPOCH_SEEN]
        return later

    def _branch(self, run: RunOfBatches, cut: Cut, segment: int) -> FoldResult:
        """Fold the first records of a batch as if it had no others."""
        kept, self.tables = self.tables, self._later_tables(int(run.rows[cut.batch, scan.BASE_OFFSET]))
        self._rules[LAST_COUNTED_OFFSET] = cut.last_offset
        self._fold(run, cut.batch, cut.batch + 1, segment)
        self._rules[LAST_COUNTED_OFFSET] = LARGEST_INT64
        branch, self.tables = self._result().detached(), kept
        return branch


def bound_offsets(rules: Int64s, log: StrictLog, number: int) -> None:
    """Set the record offsets that the segment of this number may hold."""
    base_offset = log.segments[number].file.base_offset
    rules[LOWEST_OFFSET] = base_offset
    rules[BEYOND_OFFSET] = min(base_offset + MOST_OFFSETS_IN_SEGMENT + 1, LARGEST_INT64)
    for later in log.segments[number + 1 : number + 2]:
        rules[BEYOND_OFFSET] = min(rules[BEYOND_OFFSET], later.file.base_offset)


def _room_for(size_bytes: int) -> tuple[int, int, int]:
    """Return the room for so many bytes: the records of a small log need little memory."""
    records, records_bytes, batches = _MOST_ROOM
    return (
        min(records, size_bytes // LEAST_BYTES + 1),
        min(records_bytes, size_bytes),
        min(batches, size_bytes // scan.HEADER_BYTES + 1),
    )


def _runs(buffer: Bytes, rows: Int64s, count: int, cap_bytes: int) -> Iterator[RunOfBatches]:
    """Yield the batches in runs: the records of the batches of a run are in one piece of memory.

    Raises:
        DecompressionError: a batch cannot be decompressed, or is larger than the cap. Raised after the runs before that batch.
    """
    sections = Sections(buffer, rows[:count], cap_bytes)
    first = 0
    while first < count:
        last, data = sections.memory_from(first, count, _RUN_BYTES)
        if data is None:
            raise DecompressionError("a batch that cannot be unfolded")
        yield RunOfBatches(rows, first, last, data, sections.bodies)
        first = last
