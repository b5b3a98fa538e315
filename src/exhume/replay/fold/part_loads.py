"""Join the stretches of one log in order, and load it at each moment, in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from exhume.replay.broker_log import StrictLog
from exhume.replay.clock_counts import ClockCounts
from exhume.replay.fold.kernels.merging import joined
from exhume.replay.fold.packing import KeptRecords, ShippedFold, places_of, unpack
from exhume.replay.fold.part_folds import PackedFold, StretchFacts
from exhume.replay.fold.settled import read_topic_ids
from exhume.replay.fold.tables import FIRST_OFFSET, NEXT_OFFSET, Tables, drop_old_metadata, new_tables
from exhume.replay.moment import ClockOrder, LogPrefix, Moment, truncate_log
from exhume.replay.partition_load import LoadOptions, PartitionLoad, load_fold_result, load_log
from exhume.replay.topic_names import TopicNames

_FEW_RECORDS = 10_000


class NotFolded(Exception):
    """This log cannot be loaded from folds of its stretches."""


@dataclass(frozen=True, slots=True)
class LoadAt:
    """The load at the moment of this number, and the names that it learned. Valid until the next one is read."""

    moment: int
    load: PartitionLoad
    names: TopicNames


@dataclass(slots=True)
class JoinedLog:
    """The stretches of a log, and its loads. `facts` has those of all stretches; `folds` come in order, each with its stretch number.

    Moments by time ascend; None is the end of the log.
    """

    log: StrictLog
    facts: Sequence[StretchFacts]
    folds: Iterator[tuple[int, PackedFold]]
    moments: Sequence[Moment | None]
    options: LoadOptions
    seed: int
    _tables: Tables = field(init=False)
    _kept: KeptRecords = field(init=False)
    _most_records: int = _FEW_RECORDS
    _clock: ClockCounts | None = None

    def loads(self) -> Iterator[LoadAt]:
        """Yield the load at each moment, in the order of the log.

        Raises:
            NotFolded: the log must be loaded in another way. Then earlier loads do not count.
        """
        self._check()
        self._tables = new_tables(self.seed)
        self._kept = KeptRecords({}, {})
        coming = next(self.folds, None)
        cut_in = self._first_cuts()
        for stretch, facts in enumerate(self.facts):
            waiting = list(enumerate(facts.cuts))
            branches: dict[int, bytes] = {}
            done = 0
            while coming is not None and coming[0] == stretch:
                packed = coming[1]
                if packed.is_branch:
                    branches[packed.number] = packed.content
                else:
                    while waiting and waiting[0][1][1] == done:
                        yield from self._load_cut(stretch, *waiting.pop(0), cut_in, branches)
                    self._join(*unpack(packed.content))
                    done += 1
                coming = next(self.folds, None)
            for cut in waiting:
                yield from self._load_cut(stretch, *cut, cut_in, branches)
        for number in range(len(self.moments)):
            if number not in cut_in:
                yield self._load(number, self._tables, self._kept, is_cut=False)

    def _check(self) -> None:
        if not self.facts or any(facts.is_given_up for facts in self.facts):
            raise NotFolded
        before: tuple[int, int, int] | None = None
        for facts in self.facts:
            if before is not None and facts.first is not None and before[0] == facts.first[0]:
                (_, last_offset, epoch), (_, first_offset, later_epoch) = before, facts.first
                if first_offset <= last_offset or later_epoch < epoch:
                    raise NotFolded
            before = facts.last or before
        assert self.facts[-1].end_offset is not None
        self.log.end_offset = self.facts[-1].end_offset

    def _first_cuts(self) -> dict[int, int]:
        """Return the stretch in which each moment ends, without moments after the log end."""
        cut_in: dict[int, int] = {}
        for stretch, facts in enumerate(self.facts):
            for moments, _, _ in facts.cuts:
                for moment in moments:
                    cut_in.setdefault(moment, stretch)
        return cut_in

    def _join(self, tables: Tables, kept: KeptRecords) -> None:
        both = joined(self._tables, tables, self.seed)
        if both is None:
            raise NotFolded
        self._tables = drop_old_metadata(both)
        self._kept.take(kept)
        if len(self._kept.records) > self._most_records:
            self._kept.keep_only(places_of(self._tables))
            self._most_records = 2 * len(self._kept.records) + _FEW_RECORDS

    def _load_cut(
        self, stretch: int, number: int, cut: tuple[tuple[int, ...], int, bool], cut_in: dict[int, int], branches: dict[int, bytes]
    ) -> Iterator[LoadAt]:
        moments = [moment for moment in cut[0] if cut_in[moment] == stretch]
        if not moments:
            return
        tables, kept = self._tables, self._kept
        if cut[2]:
            branch, its_kept = unpack(branches.pop(number))
            both = joined(_copied(tables), branch, self.seed)
            if both is None:
                raise NotFolded
            tables, kept = both, kept.copy()
            kept.take(its_kept)
        for moment in moments:
            yield self._load(moment, tables, kept, is_cut=True)

    def _load(self, number: int, tables: Tables, kept: KeptRecords, *, is_cut: bool) -> LoadAt:
        is_empty = tables.counts[FIRST_OFFSET] < 0
        if is_cut:
            end_offset = self.log.start_offset if is_empty else int(tables.counts[NEXT_OFFSET])
            log = self._log_at(number, LogPrefix(0, 0, end_offset))
        else:
            log = self._log_at(number, LogPrefix())
        if is_empty and is_cut:
            names = TopicNames()
            return LoadAt(number, load_log(replace(log, segments=[]), self.options, names), names)
        if is_empty or tables.counts[NEXT_OFFSET] != log.end_offset or (is_cut and log.end_offset <= self.log.start_offset):
            # The log ends in a gap, or before its start, within the same batch.
            raise NotFolded
        topic_ids = read_topic_ids(tables)
        if topic_ids is None:
            raise NotFolded
        loaded = load_fold_result(ShippedFold(log, tables, topic_ids, kept=kept), self.options)
        if loaded is None:
            raise NotFolded
        return LoadAt(number, *loaded)

    def _log_at(self, number: int, cut: LogPrefix) -> StrictLog:
        at = self.moments[number]
        if at is None:
            return self.log
        return truncate_log(cut, self.log, at, None if at.time_ms is None else self._order(number))

    def _order(self, number: int) -> ClockOrder:
        """Return the order of all records of the log."""
        if self._clock is None:
            clocks = [facts.clock for facts in self.facts if facts.clock is not None]
            self._clock = ClockCounts.of([at.time_ms for at in self.moments if at is not None and at.time_ms is not None], is_part=True)
            if not all(self._clock.merge(clock) for clock in clocks):
                raise NotFolded
        return self._clock.order(number)


def _copied(tables: Tables) -> Tables:
    copied: dict[str, Any] = {
        name: type(array)(*(each.copy() for each in array)) if isinstance(array, tuple) else array.copy()
        for name, array in tables._asdict().items()
    }
    return Tables(**copied)
