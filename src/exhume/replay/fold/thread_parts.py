"""Cut a log for threads, between batches: stretches of about the same size, of whole segments and parts of segments.

Only a reader of all earlier batches of a segment knows where the next batch begins. So a search finds bytes that look like a batch, by
their length, magic and checksum. The find is a guess. It is right if the stretch before it ends exactly there; if not, the log is folded
again on one thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from exhume.codecs.columns.blocks import readable
from exhume.codecs.kernels.borders import NOWHERE, next_batch
from exhume.codecs.segment_windows import SEARCHED_BYTES
from exhume.replay.broker_log import StrictLog

#: Each stretch enters all keys again, so a small log is not cut. Threads begin and end at different times, so a large log has more than one
#: stretch for each thread.
_LEAST_BYTES, _LARGE_BYTES, _MOST_BYTES = 16 << 20, 512 << 20, 768 << 20


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """The bytes from `start` to `end` of the segment with this number: whole batches."""

    segment: int
    start: int
    end: int


def stretches(log: StrictLog, segments: Sequence[int], threads: int) -> list[list[SegmentRange]]:
    """Cut these segments into stretches for so many threads; in order they are the whole log."""
    if threads == 1:
        return [[SegmentRange(number, 0, log.segments[number].end) for number in segments]]
    borders = [0, *accumulate(log.segments[number].end for number in segments)]
    total = borders[-1]
    wanted = max(threads if total < _LARGE_BYTES else 2 * threads, -(-total // _MOST_BYTES))
    count = max(min(wanted, total // _LEAST_BYTES), 1)
    edges = sorted({_edge(log, segments, borders, total * number // count) for number in range(1, count)} - {0, total})
    return [_ranges(segments, borders, start, end) for start, end in pairwise([0, *edges, total])]


def _edge(log: StrictLog, segments: Sequence[int], borders: Sequence[int], target: int) -> int:
    """Return a place to cut near this byte of the log: between segments if that is near, else between batches."""
    nearest = min(borders, key=lambda border: abs(border - target))
    if abs(nearest - target) < _LEAST_BYTES:
        return nearest
    index = bisect_right(borders, target) - 1
    segment = log.segments[segments[index]]
    start = target - borders[index]
    position = next_batch(readable(segment.buffer), start, min(start + SEARCHED_BYTES, segment.end), segment.file.base_offset)
    return nearest if position == NOWHERE else borders[index] + int(position)


def _ranges(segments: Sequence[int], borders: Sequence[int], start: int, end: int) -> list[SegmentRange]:
    return [
        SegmentRange(number, max(start - first, 0), min(end, last) - first)
        for number, (first, last) in zip(segments, pairwise(borders), strict=True)
        if start < last and first < end
    ]
