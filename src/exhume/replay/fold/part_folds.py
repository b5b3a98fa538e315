"""Fold one stretch: a packed fold up to each cut, and the facts of the whole stretch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from exhume.codecs.columns.blocks import readable
from exhume.codecs.file_content import looks_like
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.types import Int64s
from exhume.codecs.segment_reader import ReadOptions
from exhume.errors import DecompressionError
from exhume.replay.broker_log import StrictLog, find_end
from exhume.replay.clock_counts import ClockCounts
from exhume.replay.fold.cuts import Cut, Cutter, NotPlainRecords, RunOfBatches, TimeCutter
from exhume.replay.fold.fold_ranges import bound_offsets, runs
from exhume.replay.fold.kernels.batches import fold
from exhume.replay.fold.packing import BatchPlace, pack
from exhume.replay.fold.plan import Stretch, bytes_of
from exhume.replay.fold.rules import DONE, IS_PART, SEED, rules_of
from exhume.replay.fold.tables import (
    FIRST_BASE_OFFSET,
    FIRST_OFFSET,
    LAST_OFFSET_SEEN,
    LEADER_EPOCH_SEEN,
    NEXT_OFFSET,
    STATUS,
    Tables,
    drop_old_metadata,
    new_tables,
    with_room_for,
)
from exhume.replay.profiles import BrokerProfile
from exhume.replay.reading import LoadInputs


@dataclass(slots=True)
class StretchFacts:
    """The facts of a stretch beside its folds. If one fold is given up, the whole log must be read in another way.

    `cuts` has for each cut: the moments that end there, the number of folds before it, and True if the cut goes through a batch. Then a
    branch holds the first records of that batch. `end_offset` is that of the log, if the stretch holds the log end.
    """

    is_given_up: bool = False
    cuts: list[tuple[tuple[int, ...], int, bool]] = field(default_factory=list)
    clock: ClockCounts | None = None
    end_offset: int | None = None
    #: Base offset of the first batch and last offset of the last one, with their leader epochs: (segment, record offset, epoch).
    first: tuple[int, int, int] | None = None
    last: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class PackedFold:
    """A fold as bytes: fold `number` of its stretch, or the branch of cut `number`."""

    number: int
    is_branch: bool
    content: bytes


@dataclass(frozen=True, slots=True)
class FoldOptions:
    """The settings of a fold. All stretches of a log have the same `seed`; the load begins at `start_offset`."""

    profile: BrokerProfile
    inputs: LoadInputs
    start_offset: int
    seed: int
    read: ReadOptions


def fold_stretch(
    log: StrictLog, stretch: Stretch, options: FoldOptions, cutter: Cutter | None = None
) -> Iterator[PackedFold | StretchFacts]:
    """Yield the packed folds of a stretch in order, then its facts. `log` is listed only: segments are opened here."""
    for number in stretch.numbers:
        log.segments[number].open()
    yield from _StretchFold(log, stretch, options, cutter).run()


class _GivenUp(Exception):
    pass


class _StretchFold:
    def __init__(self, log: StrictLog, stretch: Stretch, options: FoldOptions, cutter: Cutter | None) -> None:
        self._log = log
        self._stretch = stretch
        self._options = options
        self._cutter = cutter
        self._rules = rules_of(options.profile, options.inputs, options.start_offset, None)
        self._rules[SEED] = options.seed
        self._rules[IS_PART] = True
        self._tables = new_tables(options.seed)
        self._done = 0
        self.facts = StretchFacts()

    def run(self) -> Iterator[PackedFold | StretchFacts]:
        facts = self.facts
        try:
            self._find_end()
            for number, start, end in bytes_of(self._stretch, self._log.segments):
                if self._log.segments[number].end:
                    yield from self._fold_segment(number, start, end)
            yield from self._packed_fold()
        except (_GivenUp, NotPlainRecords, DecompressionError):
            facts = StretchFacts(is_given_up=True)
        if isinstance(self._cutter, TimeCutter):
            facts.clock = self._cutter.counts
        yield facts

    def _find_end(self) -> None:
        if self._stretch.last == len(self._log.segments) and self._stretch.end is None:
            find_end(self._log)
            if self._log.refused:
                raise _GivenUp
            self.facts.end_offset = self._log.end_offset

    def _packed_fold(self) -> Iterator[PackedFold]:
        """Yield the fold since the last cut, if there is one; the next fold begins after it."""
        if self._tables.counts[FIRST_OFFSET] < 0:
            return
        yield PackedFold(self._done, is_branch=False, content=self._packed(self._tables))
        self._done += 1
        self._tables = self._next_tables(self._tables)

    def _packed(self, tables: Tables, shortened: Mapping[BatchPlace, int] | None = None) -> bytes:
        counts = tables.counts
        counts[[FIRST_BASE_OFFSET, LAST_OFFSET_SEEN]] = counts[FIRST_OFFSET], counts[NEXT_OFFSET] - 1
        return pack(tables, self._log, shortened=shortened)

    def _next_tables(self, tables: Tables) -> Tables:
        later = new_tables(self._options.seed)
        later.counts[[NEXT_OFFSET, LEADER_EPOCH_SEEN]] = tables.counts[[NEXT_OFFSET, LEADER_EPOCH_SEEN]]
        return later

    def _fold_segment(self, number: int, start: int, end: int) -> Iterator[PackedFold]:
        segment = self._log.segments[number]
        if not start and looks_like(memoryview(segment.buffer)) is not None:
            raise _GivenUp
        bound_offsets(self._rules, self._log, number)
        buffer = readable(segment.buffer)
        rows = np.empty((scan.BLOCK_BATCHES, scan.COLUMNS), np.int64)
        self._tables.counts[LEADER_EPOCH_SEEN] = -1
        position = start
        while position < end:
            count, next_position = scan.scan(buffer, position, end, self._options.read.verify, rows)
            if not count:
                raise _GivenUp
            self._note_ends(number, rows, count)
            for first, last, data, bodies in runs(buffer, rows, count, self._options.read.cap_bytes):
                yield from self._fold_run(RunOfBatches(rows, first, last, data, bodies), number)
            self._tables = drop_old_metadata(self._tables)
            position = next_position

    def _note_ends(self, number: int, rows: Int64s, count: int) -> None:
        first, last = rows[0], rows[count - 1]
        if self.facts.first is None:
            self.facts.first = number, int(first[scan.BASE_OFFSET]), int(first[scan.LEADER_EPOCH])
        self.facts.last = number, int(last[scan.LAST_OFFSET]), int(scan.least_epoch_after(last[scan.LEADER_EPOCH]))

    def _fold_run(self, run: RunOfBatches, number: int) -> Iterator[PackedFold]:
        first = run.first
        if self._cutter is not None:
            for cut in self._cutter.cuts(self._loaded(run)):
                self._fold(replace(run, first=first, last=cut.batch), number)
                yield from self._packed_fold()
                if cut.taken:
                    yield self._branch(run, cut, number)
                self.facts.cuts.append((cut.moments, self._done, cut.taken > 0))
                first = cut.batch
        self._fold(replace(run, first=first), number)

    def _loaded(self, run: RunOfBatches) -> RunOfBatches:
        """Return this run without the batches before the start of the load."""
        first = run.first
        while first < run.last and run.rows[first, scan.LAST_OFFSET] < self._options.start_offset:
            first += 1
        return replace(run, first=first)

    def _fold(self, run: RunOfBatches, number: int) -> None:
        if run.first == run.last:
            return
        self._tables = with_room_for(self._tables, run.rows, run.first, run.last, run.bodies)
        if fold(run.rows, run.first, run.last, run.data, run.bodies, number, self._rules, self._tables) < run.last:
            assert self._tables.counts[STATUS] != DONE
            raise _GivenUp

    def _branch(self, run: RunOfBatches, cut: Cut, number: int) -> PackedFold:
        """Fold the first records of a batch as if it had no others."""
        kept, self._tables = self._tables, self._next_tables(self._tables)
        rows, bodies = run.rows[cut.batch : cut.batch + 1].copy(), run.bodies[cut.batch : cut.batch + 1].copy()
        rows[0, scan.RECORD_COUNT] = cut.taken
        rows[0, scan.LAST_OFFSET] = cut.last_offset
        bodies[0, 1] = cut.end
        self._fold(RunOfBatches(rows, 0, 1, run.data, bodies), number)
        content = self._packed(self._tables, {(number, int(rows[0, scan.POSITION])): cut.last_offset})
        self._tables = kept
        return PackedFold(len(self.facts.cuts), is_branch=True, content=content)
