"""Folding the log of one offsets partition, block by block: scan, unfold what is compressed, fold."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING

import numpy as np

from exhume.codecs.batches import MOST_OFFSETS_IN_SEGMENT
from exhume.codecs.columns.runs import readable
from exhume.codecs.columns.sections import Sections
from exhume.codecs.file_content import looks_like
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.lz4 import SLACK_BYTES
from exhume.codecs.kernels.primitives import Bytes, Int64s
from exhume.codecs.kernels.records import LEAST_BYTES
from exhume.codecs.kernels.times import read_times
from exhume.codecs.wire import Buffer
from exhume.errors import DecompressionError
from exhume.replay.broker_log import StrictLog
from exhume.replay.moment import ClockOrder, Cut, Moment, taken_to
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.reading import FastLoad, LoadInputs
from exhume.replay.survivors.ahead import fold_ahead
from exhume.replay.survivors.asked import ask_for, fold_asked, with_notes
from exhume.replay.survivors.clock_order import nothing_found, order_of
from exhume.replay.survivors.fold import fold
from exhume.replay.survivors.joining import joined
from exhume.replay.survivors.rules import (
    ASKED_GROUPS,
    BAD_RECORD,
    BEYOND_OFFSET,
    DONE,
    IS_PART,
    LARGEST,
    LOWEST_OFFSET,
    NOTES_BATCHES,
    ODD_BATCH,
    OFFSETS_GO_BACK,
    SEED,
    TRANSACTIONAL,
    are_alike,
    rules_of,
)
from exhume.replay.survivors.settled import Settled, read_topic_ids
from exhume.replay.survivors.stretches import Piece, stretches
from exhume.replay.survivors.tables import (
    BEGINS_WITHIN,
    FIRST_BASE_OFFSET,
    FIRST_LEADER_EPOCH,
    FIRST_OFFSET,
    IS_CUT,
    KEYS,
    LAST_BATCH,
    LAST_OFFSET_SEEN,
    LEADER_EPOCH_SEEN,
    NEXT_OFFSET,
    PRODUCERS,
    RECORDS_DONE,
    STATUS,
    Tables,
    drop_old_metadata,
    new_tables,
    with_room,
)

if TYPE_CHECKING:
    from exhume.replay.survivors.odd_places import OddPlaces

_BLOCK_BATCHES = 1024
#: So few that their bytes are still near when they have been verified.
_NEAR_BATCHES = 128
#: What is folded in one call: records, bytes, batches.
_ROOM = (1 << 15, 8 << 20, 1 << 12)
#: What does not lie in its segment as it is folded is folded in runs of about so many bytes.
_RUN_BYTES = 8 * 1024 * 1024
#: How much a kernel folds until it is seen to how far it came.
_STEP_BYTES = 16 * 1024 * 1024


def fold_log(
    log: StrictLog,
    profile: BrokerProfile,
    inputs: LoadInputs,
    fast: FastLoad,
    *,
    start_offset: int,
    lenient: bool = False,
    at: Moment | None = None,
    groups: Collection[str] | None = None,
    odd: OddPlaces | None = None,
    until: tuple[int, int] | None = None,
) -> Settled | None:
    """What a load of this log by this release comes to, from the batch with `start_offset` on, up to this moment where one is given; None
    where it has to be loaded record by record. Commits of other groups than these, where some are given, may be left out.

    With `lenient` the log may go on behind where it should end. `odd` gets the fold past places that are odd. `until` is the segment and
    byte at which a load ends in an error.
    """
    order, last_offset = None, None
    if at is not None and at.time_ms is not None:
        order = _read_order(log, start_offset, at, fast)
        if order is None:
            return None
        last_offset = None if order.first_later is None else order.first_later[0] - 1
    elif at is not None:
        last_offset = at.last_offsets.get(log.partition.offsets_partition)
    rules = rules_of(profile, inputs, start_offset, last_offset)
    segments = [number for number, segment in enumerate(log.segments) if segment.end]
    if not segments:
        return None
    # Behind a moment it is not looked what a marker ends.
    rules[NOTES_BATCHES] = bool(groups) and fast.noted is not None and at is None
    # What is left of a log that was cut is not what another stop leaves.
    is_kept = groups is None and until is None and not log.losses and not (odd is not None and log.stop == "unclean")
    tables = _known(log, rules, fast) if is_kept else None
    if tables is None:
        whole = _pieces_until(stretches(log, segments, 1)[0], until)
        tables = _fold(log, whole, rules, sorted(groups or ()), fast, odd=odd, is_whole=until is None)
    if tables.counts[STATUS] != DONE:
        return None
    if fast.folded is not None and is_kept and not (odd is not None and odd.odd_segments):
        fast.folded[log.partition.path] = (rules, tables, fast.verify)
    ends_at = until if odd is None or odd.ends_at is None else odd.ends_at
    cut = Cut()
    if last_offset is not None and tables.counts[IS_CUT]:
        end_offset = log.start_offset if tables.counts[FIRST_OFFSET] < 0 else int(tables.counts[NEXT_OFFSET])
        cut = Cut(end_offset=end_offset)
        if end_offset <= start_offset and tables.counts[FIRST_OFFSET] >= 0:
            # The log ends in front of its start, in one batch with it: releases differ in what they read of it.
            return None
    elif ends_at is not None:
        if max(int(tables.counts[NEXT_OFFSET]), log.start_offset) >= log.end_offset:
            # Reading may have ended in front of that place.
            return None
    elif not _may_end(int(tables.counts[NEXT_OFFSET]), log.end_offset, profile, lenient=lenient):
        return None
    topic_ids = read_topic_ids(tables)
    if topic_ids is None or (ends_at is not None and at is not None):
        return None
    settled = Settled(log if at is None else taken_to(cut, log, at, order), tables, topic_ids, ends_at=ends_at)
    if odd is not None:
        settled.mended, settled.odd_segments = odd.mended, odd.odd_segments
    return settled


def _may_end(next_offset: int, end_offset: int, profile: BrokerProfile, *, lenient: bool) -> bool:
    """True where a load may end here that was told of this log end. Salvage finds batches behind it."""
    if next_offset >= end_offset:
        return lenient or next_offset == end_offset
    if isinstance(profile, JavaProfile):
        # Where the log ends in a gap, what requests see hangs on every batch.
        return lenient and profile.commit_interval is None
    return lenient or (isinstance(profile, ScalaProfile) and profile.empty_read == "stop")


def _pieces_until(pieces: list[Piece], until: tuple[int, int] | None) -> list[Piece]:
    if until is None:
        return pieces
    number, position = until
    return [replace(piece, end=position) if piece.segment == number else piece for piece in pieces if piece.segment <= number]


def _known(log: StrictLog, rules: Int64s, fast: FastLoad) -> Tables | None:
    """What a fold of this log came to that would come to the same by these rules; None where there was none."""
    folded_by, tables, is_verified = (fast.folded or {}).get(log.partition.path, (None, None, False))
    if tables is None or (fast.verify and not is_verified):
        return None
    known: Tables = tables
    return known if are_alike(rules, folded_by, has_producers=bool(known.counts[PRODUCERS])) else None


def _fold(
    log: StrictLog, whole: list[Piece], rules: Int64s, asked: Sequence[str], fast: FastLoad, *, odd: OddPlaces | None, is_whole: bool
) -> Tables:
    tables = None
    parts = stretches(log, sorted({piece.segment for piece in whole}), fast.threads) if is_whole else [whole]
    if len(parts) > 1:
        tables = _fold_side_by_side(log, parts, rules, asked, fast)
    # A batch that is taken for the first of a stretch can lie in a record.
    if tables is None or tables.counts[STATUS] in (TRANSACTIONAL, ODD_BATCH, BAD_RECORD):
        tables = _fold_in_turn(log, whole, rules, asked, fast)
    if odd is not None and tables.counts[STATUS] != DONE:
        rules[[ASKED_GROUPS, NOTES_BATCHES]] = 0
        odd.rules = rules
        tables = _fold_in_turn(log, whole, rules, (), fast, odd=odd)
    return tables


def _read_order(log: StrictLog, start_offset: int, at: Moment, fast: FastLoad) -> ClockOrder | None:
    """How the records are ordered in time; None where that has to be found out record by record."""
    assert at.time_ms is not None
    if at.clock != "append" or abs(at.time_ms) > LARGEST:
        return None
    found = nothing_found()
    for segment in log.segments:
        if looks_like(memoryview(segment.buffer)) is not None:
            return None
        for rows, count, content in _blocks(segment.buffer, fast, verifies=False, end=segment.end):
            try:
                for first, last, data, bodies in runs(content, rows, count, fast.cap_bytes):
                    if read_times(rows, first, last, data, bodies, start_offset, at.time_ms, found) < last:
                        return None
            except DecompressionError:
                return None
            if not count:
                return None
    return order_of(found)


def _fold_in_turn(
    log: StrictLog, stretch: Sequence[Piece], rules: Int64s, asked: Sequence[str], fast: FastLoad, *, odd: OddPlaces | None = None
) -> Tables:
    tables = new_tables(int(rules[SEED]))
    if asked:
        tables = ask_for(asked, tables, rules)
    tables.counts[BEGINS_WITHIN] = stretch[0].start > 0
    for piece in stretch:
        tables = _fold_piece(log, piece, rules, tables, fast, odd=odd)
        if tables.counts[STATUS] != DONE or fast.is_stopped.is_set() or (odd is not None and odd.is_over):
            break
    return tables


def _fold_side_by_side(log: StrictLog, parts: Sequence[Sequence[Piece]], rules: Int64s, asked: Sequence[str], fast: FastLoad) -> Tables:
    """Stretches on threads, a few ahead of the one that is joined; the first that is not done ends it."""
    part_rules = rules.copy()
    part_rules[IS_PART] = True
    own = replace(fast, is_stopped=Event())
    tables: Tables | None = None
    with ThreadPoolExecutor(fast.threads) as pool:
        coming: deque[Future[Tables]] = deque()
        waiting = iter(parts)
        try:
            while True:
                for stretch in islice(waiting, fast.threads + 1 - len(coming)):
                    coming.append(pool.submit(_fold_in_turn, log, stretch, part_rules.copy(), asked, own))
                if not coming:
                    assert tables is not None
                    return tables
                part = coming.popleft().result()
                if part.counts[STATUS] != DONE:
                    return part
                both = part if tables is None else joined(tables, part, int(rules[SEED]))
                if both is None:
                    part.counts[STATUS] = OFFSETS_GO_BACK
                    return part
                tables = drop_old_metadata(both if tables is None else with_notes(both, tables, part))
        finally:
            # Whatever ends this, what is under way ends soon.
            own.is_stopped.set()
            for future in coming:
                future.cancel()


def _fold_piece(log: StrictLog, piece: Piece, rules: Int64s, tables: Tables, fast: FastLoad, *, odd: OddPlaces | None = None) -> Tables:
    """These tables, and this piece of a segment folded into them; `counts[STATUS]` says whether it was."""
    number = piece.segment
    if piece.start == 0 and looks_like(memoryview(log.segments[number].buffer)) is not None:
        return _given_up(tables, ODD_BATCH)
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
    log: StrictLog, piece: Piece, rules: Int64s, tables: Tables, fast: FastLoad, *, odd: OddPlaces | None
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
            fast.verify,
            rows,
            bodies,
            fast.cap_bytes,
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
            block = np.empty((_BLOCK_BATCHES, scan.COLUMNS), np.int64)
            count, _ = scan.scan(content, position, piece.end, fast.verify, block)
            tables, done = _fold_block((block, count, content), piece.segment, rules, tables, fast)
            if done:
                counts[LAST_BATCH] = block[done - 1, scan.POSITION]
                position = int(block[done - 1, scan.POSITION] + block[done - 1, scan.SIZE])
        if odd is not None and position > start:
            odd.last_batch_at = int(counts[LAST_BATCH])
    return tables, position


def _fold_block(block: tuple[Int64s, int, Bytes], segment: int, rules: Int64s, tables: Tables, fast: FastLoad) -> tuple[Tables, int]:
    """These tables, and a block of `_blocks` folded into them; how many of its batches were."""
    rows, count, content = block
    counts, done = tables.counts, 0
    if not count:
        counts[RECORDS_DONE] = 0
        return _given_up(tables, ODD_BATCH), done
    if counts[FIRST_BASE_OFFSET] < 0:
        counts[[FIRST_BASE_OFFSET, FIRST_LEADER_EPOCH]] = rows[0, [scan.BASE_OFFSET, scan.LEADER_EPOCH]]
    counts[LAST_OFFSET_SEEN] = rows[count - 1, scan.LAST_OFFSET]
    try:
        for first, last, data, bodies in runs(content, rows, count, fast.cap_bytes):
            tables = with_room_for(tables, rows, first, last, bodies)
            if rules[ASKED_GROUPS]:
                done = fold_asked(rows, first, last, data, bodies, segment, rules, tables, np.full(3, LARGEST))
            else:
                done = fold(rows, first, last, data, bodies, segment, rules, tables)
            if done < last:
                return tables, done
    except DecompressionError:
        counts[RECORDS_DONE] = 0
        return _given_up(tables, BAD_RECORD), done
    fast.advance(int(rows[:count, scan.SIZE].sum()))
    return drop_old_metadata(tables), done


def _blocks(
    buffer: Buffer, fast: FastLoad, *, verifies: bool, start: int = 0, end: int | None = None
) -> Iterator[tuple[Int64s, int, Bytes]]:
    """The batches of `buffer[start:end]` in blocks: rows of them, how many, and the segment. None in a block: no whole one begins where
    one should.
    """
    content = readable(buffer)
    end = len(content) if end is None else end
    rows = np.empty((_BLOCK_BATCHES, scan.COLUMNS), np.int64)
    position = start
    while position < end and not fast.is_stopped.is_set():
        count, position = scan.scan(content, position, end, verifies, rows)
        yield rows, count, content
        if not count:
            return


def bound_offsets(rules: Int64s, log: StrictLog, number: int) -> None:
    """Set what the segment of this number may hold."""
    base_offset = log.segments[number].file.base_offset
    rules[LOWEST_OFFSET] = base_offset
    rules[BEYOND_OFFSET] = min(base_offset + MOST_OFFSETS_IN_SEGMENT + 1, LARGEST)
    for later in log.segments[number + 1 : number + 2]:
        rules[BEYOND_OFFSET] = min(rules[BEYOND_OFFSET], later.file.base_offset)


def with_room_for(tables: Tables, rows: Int64s, first: int, last: int, bodies: Int64s) -> Tables:
    """These tables with room for batches `first` to `last`."""
    sizes = bodies[first:last, 1] - bodies[first:last, 0]
    # Whoever counts more records than there is room for is found out soon.
    records = int(np.clip(rows[first:last, scan.RECORD_COUNT], 0, sizes // LEAST_BYTES).sum())
    return with_room(tables, records, int(sizes.sum()), last - first)


def _given_up(tables: Tables, status: int) -> Tables:
    tables.counts[STATUS] = status
    return tables


def runs(buffer: Bytes, rows: Int64s, count: int, cap_bytes: int) -> Iterator[tuple[int, int, Bytes, Int64s]]:
    """The batches in runs, each with the bytes that hold its records, and where in them the records of each batch lie.

    Raises:
        DecompressionError: a batch cannot be unfolded, or to more than the cap only; out of the run behind those in front of it.
    """
    sections = Sections(buffer, rows[:count], cap_bytes)
    first = 0
    while first < count:
        last, data = sections.behind(first, count, _RUN_BYTES)
        if data is None:
            raise DecompressionError("a batch that cannot be unfolded")
        yield first, last, data, sections.bodies
        first = last
