"""Fold the log of one offsets partition: plan its parts, fold them inline or on threads, and merge the folds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING

from exhume.codecs.kernels.types import Int64s
from exhume.codecs.log_directory import PartitionDirectory
from exhume.int64 import random_number
from exhume.replay.broker_log import Stop, StrictLog, is_unclean, list_log
from exhume.replay.broker_start import open_strictly, recovers_segments
from exhume.replay.clock_counts import ClockCounts
from exhume.replay.fold.careful_batches import CarefulReader, careful_reader
from exhume.replay.fold.cuts import TimeCutter
from exhume.replay.fold.folded_log import FoldedLog, read_topic_ids
from exhume.replay.fold.merge import LogFold, NotMerged
from exhume.replay.fold.part import PartFold, fold_part
from exhume.replay.fold.plan import Part, SegmentRange, plan_parts, ranges_of
from exhume.replay.fold.result import BatchPlace, FoldResult
from exhume.replay.fold.rules import ACCEPTED_2, IS_PART, NOTES_BATCHES, SEED, TAKES_NULL_PROTOCOL, are_alike, rules_of
from exhume.replay.fold.served_log import hide_after, hides_batches, likely_log, serve_end
from exhume.replay.fold.tables import NEXT_OFFSET, PASSED
from exhume.replay.moment import ClockOrder, LogPrefix, Moment, truncate_log
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.reading import CompiledLoad
from exhume.replay.rule_reads import reads_of

if TYPE_CHECKING:
    from concurrent.futures import Future

    from exhume.replay.partition_load import LoadOptions

#: Each part enters all keys again, so a small log is not cut. Threads begin and end at different times, so a large log has more than one
#: part for each thread.
_LEAST_BYTES, _LARGE_BYTES, _MOST_BYTES = 16 << 20, 512 << 20, 768 << 20


def fold_partition(partition: PartitionDirectory, stop: Stop, fast: CompiledLoad, options: LoadOptions) -> FoldedLog | None:
    """Fold this partition with the settings of `fast`; None if it must be loaded record by record."""
    if options.mode == "lenient":
        return _fold_leniently(partition, stop, fast, options)
    if recovers_segments(partition, stop):
        log = open_strictly(partition, stop)
        return None if log.refused else _LocalFold(log, fast, options).run()
    log = likely_log(partition, stop)
    if log.refused:
        return None
    if not is_unclean(stop):
        return _LocalFold(log, fast, options).run()
    # If every batch is plain, the start after an unclean stop changes nothing.
    folded = _LocalFold(log, fast, options, is_careful=False).run()
    if folded is not None:
        return folded
    log = open_strictly(partition, stop)
    return None if log.refused else _LocalFold(log, fast, options).run()


def _fold_leniently(partition: PartitionDirectory, stop: Stop, fast: CompiledLoad, options: LoadOptions) -> FoldedLog | None:
    log = open_strictly(partition, "clean")
    # With damage, only salvage knows the batches up to a time, and their order.
    is_careful = options.at is None or options.at.time_ms is None
    if is_unclean(stop) or recovers_segments(partition, stop):
        folded = None if log.refused else _LocalFold(replace(log, stop=stop), fast, options, is_careful=False).run()
        if folded is not None:
            return folded
        # The recovered log has the log end; the lenient load reads all segments in full.
        log = open_strictly(partition, stop)
        log.segments = list_log(partition, stop).segments
        for segment in log.segments:
            segment.open()
    return _LocalFold(log, fast, options, is_careful=is_careful).run()


@dataclass(frozen=True, slots=True)
class FoldSettings:
    """The settings of the fold of a log. All parts of the log have the same `seed`; moments are ascending times, one moment, or None."""

    options: LoadOptions
    start_offset: int
    seed: int
    moments: Sequence[Moment | None] = (None,)

    def rules(self, offsets_partition: int | None, *, is_part: bool) -> Int64s:
        """Return the rules of the fold of a log, or of a part of it."""
        reads = reads_of(self.options.profile)
        rules = self._rules_of(self.options.profile if reads is None else reads.original, offsets_partition)
        rules[SEED], rules[IS_PART] = self.seed, is_part or len(self.moments) > 1
        return rules

    def _rules_of(self, profile: BrokerProfile, offsets_partition: int | None) -> Int64s:
        last = self.moments[-1]
        last_offset = None if last is None else last.last_offsets.get(offsets_partition)
        return rules_of(profile, self.options.inputs, self.start_offset, last_offset)

    def note_rules(self, offsets_partition: int | None, rules: Int64s, result: FoldResult) -> None:
        """Note for the profile of the load that other releases need rules by which the fold is the same."""
        reads, counts = reads_of(self.options.profile), result.tables.counts
        if reads is not None:
            reads.add_check(lambda other: are_alike(self._rules_of(other, offsets_partition), rules, counts))

    def cutter(self, *, is_part: bool) -> TimeCutter | None:
        """Return the cutter of the fold of a log, or of a part of it; None if no moment is a time."""
        times_ms = [at.time_ms for at in self.moments if at is not None and at.time_ms is not None]
        first = self.moments[0]
        return None if first is None or not times_ms else TimeCutter(times_ms, first.clock, is_part=is_part)

    def clock(self) -> ClockCounts | None:
        """Return the counts to which those of all parts are merged in order; None if no moment is a time."""
        cutter = self.cutter(is_part=False)
        return None if cutter is None else cutter.counts

    def careful_reader(self, log: StrictLog, fast: CompiledLoad) -> CarefulReader:
        """Return the reader for the batches of this log that the kernels do not take."""
        return careful_reader(log, self.options.profile, fast.read.cap_bytes, lenient=self.options.mode == "lenient")


class _LocalFold:
    """The fold of a log in this process. `until` is the segment and byte at which the load ends in an error."""

    def __init__(
        self, log: StrictLog, fast: CompiledLoad, options: LoadOptions, *, is_careful: bool = True, until: BatchPlace | None = None
    ) -> None:
        self._log = log
        self._fast = fast
        self._options = options
        self._is_careful = is_careful
        self._until = until
        start_offset = 0 if options.mode == "lenient" else log.start_offset
        self._settings = FoldSettings(options, start_offset, random_number(), (options.at,))
        self._clock: ClockCounts | None = None

    def run(self) -> FoldedLog | None:
        """Return the folded log; None if it must be loaded record by record."""
        log, options, fast, until = self._log, self._options, self._fast, self._until
        if not any(segment.end for segment in log.segments) or (options.at is not None and log.hidden and hides_batches(log)):
            return None
        # After an unclean stop the log may be shorter than after another stop.
        is_shared = self._is_strict_end and options.groups is None and not log.losses and not (self._is_careful and is_unclean(log.stop))
        rules = self._settings.rules(log.partition.offsets_partition, is_part=False)
        result = _known(log, rules, fast) if is_shared else None
        has_notes = False
        if result is None:
            # The fold does not apply markers after a moment, so it cannot note all batches.
            has_notes = bool(options.groups) and fast.relevant_batches is not None and options.at is None
            result, has_notes = self._fold(has_notes=has_notes)
        if result is None or not result.is_done:
            return None
        result = result.compacted()
        self._settings.note_rules(log.partition.offsets_partition, rules, result)
        if fast.reusable_folds is not None and is_shared and not result.careful_segments:
            fast.reusable_folds[log.partition.path] = (rules, result, fast.read.verify)
        if until is not None and result.ends_at is None:
            result.ends_at = until
        order = None if self._clock is None else self._clock.order()
        folded = folded_at(log, result, self._settings, options.at, order, is_cut=options.at is not None and result.is_cut)
        if folded is not None:
            folded.has_notes = has_notes
            if options.mode == "strict" and options.at is None and until is None:
                folded.up_to = lambda place: _LocalFold(log, fast, options, until=place).run()
        return folded

    @property
    def _is_strict_end(self) -> bool:
        return self._until is None and (self._options.at is None or self._options.at.time_ms is None)

    def _fold(self, *, has_notes: bool) -> tuple[FoldResult | None, bool]:
        """Fold the log in the first way that takes it; return also True if the fold noted the batches of the wanted groups.

        The bytes that look like the first batch of a part can be part of a record: then the log is folded in one part. Around batches that
        no kernel takes, all groups are folded.
        """
        groups = sorted(self._options.groups or ())
        parts = self._parts()
        result = self._fold_parts(parts, groups, has_notes=has_notes)
        if len(parts) > 1 and (result is None or not result.is_done):
            result = self._fold_parts([Part(0, len(self._log.segments) - 1)], groups, has_notes=has_notes)
        if groups and self._is_careful and (result is None or not result.is_done):
            return self._fold_parts([Part(0, len(self._log.segments) - 1)], [], has_notes=False), False
        return result, has_notes

    def _parts(self) -> list[Part]:
        if self._until is not None:
            return [Part(0, self._until[0])]
        sizes = [segment.end for segment in self._log.segments]
        total, threads = sum(sizes), self._fast.threads
        wanted = 1 if threads == 1 else max(threads if total < _LARGE_BYTES else 2 * threads, -(-total // _MOST_BYTES))
        return plan_parts(sizes, max(min(wanted, total // _LEAST_BYTES), 1))

    def _fold_parts(self, parts: Sequence[Part], groups: Sequence[str], *, has_notes: bool) -> FoldResult | None:
        """Fold these parts of the log, and merge them; None if they cannot be merged."""
        is_part = len(parts) > 1
        fast = replace(self._fast, is_stopped=Event()) if is_part else self._fast

        def fold(part: Part) -> PartFold:
            log = _own_copy(self._log)
            rules = self._settings.rules(log.partition.offsets_partition, is_part=is_part)
            rules[NOTES_BATCHES] = has_notes
            careful = self._settings.careful_reader(log, fast) if self._is_careful and not groups else None
            ranges = _ranges_until(ranges_of(part, log.segments), self._until)
            return fold_part(log, ranges, rules, fast, groups=groups, cutter=self._settings.cutter(is_part=is_part), careful_reader=careful)

        whole = LogFold(1, self._settings.seed)
        self._clock = self._settings.clock()
        try:
            for part in _in_order(fold, parts, fast):
                for _ in whole.add(part):
                    pass
                if part.clock is not None and self._clock is not None and not self._clock.merge(part.clock):
                    return None
        except NotMerged:
            return None
        return whole.result


def _in_order(fold: Callable[[Part], PartFold], parts: Sequence[Part], fast: CompiledLoad) -> Iterator[PartFold]:
    """Yield the folds of these parts; fold them on threads, a few before the one that is merged."""
    if len(parts) == 1:
        yield fold(parts[0])
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(fast.threads) as pool:
        coming: deque[Future[PartFold]] = deque()
        waiting = iter(parts)
        try:
            while True:
                coming.extend(pool.submit(fold, part) for part in islice(waiting, fast.threads + 1 - len(coming)))
                if not coming:
                    return
                yield coming.popleft().result()
        finally:
            # The other threads must end soon, also after an error.
            fast.is_stopped.set()
            for future in coming:
                future.cancel()


def fold_listed_part(log: StrictLog, part: Part, settings: FoldSettings, fast: CompiledLoad, *, is_part: bool) -> PartFold | None:
    """Fold one part of a log that is listed only; None if the log must be loaded whole."""
    for number in part.numbers:
        log.segments[number].open()
    end_offset, hidden_from = None, list[tuple[int, int, bool]]()
    is_lenient = settings.options.mode == "lenient"
    if part.has_end_of(log.segments):
        hidden_from = serve_end(log, is_lenient=is_lenient)
        if log.refused or log.losses or (settings.moments[0] is not None and log.hidden and hides_batches(log)):
            return None
        end_offset = log.end_offset
    cutter = settings.cutter(is_part=is_part)
    is_careful = not is_unclean(log.stop) and not (is_lenient and cutter is not None)
    folded = fold_part(
        log,
        list(ranges_of(part, log.segments)),
        settings.rules(log.partition.offsets_partition, is_part=is_part),
        fast,
        cutter=cutter,
        careful_reader=settings.careful_reader(log, fast) if is_careful else None,
    )
    folded.end_offset = end_offset
    folds = [*folded.folds]
    folds[-1].hidden_from += hidden_from
    folded.unread_segments = frozenset(folds[-1].careful_segments).union(number for number, _, _ in folds[-1].hidden_from)
    return folded if all(result.is_done for result in folds) else None


def folded_at(
    log: StrictLog, result: FoldResult, settings: FoldSettings, at: Moment | None, order: ClockOrder | None, *, is_cut: bool
) -> FoldedLog | None:
    """Return this log with its fold up to a moment; None if it must be loaded record by record.

    `order` is the clock order of the whole log if the moment is a time; `is_cut`: the log has a record after the moment.
    """
    next_offset, is_empty = int(result.tables.counts[NEXT_OFFSET]), result.is_empty
    topic_ids = read_topic_ids(result.tables)
    if topic_ids is None:
        return None
    log = _own_copy(log)
    for number, position, is_batch in result.hidden_from:
        hide_after(log, log.segments[number], position, is_batch=is_batch)
    cut = LogPrefix()
    if is_cut:
        cut = LogPrefix(end_offset=log.start_offset if is_empty else next_offset)
        if not is_empty and next_offset <= settings.start_offset:
            # The log ends before its start, within the same batch: releases differ in the records that they read.
            return None
    elif result.ends_at is not None:
        if max(next_offset, log.start_offset) >= log.end_offset:
            # The load may have ended before that place.
            return None
    elif not _may_end(next_offset, log.end_offset, settings.options):
        return None
    if at is not None and result.ends_at is not None:
        return None
    return FoldedLog(log if at is None else truncate_log(cut, log, at, order), result, topic_ids)


def _may_end(next_offset: int, end_offset: int, options: LoadOptions) -> bool:
    """True if a load of a log with this end may end here. Salvage may find batches after the log end."""
    profile, is_lenient = options.profile, options.mode == "lenient"
    if next_offset >= end_offset:
        return is_lenient or next_offset == end_offset
    if isinstance(profile, JavaProfile):
        # If the log ends in a gap, the state that requests see depends on the end of every batch.
        return is_lenient and profile.commit_interval is None
    return is_lenient or (isinstance(profile, ScalaProfile) and profile.empty_read == "stop")


def _own_copy(log: StrictLog) -> StrictLog:
    """Return this log with ends of segments of its own."""
    return replace(log, segments=[replace(segment) for segment in log.segments], hidden=[*log.hidden])


def _ranges_until(ranges: Iterator[SegmentRange], until: BatchPlace | None) -> list[SegmentRange]:
    if until is None:
        return list(ranges)
    number, position = until
    return [replace(each, end=position) if each.segment == number else each for each in ranges]


def _known(log: StrictLog, rules: Int64s, fast: CompiledLoad) -> FoldResult | None:
    """Return the result of an earlier fold of this log that is the same by these rules; None if there is none."""
    fold = (fast.reusable_folds or {}).get(log.partition.path)
    if fold is None:
        return None
    folded_by, result, is_verified = fold
    if fast.read.verify and not is_verified:
        return None
    counts, of_groups = result.tables.counts, [ACCEPTED_2, TAKES_NULL_PROTOCOL]
    if counts[PASSED] and (rules[of_groups] != folded_by[of_groups]).any():
        # By rules that accept more group records, a fold passes on fewer of them.
        return None
    return result if are_alike(rules, folded_by, counts) else None
