"""Merge the folds of a log: of batches that follow one another, and of its parts, up to each moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from exhume.replay.fold.kernels.chosen_groups import with_notes
from exhume.replay.fold.kernels.merging import joined
from exhume.replay.fold.part import PartFold
from exhume.replay.fold.result import FoldResult, KeptRecords, LogRecords, empty_result, places_of
from exhume.replay.fold.tables import FIRST_BASE_OFFSET, SEED, Tables, drop_old_metadata, new_tables


def merge(earlier: FoldResult, later: FoldResult) -> FoldResult | None:
    """Return the fold of the batches of both; None if record offsets, or leader epochs within a segment, decrease between them.

    After a result that is cut, that ends in an error, or that is not done, no record counts. Both results belong to the merge afterwards.
    """
    if not earlier.is_done or earlier.is_cut or earlier.ends_at is not None:
        # No kernel has looked at the damage there.
        earlier.careful_segments |= later.careful_segments
        return earlier
    if not later.is_done:
        return later
    both = _merged_tables(earlier.tables, later.tables, is_indexed=earlier.is_indexed)
    if both is None:
        return None
    return FoldResult(
        both,
        _records_of(earlier, later, both),
        earlier.careful_segments | later.careful_segments,
        later.ends_at,
        earlier.hidden_from + later.hidden_from,
    )


def _merged_tables(earlier: Tables, later: Tables, *, is_indexed: bool) -> Tables | None:
    if later.counts[FIRST_BASE_OFFSET] < 0:
        return earlier
    if earlier.counts[FIRST_BASE_OFFSET] < 0:
        return later
    seed = int(earlier.counts[SEED])
    assert seed == later.counts[SEED]
    base = earlier if is_indexed else joined(new_tables(seed), earlier, seed)
    both = None if base is None else joined(base, later, seed)
    return None if both is None else drop_old_metadata(with_notes(both, earlier, later))


def _records_of(earlier: FoldResult, later: FoldResult, both: Tables) -> LogRecords | KeptRecords:
    if isinstance(earlier.records, LogRecords) and isinstance(later.records, LogRecords):
        return LogRecords(earlier.records.segments, earlier.records.mended | later.records.mended)
    kept = [
        each.records if isinstance(each.records, KeptRecords) else each.records.kept(places_of(each.tables)) for each in (earlier, later)
    ]
    return kept[0].add(kept[1], both)


class NotMerged(Exception):
    """The parts of this log cannot be merged: the log must be folded in one part, or loaded record by record."""


class LogFold:
    """The fold of a log at each of some moments, from the folds of its parts, which are added in order."""

    def __init__(self, moments: int, seed: int) -> None:
        self._moments = moments
        self._seed = seed
        #: The moments that the log has reached.
        self._done: set[int] = set()
        self._result: FoldResult | None = None

    @property
    def result(self) -> FoldResult:
        """The fold of the parts so far, up to the last moment."""
        return empty_result(self._seed) if self._result is None else self._result

    def add(self, part: PartFold) -> Iterator[tuple[int, FoldResult]]:
        """Merge the next part; yield each moment that ends in it, and the fold up to it. Use each fold before the next one.

        Raises:
            NotMerged: earlier folds do not count either.
        """
        folds, taken = iter(part.folds), 0
        for cut in part.cuts:
            self._take(islice(folds, cut.folds_before - taken))
            branch = next(folds) if cut.has_branch else None
            taken = cut.folds_before + cut.has_branch
            moments = [moment for moment in cut.moments if moment not in self._done]
            if moments:
                self._done.update(moments)
                at_cut = self.result if branch is None else _merged(self.result.copy(), branch)
                for moment in moments:
                    yield moment, at_cut
        self._take(folds)
        if len(self._done) < self._moments and self.result.is_cut:
            # Only at the last moment does the fold itself stop to count.
            self._done.add(self._moments - 1)
            yield self._moments - 1, self.result

    def _take(self, folds: Iterable[FoldResult]) -> None:
        for fold in folds:
            if len(self._done) < self._moments:
                self._result = fold if self._result is None else _merged(self._result, fold)
            elif self._result is not None:
                self._result.careful_segments |= fold.careful_segments


def _merged(earlier: FoldResult, later: FoldResult) -> FoldResult:
    both = merge(earlier, later)
    if both is None or not both.is_done:
        raise NotMerged
    return both
