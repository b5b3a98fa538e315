"""Choose the moments of snapshots: at even steps, over the time of the logs."""

from __future__ import annotations

from collections.abc import Iterable

from exhume.codecs.batch_format import HEADER_BYTES
from exhume.codecs.batches import BatchWalk, read_batch_header
from exhume.codecs.indexes import last_indexed_position
from exhume.codecs.log_directory import PartitionDirectory
from exhume.durations import parse_duration
from exhume.errors import EvidenceError, RequestError
from exhume.replay.broker_log import served_files

_MOST_MOMENTS = 100_000
_LONGEST_HEADER = max(HEADER_BYTES.values())


def snapshot_times(
    partitions: Iterable[PartitionDirectory], every: str | int, from_time_ms: int | None = None, to_time_ms: int | None = None
) -> list[int]:
    """Moments in milliseconds, ascending: one for each step (`1h`, `15m`, or milliseconds), from the first to the last, both included.

    Without a first moment they are multiples of the step since the epoch, from the first batch on. Without a last moment they end with the
    first one at or after the last batch. This reads only the ends of logs.

    Raises:
        RequestError: the step is invalid, the logs have no time to begin with, or there are too many moments.
    """
    every_ms = parse_duration(every) if isinstance(every, str) else every
    if not every_ms or every_ms <= 0:
        raise RequestError(f"{every!r} is not a step", remedy="Write days, hours, minutes or milliseconds, such as 1d, 1h or 15m")
    if from_time_ms is None or to_time_ms is None:
        spans = [span for span in map(_span, partitions) if span is not None]
        if not spans:
            raise RequestError("no batch says when it was written", remedy="Name the first moment and the last one")
        if from_time_ms is None:
            from_time_ms = next_multiple(min(first for first, _ in spans), every_ms)
        if to_time_ms is None:
            to_time_ms = from_time_ms + next_multiple(max(last for _, last in spans) - from_time_ms, every_ms)
    count = (to_time_ms - from_time_ms) // every_ms + 1
    if not 0 < count <= _MOST_MOMENTS:
        raise RequestError(f"{max(count, 0)} moments", remedy=f"Choose between 1 and {_MOST_MOMENTS}: another step, or another time")
    return [from_time_ms + number * every_ms for number in range(count)]


def next_multiple(time_ms: int, every_ms: int) -> int:
    """The first multiple of the step at or after this time."""
    return -(-time_ms // every_ms) * every_ms


def _span(partition: PartitionDirectory) -> tuple[int, int] | None:
    """Return the times of the first and the last batch of a log, by their headers; None if they have none."""
    files = [file for file in served_files(partition) if file.size_bytes]
    if not files:
        return None
    try:
        first = read_batch_header(files[0].read(0, _LONGEST_HEADER), 0).max_timestamp_ms
        newest = files[-1]
        start = last_indexed_position(newest, newest.size_bytes)
        times = [batch.max_timestamp_ms for batch in BatchWalk(newest.read(start, newest.size_bytes - start))]
    except EvidenceError:
        return None
    known = [time_ms for time_ms in times if time_ms is not None]
    return (first, max(known)) if first is not None and known else None
