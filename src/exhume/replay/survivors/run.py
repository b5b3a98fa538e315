"""Folding the log of one offsets partition: in turn or in stretches side by side, and what of it is known from a fold before."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING

from exhume.codecs.kernels.types import Int64s
from exhume.replay.broker_log import StrictLog
from exhume.replay.moment import LogPrefix, Moment, truncate_log
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.reading import CompiledLoad, LoadInputs
from exhume.replay.survivors.asked import ask_for, with_notes
from exhume.replay.survivors.clock_order import read_order
from exhume.replay.survivors.fold_pieces import fold_piece
from exhume.replay.survivors.joining import joined
from exhume.replay.survivors.rules import (
    ASKED_GROUPS,
    BAD_RECORD,
    DONE,
    IS_PART,
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
    FIRST_OFFSET,
    IS_CUT,
    NEXT_OFFSET,
    PRODUCERS,
    STATUS,
    Tables,
    drop_old_metadata,
    new_tables,
)

if TYPE_CHECKING:
    from exhume.replay.survivors.odd_places import OddPlaces


def fold_log(
    log: StrictLog,
    profile: BrokerProfile,
    inputs: LoadInputs,
    fast: CompiledLoad,
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
        order = read_order(log, start_offset, at, fast)
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
    rules[NOTES_BATCHES] = bool(groups) and fast.relevant_batches is not None and at is None
    # What is left of a log that was cut is not what another stop leaves.
    is_kept = groups is None and until is None and not log.losses and not (odd is not None and log.stop == "unclean")
    tables = _known(log, rules, fast) if is_kept else None
    if tables is None:
        whole = _pieces_until(stretches(log, segments, 1)[0], until)
        tables = _fold(log, whole, rules, sorted(groups or ()), fast, odd=odd, is_whole=until is None)
    if tables.counts[STATUS] != DONE:
        return None
    if fast.reusable_folds is not None and is_kept and not (odd is not None and odd.odd_segments):
        fast.reusable_folds[log.partition.path] = (rules, tables, fast.read.verify)
    ends_at = until if odd is None or odd.ends_at is None else odd.ends_at
    cut = LogPrefix()
    if last_offset is not None and tables.counts[IS_CUT]:
        end_offset = log.start_offset if tables.counts[FIRST_OFFSET] < 0 else int(tables.counts[NEXT_OFFSET])
        cut = LogPrefix(end_offset=end_offset)
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
    settled = Settled(log if at is None else truncate_log(cut, log, at, order), tables, topic_ids, ends_at=ends_at)
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


def _known(log: StrictLog, rules: Int64s, fast: CompiledLoad) -> Tables | None:
    """What a fold of this log came to that would come to the same by these rules; None where there was none."""
    fold = (fast.reusable_folds or {}).get(log.partition.path)
    if fold is None:
        return None
    folded_by, tables, is_verified = fold
    if fast.read.verify and not is_verified:
        return None
    return tables if are_alike(rules, folded_by, has_producers=bool(tables.counts[PRODUCERS])) else None


def _fold(
    log: StrictLog, whole: list[Piece], rules: Int64s, asked: Sequence[str], fast: CompiledLoad, *, odd: OddPlaces | None, is_whole: bool
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


def _fold_in_turn(
    log: StrictLog, stretch: Sequence[Piece], rules: Int64s, asked: Sequence[str], fast: CompiledLoad, *, odd: OddPlaces | None = None
) -> Tables:
    tables = new_tables(int(rules[SEED]))
    if asked:
        tables = ask_for(asked, tables, rules)
    tables.counts[BEGINS_WITHIN] = stretch[0].start > 0
    for piece in stretch:
        tables = fold_piece(log, piece, rules, tables, fast, odd=odd)
        if tables.counts[STATUS] != DONE or fast.is_stopped.is_set() or (odd is not None and odd.is_over):
            break
    return tables


def _fold_side_by_side(log: StrictLog, parts: Sequence[Sequence[Piece]], rules: Int64s, asked: Sequence[str], fast: CompiledLoad) -> Tables:
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
