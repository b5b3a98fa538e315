"""What the kernel of times finds in a log, as `ClockOrder`."""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import times
from exhume.codecs.kernels.primitives import Int64s
from exhume.replay.moment import ClockOrder


def nothing_found() -> Int64s:
    """What `read_times` is to begin with."""
    return np.zeros(times.ENTRIES, np.int64)


def order_of(found: Int64s) -> ClockOrder:
    """What was found."""
    entries = found.tolist()
    first_later = (entries[times.FIRST_LATER], entries[times.FIRST_LATER_MS]) if entries[times.HAS_LATER] else None
    return ClockOrder(entries[times.TIMED], entries[times.UNTIMED], entries[times.OUT_OF_ORDER], first_later, entries[times.LEFT_OUT])
