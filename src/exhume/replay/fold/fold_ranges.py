"""Fold a range of a segment: one call of a kernel as far as it gets, then block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

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
from exhume.replay.fold.kernels.batches import fold
from exhume.replay.fold.kernels.chosen_groups import fold_chosen
from exhume.replay.fold.kernels.scanning import scan_and_fold
from exhume.replay.fold.rules import BAD_RECORD, BEYOND_OFFSET, CHOSEN_GROUPS, DONE, LOWEST_OFFSET, NOT_PLAIN_BATCH
from exhume.replay.fold.tables import (
    FIRST_BASE_OFFSET,
    FIRST_LEADER_EPOCH,
    KEYS,
    LAST_BATCH,
    LAST_OFFSET_SEEN,
    LEADER_EPOCH_SEEN,
    RECORDS_DONE,
    STATUS,
    Tables,
    drop_old_metadata,
    given_up,
    with_room,
    with_room_for,
)
from exhume.replay.fold.thread_parts import SegmentRange
from exhume.replay.reading import CompiledLoad

if TYPE_CHECKING:
    from exhume.replay.fold.careful_batches import CarefulReader

#: So few batches that the processor still has their bytes in its cache after it has verified them.
_NEAR_BATCHES = 128
#: The most that one call folds: records, bytes, batches.
_MOST_ROOM = (1 << 15, 8 << 20, 1 << 12)
#: The approximate number of decompressed bytes that are folded in one run.
_RUN_BYTES = 8 * 1024 * 1024
#: The bytes that a kernel folds between two reports of progress.
_STEP_BYTES = 16 * 1024 * 1024


def fold_range(
    log: StrictLog,
    segment_range: SegmentRange,
    rules: Int64s,
    tables: Tables,
    fast: CompiledLoad,
    *,
    careful_reader: CarefulReader | None = None,
) -> Tables:
    """Fold this range of a segment into these tables and return them; `counts[STATUS]` has the reason if the fold ended early."""
    number = segment_range.segment
    if segment_range.start == 0 and looks_like(memoryview(log.segments[number].buffer)) is not None:
        return given_up(tables, NOT_PLAIN_BATCH)
    bound_offsets(rules, log, number)
    tables.counts[LEADER_EPOCH_SEEN] = -1
    if careful_reader is not None:
        careful_reader.last_batch_at = 0
    tables, position = _fold_batches(log, segment_range, rules, tables, fast, careful_reader=careful_reader)
    while careful_reader is not None and tables.counts[STATUS] != DONE and not fast.is_stopped.is_set():
        tables, next_position = careful_reader.pass_over(tables, number, position)
        if tables.counts[STATUS] != DONE or careful_reader.is_over:
            break
        fast.advance(next_position - position)
        rest = replace(segment_range, start=next_position, end=min(segment_range.end, log.segments[number].end))
        tables, position = _fold_batches(log, rest, rules, tables, fast, careful_reader=careful_reader)
    return tables


def _fold_batches(
    log: StrictLog, segment_range: SegmentRange, rules: Int64s, tables: Tables, fast: CompiledLoad, *, careful_reader: CarefulReader | None
) -> tuple[Tables, int]:
    """Fold the batches of this range up to one that the kernels do not take; return also the byte after the last folded batch.

    One call of a kernel scans and folds as far as it gets. The next batches are then folded block by block.
    """
    buffer = log.segments[segment_range.segment].buffer
    content, counts = readable(buffer), tables.counts
    rows, bodies, room = np.empty((_NEAR_BATCHES, scan.COLUMNS), np.int64), np.empty((_NEAR_BATCHES, 2), np.int64), np.empty(3, np.int64)
    memory = np.empty(_RUN_BYTES + SLACK_BYTES, np.uint8)
    unfolded = memory.view()
    unfolded.flags.writeable = False
    position = segment_range.start
    expected = 0
    most = _room_for(segment_range.end - position)
    while position < segment_range.end and counts[STATUS] == DONE and not fast.is_stopped.is_set():
        tables = with_room(drop_old_metadata(tables), *most, expected)
        room[:] = most
        start, known = position, int(counts[KEYS])
        position = scan_and_fold(
            content,
            position,
            min(position + _STEP_BYTES, segment_range.end),
            segment_range.end,
            fast.read.verify,
            rows,
            bodies,
            fast.read.cap_bytes,
            memory,
            unfolded,
            segment_range.segment,
            rules,
            tables,
            room,
        )
        fast.advance(position - start)
        if known and position > start:
            # At the beginning of a log all keys are new: they allow no estimate.
            expected = int(counts[KEYS]) + (int(counts[KEYS]) - known) * (segment_range.end - position) // (position - start)
        if position == start and counts[STATUS] == DONE:
            tables, position = _fold_block(content, replace(segment_range, start=position), rules, tables, fast)
        if careful_reader is not None and position > start:
            careful_reader.last_batch_at = int(counts[LAST_BATCH])
    return tables, position


def _room_for(size_bytes: int) -> tuple[int, int, int]:
    """Return the room for so many bytes: the records of a small log need little memory."""
    records, records_bytes, batches = _MOST_ROOM
    return (
        min(records, size_bytes // LEAST_BYTES + 1),
        min(records_bytes, size_bytes),
        min(batches, size_bytes // scan.HEADER_BYTES + 1),
    )


def _fold_block(content: Bytes, segment_range: SegmentRange, rules: Int64s, tables: Tables, fast: CompiledLoad) -> tuple[Tables, int]:
    """Fold the first batches of this range into these tables; return also the byte after the last folded batch."""
    rows = np.empty((scan.BLOCK_BATCHES, scan.COLUMNS), np.int64)
    count, _ = scan.scan(content, segment_range.start, segment_range.end, fast.read.verify, rows)
    tables, done = _fold_rows((rows, count, content), segment_range.segment, rules, tables, fast)
    if done:
        tables.counts[LAST_BATCH] = rows[done - 1, scan.POSITION]
    return tables, int(rows[done - 1, scan.POSITION] + rows[done - 1, scan.SIZE]) if done else segment_range.start


def _fold_rows(block: tuple[Int64s, int, Bytes], segment: int, rules: Int64s, tables: Tables, fast: CompiledLoad) -> tuple[Tables, int]:
    """Fold a block into these tables: rows of batches, their number, and the content of the segment. Return also the number folded.

    A block without batches means that no whole batch begins where one should.
    """
    rows, count, content = block
    counts, done = tables.counts, 0
    if not count:
        counts[RECORDS_DONE] = 0
        return given_up(tables, NOT_PLAIN_BATCH), done
    if counts[FIRST_BASE_OFFSET] < 0:
        counts[[FIRST_BASE_OFFSET, FIRST_LEADER_EPOCH]] = rows[0, [scan.BASE_OFFSET, scan.LEADER_EPOCH]]
    counts[LAST_OFFSET_SEEN] = rows[count - 1, scan.LAST_OFFSET]
    try:
        for first, last, data, bodies in runs(content, rows, count, fast.read.cap_bytes):
            tables = with_room_for(tables, rows, first, last, bodies)
            if rules[CHOSEN_GROUPS]:
                done = fold_chosen(rows, first, last, data, bodies, segment, rules, tables, np.full(3, LARGEST_INT64))
            else:
                done = fold(rows, first, last, data, bodies, segment, rules, tables)
            if done < last:
                return tables, done
    except DecompressionError:
        counts[RECORDS_DONE] = 0
        return given_up(tables, BAD_RECORD), done
    fast.advance(int(rows[:count, scan.SIZE].sum()))
    return drop_old_metadata(tables), done


def bound_offsets(rules: Int64s, log: StrictLog, number: int) -> None:
    """Set the record offsets that the segment of this number may hold."""
    base_offset = log.segments[number].file.base_offset
    rules[LOWEST_OFFSET] = base_offset
    rules[BEYOND_OFFSET] = min(base_offset + MOST_OFFSETS_IN_SEGMENT + 1, LARGEST_INT64)
    for later in log.segments[number + 1 : number + 2]:
        rules[BEYOND_OFFSET] = min(rules[BEYOND_OFFSET], later.file.base_offset)


def runs(buffer: Bytes, rows: Int64s, count: int, cap_bytes: int) -> Iterator[tuple[int, int, Bytes, Int64s]]:
    """Yield the batches in runs: first and last batch, the bytes that hold their records, and the place of each batch's records in them.

    Raises:
        DecompressionError: a batch cannot be decompressed, or is larger than the cap. Raised after the runs before that batch.
    """
    sections = Sections(buffer, rows[:count], cap_bytes)
    first = 0
    while first < count:
        last, data = sections.memory_from(first, count, _RUN_BYTES)
        if data is None:
            raise DecompressionError("a batch that cannot be unfolded")
        yield first, last, data, sections.bodies
        first = last
