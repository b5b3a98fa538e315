"""Fold the log of one offsets partition: on one thread, or stretches side by side. An earlier fold of the log may be reused."""

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
from exhume.replay.fold.clock_order import read_order
from exhume.replay.fold.fold_ranges import fold_range
from exhume.replay.fold.kernels.chosen_groups import choose_groups, with_notes
from exhume.replay.fold.kernels.merging import joined
from exhume.replay.fold.rules import (
    ACCEPTED_2,
    BAD_RECORD,
    CHOSEN_GROUPS,
    DONE,
    IS_PART,
    NOT_PLAIN_BATCH,
    NOTES_BATCHES,
    OFFSETS_GO_BACK,
    SEED,
    TAKES_NULL_PROTOCOL,
    TRANSACTIONAL,
    are_alike,
    rules_of,
)
from exhume.replay.fold.settled import Settled, read_topic_ids
from exhume.replay.fold.tables import (
    BEGINS_WITHIN,
    FIRST_OFFSET,
    IS_CUT,
    NEXT_OFFSET,
    PASSED,
    STATUS,
    Tables,
    drop_old_metadata,
    new_tables,
)
from exhume.replay.fold.thread_parts import SegmentRange, stretches
from exhume.replay.moment import LogPrefix, Moment, truncate_log
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.reading import CompiledLoad, LoadInputs
from exhume.replay.rule_reads import reads_of

if TYPE_CHECKING:
    from exhume.replay.fold.careful_batches import CarefulReader


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
    careful_reader: CarefulReader | None = None,
    until: tuple[int, int] | None = None,
) -> Settled | None:
    """Fold this log as the release would load it, from the batch with `start_offset` to the moment `at` (None: the end of the log).

    With `groups`, commits of other groups may be left out. With `lenient`, the log may have batches after its end. `careful_reader` reads
    the batches that the kernels do not take. `until` is the segment and byte at which a load ends in an error. Returns None if the log must
    be loaded record by record.
    """
    order, last_offset = None, None
    if at is not None and at.time_ms is not None:
        order = read_order(log, start_offset, at, fast)
        if order is None:
            return None
        last_offset = None if order.first_later is None else order.first_later[0] - 1
    elif at is not None:
        last_offset = at.last_offsets.get(log.partition.offsets_partition)
    reads = reads_of(profile)
    rules = rules_of(profile if reads is None else reads.original, inputs, start_offset, last_offset)
    segments = [number for number, segment in enumerate(log.segments) if segment.end]
    if not segments:
        return None
    # The fold does not apply markers after a moment, so it cannot note all batches.
    rules[NOTES_BATCHES] = bool(groups) and fast.relevant_batches is not None and at is None
    # After an unclean stop the log may be shorter than after another stop.
    is_kept = groups is None and until is None and not log.losses and not (careful_reader is not None and log.stop == "unclean")
    tables = _known(log, rules, fast) if is_kept else None
    if tables is None:
        whole = _ranges_until(stretches(log, segments, 1)[0], until)
        tables = _fold(log, whole, rules, sorted(groups or ()), fast, careful_reader=careful_reader, is_whole=until is None)
    if tables.counts[STATUS] != DONE:
        return None
    if reads is not None:
        counts = tables.counts
        reads.add_check(lambda other: are_alike(rules_of(other, inputs, start_offset, last_offset), rules, counts))
    if fast.reusable_folds is not None and is_kept and not (careful_reader is not None and careful_reader.careful_segments):
        fast.reusable_folds[log.partition.path] = (rules, tables, fast.read.verify)
    ends_at = until if careful_reader is None or careful_reader.ends_at is None else careful_reader.ends_at
    cut = LogPrefix()
    if last_offset is not None and tables.counts[IS_CUT]:
        end_offset = log.start_offset if tables.counts[FIRST_OFFSET] < 0 else int(tables.counts[NEXT_OFFSET])
        cut = LogPrefix(end_offset=end_offset)
        if end_offset <= start_offset and tables.counts[FIRST_OFFSET] >= 0:
            # The log ends before its start, within the same batch: releases differ in the records that they read.
            return None
    elif ends_at is not None:
        if max(int(tables.counts[NEXT_OFFSET]), log.start_offset) >= log.end_offset:
            # The load may have ended before that place.
            return None
    elif not _may_end(int(tables.counts[NEXT_OFFSET]), log.end_offset, profile, lenient=lenient):
        return None
    topic_ids = read_topic_ids(tables)
    if topic_ids is None or (ends_at is not None and at is not None):
        return None
    settled = Settled(log if at is None else truncate_log(cut, log, at, order), tables, topic_ids, ends_at=ends_at)
    if careful_reader is not None:
        settled.mended, settled.careful_segments = careful_reader.mended, careful_reader.careful_segments
    return settled


def _may_end(next_offset: int, end_offset: int, profile: BrokerProfile, *, lenient: bool) -> bool:
    """True if a load of a log with this end may end here. Salvage may find batches after the log end."""
    if next_offset >= end_offset:
        return lenient or next_offset == end_offset
    if isinstance(profile, JavaProfile):
        # If the log ends in a gap, the state that requests see depends on the end of every batch.
        return lenient and profile.commit_interval is None
    return lenient or (isinstance(profile, ScalaProfile) and profile.empty_read == "stop")


def _ranges_until(segment_ranges: list[SegmentRange], until: tuple[int, int] | None) -> list[SegmentRange]:
    if until is None:
        return segment_ranges
    number, position = until
    return [
        replace(segment_range, end=position) if segment_range.segment == number else segment_range
        for segment_range in segment_ranges
        if segment_range.segment <= number
    ]


def _known(log: StrictLog, rules: Int64s, fast: CompiledLoad) -> Tables | None:
    """Return the result of an earlier fold of this log that is the same by these rules; None if there is none."""
    fold = (fast.reusable_folds or {}).get(log.partition.path)
    if fold is None:
        return None
    folded_by, tables, is_verified = fold
    if fast.read.verify and not is_verified:
        return None
    if tables.counts[PASSED] and (rules[[ACCEPTED_2, TAKES_NULL_PROTOCOL]] != folded_by[[ACCEPTED_2, TAKES_NULL_PROTOCOL]]).any():
        # By rules that accept more group records, a fold passes on fewer of them.
        return None
    return tables if are_alike(rules, folded_by, tables.counts) else None


def _fold(
    log: StrictLog,
    whole: list[SegmentRange],
    rules: Int64s,
    chosen: Sequence[str],
    fast: CompiledLoad,
    *,
    careful_reader: CarefulReader | None,
    is_whole: bool,
) -> Tables:
    tables = None
    parts = stretches(log, sorted({segment_range.segment for segment_range in whole}), fast.threads) if is_whole else [whole]
    if len(parts) > 1:
        tables = _fold_side_by_side(log, parts, rules, chosen, fast)
    # The bytes that look like the first batch of a stretch can be part of a record.
    if tables is None or tables.counts[STATUS] in (TRANSACTIONAL, NOT_PLAIN_BATCH, BAD_RECORD):
        tables = _fold_in_turn(log, whole, rules, chosen, fast)
    if careful_reader is not None and tables.counts[STATUS] != DONE:
        rules[[CHOSEN_GROUPS, NOTES_BATCHES]] = 0
        careful_reader.rules = rules
        tables = _fold_in_turn(log, whole, rules, (), fast, careful_reader=careful_reader)
    return tables


def _fold_in_turn(
    log: StrictLog,
    stretch: Sequence[SegmentRange],
    rules: Int64s,
    chosen: Sequence[str],
    fast: CompiledLoad,
    *,
    careful_reader: CarefulReader | None = None,
) -> Tables:
    tables = new_tables(int(rules[SEED]))
    if chosen:
        tables = choose_groups(chosen, tables, rules)
    tables.counts[BEGINS_WITHIN] = stretch[0].start > 0
    for segment_range in stretch:
        tables = fold_range(log, segment_range, rules, tables, fast, careful_reader=careful_reader)
        if tables.counts[STATUS] != DONE or fast.is_stopped.is_set() or (careful_reader is not None and careful_reader.is_over):
            break
    return tables


def _fold_side_by_side(
    log: StrictLog, parts: Sequence[Sequence[SegmentRange]], rules: Int64s, chosen: Sequence[str], fast: CompiledLoad
) -> Tables:
    """Fold stretches on threads, a few before the one that is joined; end at the first stretch that is not done."""
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
                    coming.append(pool.submit(_fold_in_turn, log, stretch, part_rules.copy(), chosen, own))
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
            # The other threads must end soon, also after an error.
            own.is_stopped.set()
            for future in coming:
                future.cancel()
