"""Load a log from the folds of its parts, at each of some moments, in one pass over the folds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from exhume.replay.broker_log import StrictLog
from exhume.replay.clock_counts import ClockCounts
from exhume.replay.fold.log import FoldSettings, folded_at
from exhume.replay.fold.merge import LogFold, NotMerged
from exhume.replay.fold.part import PartFold
from exhume.replay.fold.result import FoldResult
from exhume.replay.moment import ClockOrder
from exhume.replay.partition_load import PartitionLoad, load_fold_result
from exhume.replay.topic_names import TopicNames


@dataclass(frozen=True, slots=True)
class LoadAt:
    """The load at the moment of this number, and the names that it learned. Valid until the next one is read."""

    moment: int
    load: PartitionLoad
    names: TopicNames


def load_parts(log: StrictLog, parts: Iterable[PartFold], clocks: Sequence[ClockCounts], settings: FoldSettings) -> Iterator[LoadAt]:
    """Yield the load of this log at each moment, in the order of the log. `clocks` are the times of all parts, if moments are times.

    The log is listed only, and has its end.

    Raises:
        NotMerged: the log must be loaded whole. Then earlier loads do not count.
    """
    clock = settings.clock()
    if clock is not None and not all(clock.merge(each) for each in clocks):
        raise NotMerged
    moments = settings.moments
    whole, waiting = LogFold(len(moments), settings.seed), list(range(len(moments)))

    def load(number: int, result: FoldResult, *, is_cut: bool) -> LoadAt:
        order: ClockOrder | None = None if clock is None else clock.order(number)
        folded = folded_at(log, result, settings, moments[number], order, is_cut=is_cut)
        loaded = None if folded is None else load_fold_result(folded, settings.options)
        if loaded is None:
            raise NotMerged
        return LoadAt(number, *loaded)

    for part in parts:
        for number, result in whole.add(part):
            waiting.remove(number)
            yield load(number, result, is_cut=True)
    for number in waiting:
        yield load(number, whole.result, is_cut=False)
