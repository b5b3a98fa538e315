"""The order of the records of a log by its clock."""

from __future__ import annotations

import numpy as np

from exhume.codecs.columns.blocks import readable
from exhume.codecs.file_content import looks_like
from exhume.codecs.kernels import scan
from exhume.errors import DecompressionError
from exhume.replay.broker_log import StrictLog
from exhume.replay.clock_counts import ClockCounts
from exhume.replay.fold.fold_ranges import runs
from exhume.replay.moment import ClockOrder, Moment
from exhume.replay.reading import CompiledLoad


def read_order(log: StrictLog, start_offset: int, at: Moment, fast: CompiledLoad) -> ClockOrder | None:
    """Return the order of the records in time; None if the log must be read record by record."""
    assert at.time_ms is not None
    counts, rows = ClockCounts.of([at.time_ms]), np.empty((scan.BLOCK_BATCHES, scan.COLUMNS), np.int64)
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
                    if counts.read(rows, (first, last), data, bodies, start_offset=start_offset, clock=at.clock) < last:
                        return None
            except DecompressionError:
                return None
    return counts.order()
