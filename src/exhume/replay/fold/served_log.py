"""The log that a broker serves of a partition, for a fold: opened without a look at every batch."""

from __future__ import annotations

from exhume.codecs.batches import overflows
from exhume.codecs.log_directory import PartitionDirectory
from exhume.replay.broker_log import ServedSegment, Stop, StrictLog, find_end, hidden_findings, is_unclean, list_log
from exhume.replay.broker_start import lose_after


def likely_log(partition: PartitionDirectory, stop: Stop) -> StrictLog:
    """Return the log that a broker serves if only its end is damaged: torn, as in a copy, or zeros of a preallocated file.

    A fold finds damage elsewhere. The newest segment ends before the bytes that a load does not read.
    """
    log = list_log(partition, stop)
    for segment in log.segments:
        segment.open()
    serve_end(log)
    return log


def serve_end(log: StrictLog, *, is_lenient: bool = False) -> list[tuple[int, int, bool]]:
    """Find the end of this log, whose newest segment is open. A strict load does not read the bytes after it.

    Returns:
        The place at which a broker stops reading the newest segment without an error, as in `FoldResult`; none if it reads all bytes.
    """
    walk = find_end(log)
    if is_lenient or walk is None or walk.byte_position >= log.segments[-1].end:
        return []
    number = len(log.segments) - 1
    if is_unclean(log.stop):
        log.refused = None
        lose_after(log, number, walk.byte_position)
    elif walk.reason in ("cut_batch", "short_tail"):
        is_batch = walk.reason == "cut_batch"
        if is_batch and overflows(log.segments[-1].buffer, walk.byte_position):
            return []
        hide_after(log, log.segments[number], walk.byte_position, is_batch=is_batch)
        return [(number, walk.byte_position, is_batch)]
    return []


def hide_after(log: StrictLog, segment: ServedSegment, position: int, *, is_batch: bool) -> None:
    """End this segment here, where a broker stops without an error. A batch that is cut off may hide others."""
    if is_batch:
        log.hidden.append((segment.file, position, segment.end))
    segment.end = position


def hides_batches(log: StrictLog) -> bool:
    """True if the hidden bytes need a finding."""
    return any(True for _ in hidden_findings(log))
