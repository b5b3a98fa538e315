"""Record offsets of many series in one order: a checksum does not cover them, so a damaged one may be any number."""

from __future__ import annotations

import numpy as np

from exhume.analysis.detectors.commit_loops.columns import Int64s


def rank_offsets(series: int, *offsets: Int64s) -> tuple[int, list[Int64s]]:
    """These record offsets, some of them at least, counted from the lowest of all, and a number that is larger than all of them by then.

    So a number of a series, below `series`, times that, and the record offset in it, are ordered by series and then by record offset. Where
    such numbers would not fit into 64 bits, ranks stand for record offsets.
    """
    some = [each for each in offsets if len(each)]
    lowest, highest = min(int(each.min()) for each in some), max(int(each.max()) for each in some)
    span = highest - lowest + 2
    if span * max(series, 1) < 2**63:
        return span, [each - lowest for each in offsets]
    known = np.unique(np.concatenate(some))
    return len(known) + 1, [np.searchsorted(known, each) for each in offsets]
