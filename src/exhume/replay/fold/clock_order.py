"""The order of the records of a log by its clock, found by a kernel, as a `ClockOrder`."""

from __future__ import annotations

import numpy as np

from exhume.codecs.columns.runs import readable
from exhume.codecs.file_content import looks_like
from exhume.codecs.kernels import scan, times
from exhume.codecs.kernels.types import Int64s
from exhume.errors import DecompressionError
from exhume.int64 import LARGEST_INT64
from exhume.replay.broker_log import StrictLog
from exhume.replay.fold.fold_ranges import runs
from exhume.replay.moment import ClockOrder, Moment
from exhume.replay.reading import CompiledLoad


def read_order(log: StrictLog, start_offset: int, at: Moment, fast: CompiledLoad) -> ClockOrder | None:
    """Return the order of the records in time; None if the log must be read record by record."""
    assert at.time_ms is not None
    if at.clock != "append" or abs(at.time_ms) > LARGEST_INT64:
        return None
    found, rows = np.zeros(times.ENTRIES, np.int64), np.empty((scan.BLOCK_BATCHES, scan.COLUMNS), np.int64)
    for segment in log.segments:
        if looks_like(memoryview(segment.buffer)) is not None:
            return None
        content, position = readable(segment.buffer), 0
        while position < segment.end and not fast.is_stopped.is_set():
            count, position = scan.scan(content, position, segment.end, False, rows)
            if not count:
                return None
            try:
                for first, last, data, bodies in runs(content, rows, count, fast.read.cap_bytes):
                    if times.read_times(rows, first, last, data, bodies, start_offset, at.time_ms, found) < last:
                        return None
            except DecompressionError:
                return None
    return order_of(found)


def order_of(found: Int64s) -> ClockOrder:
    """Return the order that `read_times` found."""
    entries = found.tolist()
    first_later = (entries[times.FIRST_LATER], entries[times.FIRST_LATER_MS]) if entries[times.HAS_LATER] else None
    greatest_ms = entries[times.GREATEST_MS] if entries[times.TIMED] else None
    return ClockOrder(
        entries[times.TIMED], entries[times.UNTIMED], entries[times.OUT_OF_ORDER], first_later, entries[times.LEFT_OUT], greatest_ms
    )
