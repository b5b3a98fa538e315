"""The log that a broker serves of a partition, for a fold: opened without a look at every batch, or with one by kernels."""

from __future__ import annotations

import numpy as np

from exhume.codecs.batches import checksum, read_header_fields
from exhume.codecs.columns.blocks import readable
from exhume.codecs.kernels import scan
from exhume.codecs.log_directory import PartitionDirectory
from exhume.replay.broker_log import (
    FileWalk,
    ServedSegment,
    Stop,
    StrictLog,
    find_end,
    has_unknown_control_type,
    hidden_findings,
    list_log,
    lose_after,
    open_strictly,
    valid_bytes,
)


def likely_log(partition: PartitionDirectory, stop: Stop) -> StrictLog:
    """Return the log that a broker serves if only its end is damaged: torn, as in a copy, or zeros of a preallocated file.

    A fold finds damage elsewhere. The newest segment ends before the bytes that a load does not read.
    """
    log = list_log(partition, stop)
    for segment in log.segments:
        segment.open()
    walk = find_end(log)
    if walk is None or walk.byte_position >= log.segments[-1].end:
        return log
    newest = log.segments[-1]
    if stop == "unclean":
        log.refused = None
        lose_after(log, len(log.segments) - 1, walk.byte_position)
    elif walk.reason in ("cut_batch", "short_tail"):
        hide_after(log, newest, walk.byte_position, is_batch=walk.reason == "cut_batch")
    return log


def hide_after(log: StrictLog, segment: ServedSegment, position: int, *, is_batch: bool) -> None:
    """End this segment here, where a broker stops without an error. A batch that is cut off may hide others."""
    if is_batch:
        log.hidden.append((segment.file, position, segment.end))
    segment.end = position


def hides_batches(log: StrictLog) -> bool:
    """True if the hidden bytes need a finding."""
    return any(True for _ in hidden_findings(log))


def recovered_log(partition: PartitionDirectory) -> StrictLog:
    """Return the log that a broker serves after an unclean stop, as `open_strictly` does; a kernel computes the checksums."""
    return open_strictly(partition, "unclean", _valid_bytes)


def _valid_bytes(segment: ServedSegment, log: StrictLog) -> int:
    """Return the result of `valid_bytes`; a kernel checks the batches while they have format 2 and follow one another."""
    content = readable(segment.buffer)
    rows = np.empty((scan.BLOCK_BATCHES, scan.COLUMNS), np.int64)
    position, last_offset = 0, -1
    while position < segment.end:
        count, next_position = scan.scan(content, position, segment.end, True, rows)
        found = rows[:count]
        unsound = np.flatnonzero(found[:, scan.IS_SOUND] == 0)
        if len(unsound):
            next_position, found = int(found[unsound[0], scan.POSITION]), found[: unsound[0]]
        if len(found):
            offsets = found[:, scan.LAST_OFFSET]
            if offsets[0] <= last_offset or (np.diff(offsets) <= 0).any():
                # An index entry may go back.
                return valid_bytes(segment, log)
            last_offset = int(offsets[-1])
        for marker in found[found[:, scan.ATTRIBUTES] & scan.CONTROL != 0, scan.POSITION].tolist():
            if has_unknown_control_type(segment.buffer, read_header_fields(segment.buffer, marker)):
                return valid_bytes(segment, log)
        position = next_position
        if len(found) < scan.BLOCK_BATCHES:
            break
    batch = next(iter(FileWalk(segment, position)), None)
    if batch is None or checksum(segment.buffer, batch, batch.end_position) != batch.crc:
        return position
    return valid_bytes(segment, log)
