"""Order the record offsets of many series. No checksum covers a record offset, so a damaged one may be any number."""

from __future__ import annotations

import numpy as np

from exhume.analysis.number_columns import Int64s


def rank_offsets(series: int, *offsets: Int64s) -> tuple[int, list[Int64s]]:
    """Return a factor, and the record offsets counted from the lowest of all (at least one is given).

    `series_number * factor + offset` orders by series, then by record offset, for series numbers below `series`. Ranks replace the record
    offsets if such a number would not fit into 64 bits.
    """
    some = [each for each in offsets if len(each)]
    lowest, highest = min(int(each.min()) for each in some), max(int(each.max()) for each in some)
    span = highest - lowest + 2
    if span * max(series, 1) < 2**63:
        return span, [each - lowest for each in offsets]
    known = np.unique(np.concatenate(some))
    return len(known) + 1, [np.searchsorted(known, each) for each in offsets]
