"""Folding a piece of a segment: as far as a kernel gets in one go, and what it does not take block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from exhume.codecs.batch_format import MOST_OFFSETS_IN_SEGMENT
from exhume.codecs.columns.runs import readable
from exhume.codecs.columns.sections import Sections
from exhume.codecs.file_content import looks_like
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.lz4 import SLACK_BYTES
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.errors import DecompressionError
from exhume.int64 import LARGEST_INT64
from exhume.replay.broker_log import StrictLog
from exhume.replay.reading import CompiledLoad
from exhume.replay.survivors.ahead import fold_ahead
from exhume.replay.survivors.asked import fold_asked
from exhume.replay.survivors.fold import fold
from exhume.replay.survivors.rules import ASKED_GROUPS, BAD_RECORD, BEYOND_OFFSET, DONE, LOWEST_OFFSET, ODD_BATCH
from exhume.replay.survivors.stretches import Piece
from exhume.replay.survivors.tables import (
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

if TYPE_CHECKING:
    from exhume.replay.survivors.odd_places import OddPlaces

#: So few that their bytes are still near when they have been verified.
_NEAR_BATCHES = 128
#: What is folded in one call: records, bytes, batches.
_ROOM = (1 << 15, 8 << 20, 1 << 12)
#: What does not lie in its segment as it is folded is folded in runs of about so many bytes.
_RUN_BYTES = 8 * 1024 * 1024
#: How much a kernel folds until it is seen to how far it came.
_STEP_BYTES = 16 * 1024 * 1024


def fold_piece(log: StrictLog, piece: Piece, rules: Int64s, tables: Tables, fast: CompiledLoad, *, odd: OddPlaces | None = None) -> Tables:
    """These tables, and this piece of a segment folded into them; `counts[STATUS]` says whether it was."""
    number = piece.segment
    if piece.start == 0 and looks_like(memoryview(log.segments[number].buffer)) is not None:
        return given_up(tables, ODD_BATCH)
    bound_offsets(rules, log, number)
    tables.counts[LEADER_EPOCH_SEEN] = -1
    if odd is not None:
        odd.last_batch_at = 0
    tables, position = _fold_batches(log, piece, rules, tables, fast, odd=odd)
    while odd is not None and tables.counts[STATUS] != DONE and not fast.is_stopped.is_set():
        tables, behind = odd.pass_over(tables, number, position)
        if tables.counts[STATUS] != DONE or odd.is_over:
            break
        fast.advance(behind - position)
        rest = replace(piece, start=behind, end=min(piece.end, log.segments[number].end))
        tables, position = _fold_batches(log, rest, rules, tables, fast, odd=odd)
    return tables


def _fold_batches(
    log: StrictLog, piece: Piece, rules: Int64s, tables: Tables, fast: CompiledLoad, *, odd: OddPlaces | None
) -> tuple[Tables, int]:
    """The same as far as nothing is odd, and the byte behind the last batch that was folded whole.

    A kernel scans and folds as far as it gets; what it does not take, block by block.
    """
    buffer = log.segments[piece.segment].buffer
    content, counts = readable(buffer), tables.counts
    rows, bodies, room = np.empty((_NEAR_BATCHES, scan.COLUMNS), np.int64), np.empty((_NEAR_BATCHES, 2), np.int64), np.empty(3, np.int64)
    memory = np.empty(_RUN_BYTES + SLACK_BYTES, np.uint8)
    unfolded = memory.view()
    unfolded.flags.writeable = False
    position = piece.start
    expected = 0
    while position < piece.end and counts[STATUS] == DONE and not fast.is_stopped.is_set():
        tables = with_room(drop_old_metadata(tables), *_ROOM, expected)
        room[:] = _ROOM
        start, known = position, int(counts[KEYS])
        position = fold_ahead(
            content,
            position,
            min(position + _STEP_BYTES, piece.end),
            piece.end,
            fast.read.verify,
            rows,
            bodies,
            fast.read.cap_bytes,
            memory,
            unfolded,
            piece.segment,
            rules,
            tables,
            room,
        )
        fast.advance(position - start)
        if known and position > start:
            # Of the first keys of a log all are new: they say nothing.
            expected = int(counts[KEYS]) + (int(counts[KEYS]) - known) * (piece.end - position) // (position - start)
        if position == start and counts[STATUS] == DONE:
            tables, position = _fold_block(content, replace(piece, start=position), rules, tables, fast)
        if odd is not None and position > start:
            odd.last_batch_at = int(counts[LAST_BATCH])
    return tables, position


def _fold_block(content: Bytes, piece: Piece, rules: Int64s, tables: Tables, fast: CompiledLoad) -> tuple[Tables, int]:
    """These tables, and the first batches of this piece folded into them; the byte behind the last one that was."""
    rows = np.empty((scan.BLOCK_BATCHES, scan.COLUMNS), np.int64)
    count, _ = scan.scan(content, piece.start, piece.end, fast.read.verify, rows)
    tables, done = _fold_rows((rows, count, content), piece.segment, rules, tables, fast)
    if done:
        tables.counts[LAST_BATCH] = rows[done - 1, scan.POSITION]
    return tables, int(rows[done - 1, scan.POSITION] + rows[done - 1, scan.SIZE]) if done else piece.start


def _fold_rows(block: tuple[Int64s, int, Bytes], segment: int, rules: Int64s, tables: Tables, fast: CompiledLoad) -> tuple[Tables, int]:
    """These tables, and a block folded into them: rows of batches, how many, and the segment; how many of them were.

    None in a block: no whole batch begins where one should.
    """
    rows, count, content = block
    counts, done = tables.counts, 0
    if not count:
        counts[RECORDS_DONE] = 0
        return given_up(tables, ODD_BATCH), done
    if counts[FIRST_BASE_OFFSET] < 0:
        counts[[FIRST_BASE_OFFSET, FIRST_LEADER_EPOCH]] = rows[0, [scan.BASE_OFFSET, scan.LEADER_EPOCH]]
    counts[LAST_OFFSET_SEEN] = rows[count - 1, scan.LAST_OFFSET]
    try:
        for first, last, data, bodies in runs(content, rows, count, fast.read.cap_bytes):
            tables = with_room_for(tables, rows, first, last, bodies)
            if rules[ASKED_GROUPS]:
                done = fold_asked(rows, first, last, data, bodies, segment, rules, tables, np.full(3, LARGEST_INT64))
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
    """Set what the segment of this number may hold."""
    base_offset = log.segments[number].file.base_offset
    rules[LOWEST_OFFSET] = base_offset
    rules[BEYOND_OFFSET] = min(base_offset + MOST_OFFSETS_IN_SEGMENT + 1, LARGEST_INT64)
    for later in log.segments[number + 1 : number + 2]:
        rules[BEYOND_OFFSET] = min(rules[BEYOND_OFFSET], later.file.base_offset)


def runs(buffer: Bytes, rows: Int64s, count: int, cap_bytes: int) -> Iterator[tuple[int, int, Bytes, Int64s]]:
    """The batches in runs, each with the bytes that hold its records, and where in them the records of each batch lie.

    Raises:
        DecompressionError: a batch cannot be unfolded, or to more than the cap only; out of the run behind those in front of it.
    """
    sections = Sections(buffer, rows[:count], cap_bytes)
    first = 0
    while first < count:
        last, data = sections.memory_from(first, count, _RUN_BYTES)
        if data is None:
            raise DecompressionError("a batch that cannot be unfolded")
        yield first, last, data, sections.bodies
        first = last
