"""What the kernel of times finds in a log, as `ClockOrder`, and the other way round."""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import times
from exhume.codecs.kernels.primitives import Int64s
from exhume.replay.moment import ClockOrder


def nothing_found() -> Int64s:
    """What `read_times` is to begin with."""
    return np.zeros(times.ENTRIES, np.int64)


def found_of(order: ClockOrder) -> Int64s:
    """What `read_times` is to go on with behind records of this order."""
    first_later = (0, 0) if order.first_later is None else order.first_later
    found = nothing_found()
    found[[times.TIMED, times.UNTIMED, times.OUT_OF_ORDER, times.LEFT_OUT]] = order.timed, order.untimed, order.out_of_order, order.left_out
    found[[times.HAS_LATER, times.FIRST_LATER, times.FIRST_LATER_MS]] = order.first_later is not None, *first_later
    found[times.GREATEST_MS] = 0 if order.greatest_ms is None else order.greatest_ms
    return found


def order_of(found: Int64s) -> ClockOrder:
    """What was found."""
    entries = found.tolist()
    first_later = (entries[times.FIRST_LATER], entries[times.FIRST_LATER_MS]) if entries[times.HAS_LATER] else None
    greatest_ms = entries[times.GREATEST_MS] if entries[times.TIMED] else None
    return ClockOrder(
        entries[times.TIMED], entries[times.UNTIMED], entries[times.OUT_OF_ORDER], first_later, entries[times.LEFT_OUT], greatest_ms
    )
