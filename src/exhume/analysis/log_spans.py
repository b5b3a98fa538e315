"""How far each log reaches, and from which record offset on it still has everything that was ever written to it.

Compaction removes a record once a later one of its key exists, and leaves a hole in the offsets. From the last hole on nothing is missing:
only there a record that is not in the log was never written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.arrow_rows import Origin


@dataclass(frozen=True, slots=True)
class LogSpan:
    """One log: the first offset in it, the one behind its end, the first from which on every offset has its record, and the latest time."""

    start_offset: int
    next_offset: int
    complete_from_offset: int
    last_timestamp_ms: int | None

    def is_complete_behind(self, record_offset: int | None) -> bool:
        """Whether every record that was ever written behind this one is here; None: every record."""
        return (0 if record_offset is None else record_offset) >= self.complete_from_offset


#: By replica and offsets partition.
LogSpans = Mapping[Origin, LogSpan]


def log_spans(batches: Iterable[pa.RecordBatch]) -> dict[Origin, LogSpan]:
    """The span of each log.

    `batches` are rows of `schemas.BATCHES`, all of them, in the order of the log. A batch that is damaged counts as a hole.
    """
    spans: dict[Origin, LogSpan] = {}
    for batch in batches:
        for origin, rows in _by_origin(batch):
            spans[origin] = _extended(spans.get(origin), rows)
    return spans


def joined(first: LogSpan, second: LogSpan) -> LogSpan:
    """The span of a log of which these are two parts, one behind the other."""
    if second.complete_from_offset != second.start_offset:
        complete_from_offset = second.complete_from_offset
    elif second.start_offset > first.next_offset:
        complete_from_offset = second.start_offset
    else:
        complete_from_offset = first.complete_from_offset
    times = [time for time in (first.last_timestamp_ms, second.last_timestamp_ms) if time is not None]
    return LogSpan(first.start_offset, second.next_offset, complete_from_offset, max(times, default=None))


def _extended(span: LogSpan | None, rows: pa.RecordBatch) -> LogSpan:
    first = rows.column("base_offset").fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    last = rows.column("last_offset").fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    counts = rows.column("record_count").fill_null(0).to_numpy(zero_copy_only=False)
    is_sound = pc.is_in(rows.column("crc_status"), value_set=pa.array(["ok", "not_checked"])).to_numpy(zero_copy_only=False)
    last_timestamp_ms = pc.max(rows.column("max_timestamp_ms")).as_py()
    if span is None:
        start = int(first[0])
        span = LogSpan(start, start, start, None)
    before = np.concatenate([[span.next_offset - 1], last[:-1]])
    starts_late = first > before + 1
    is_thin = ~is_sound | (counts != last - first + 1)
    holes = np.flatnonzero(starts_late | is_thin)
    if len(holes):
        at = int(holes[-1])
        span = replace(span, complete_from_offset=int(last[at]) + 1 if is_thin[at] else int(first[at]))
    times = [time for time in (span.last_timestamp_ms, last_timestamp_ms) if time is not None and time >= 0]
    return replace(span, next_offset=int(last[-1]) + 1, last_timestamp_ms=max(times, default=None))


def _by_origin(batch: pa.RecordBatch) -> Iterator[tuple[Origin, pa.RecordBatch]]:
    origins = [*zip(batch.column("replica").to_pylist(), batch.column("offsets_partition").to_pylist(), strict=True)]
    start = 0
    for at in range(1, len(origins) + 1):
        if at == len(origins) or origins[at] != origins[start]:
            yield origins[start], batch.slice(start, at - start)
            start = at
