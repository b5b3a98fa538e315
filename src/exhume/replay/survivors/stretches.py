"""A log in stretches of about the same size, for threads: whole segments and parts of segments, cut between batches.

Where a batch begins within a segment is only known to who has read all in front of it. So it is looked for: by its length, its magic and
its checksum. That is a guess; it is right if the stretch in front ends exactly there, and a fold that does not is done again in turn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from exhume.codecs.columns.runs import readable
from exhume.codecs.kernels.borders import NOWHERE, next_batch
from exhume.codecs.segment_windows import SEARCHED_BYTES
from exhume.replay.broker_log import StrictLog

#: Every stretch meets all keys anew, so what is small is not cut. Threads begin and end at different times: of a large log there is more
#: than one stretch for each.
_LEAST_BYTES, _LARGE_BYTES, _MOST_BYTES = 16 << 20, 512 << 20, 768 << 20
#: How far to look for a batch.


@dataclass(frozen=True, slots=True)
class Piece:
    """The bytes from `start` to `end` of the segment with this number: whole batches."""

    segment: int
    start: int
    end: int


def stretches(log: StrictLog, segments: Sequence[int], threads: int) -> list[list[Piece]]:
    """These segments in stretches for so many threads; one behind the other they are the log."""
    if threads == 1:
        return [[Piece(number, 0, log.segments[number].end) for number in segments]]
    borders = [0, *accumulate(log.segments[number].end for number in segments)]
    total = borders[-1]
    wanted = max(threads if total < _LARGE_BYTES else 2 * threads, -(-total // _MOST_BYTES))
    count = min(wanted, max(len(segments), total // _LEAST_BYTES))
    edges = sorted({_edge(log, segments, borders, total * number // count) for number in range(1, count)} - {0, total})
    return [_pieces(segments, borders, start, end) for start, end in pairwise([0, *edges, total])]


def _edge(log: StrictLog, segments: Sequence[int], borders: Sequence[int], target: int) -> int:
    """Where to cut near this byte of the log: between segments where that is not far away, or else between batches."""
    nearest = min(borders, key=lambda border: abs(border - target))
    if abs(nearest - target) < _LEAST_BYTES:
        return nearest
    index = bisect_right(borders, target) - 1
    segment = log.segments[segments[index]]
    start = target - borders[index]
    position = next_batch(readable(segment.buffer), start, min(start + SEARCHED_BYTES, segment.end), segment.file.base_offset)
    return nearest if position == NOWHERE else borders[index] + int(position)


def _pieces(segments: Sequence[int], borders: Sequence[int], start: int, end: int) -> list[Piece]:
    return [
        Piece(number, max(start - first, 0), min(end, last) - first)
        for number, (first, last) in zip(segments, pairwise(borders), strict=True)
        if start < last and first < end
    ]
