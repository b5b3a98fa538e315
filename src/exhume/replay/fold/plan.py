"""Plan the parts of a log for threads or executors: consecutive bytes of about the same size, cut between batches.

Only a reader of all earlier batches of a segment knows where the next batch begins. So a search finds bytes that look like a batch, by
their length, magic and checksum. The find is a guess, the same one for the parts before and after it. It is right if the part before it
ends exactly there; if not, the log is folded in one part.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from exhume.codecs.columns.blocks import readable
from exhume.codecs.kernels.borders import NOWHERE, next_batch
from exhume.codecs.segment_windows import SEARCHED_BYTES
from exhume.replay.broker_log import ServedSegment

#: A part ends between segments if that is nearer to the wanted size than this share of it.
_NEAR = 4


@dataclass(frozen=True, slots=True)
class Part:
    """Segments `first` to `last` of a log, from byte `start` of the first one to byte `end` of the last one; None: to its end."""

    first: int
    last: int
    start: int = 0
    end: int | None = None

    @property
    def numbers(self) -> range:
        """The numbers of its segments."""
        return range(self.first, self.last + 1)

    def size_of(self, sizes: Sequence[int]) -> int:
        """Return its bytes, in segments of these sizes."""
        end = sizes[self.last] if self.end is None else self.end
        return sum(sizes[self.first : self.last]) + end - self.start

    def has_end_of(self, segments: Sequence[object]) -> bool:
        """Return True if the log of these segments ends with this part."""
        return self.end is None and self.last == len(segments) - 1


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """The bytes from `start` to `end` of the segment with this number: whole batches."""

    segment: int
    start: int
    end: int


def plan_parts(sizes: Sequence[int], count: int) -> list[Part]:
    """Return at most so many parts of about the same size; in order they are the whole log with segments of these sizes."""
    borders = [0, *accumulate(sizes)]
    total = borders[-1]
    edges = sorted({_edge(borders, total * number // count, total // count // _NEAR) for number in range(1, count)} - {0, total})
    return [_part(borders, start, end) for start, end in pairwise([0, *edges, total])]


def _edge(borders: Sequence[int], wanted: int, near: int) -> int:
    nearest = min(borders, key=lambda border: abs(border - wanted))
    return nearest if abs(nearest - wanted) <= near else wanted


def _part(borders: Sequence[int], start: int, end: int) -> Part:
    first = bisect_right(borders, start, hi=len(borders) - 1) - 1
    if end == borders[-1]:
        return Part(first, len(borders) - 2, start - borders[first])
    last = max(bisect_left(borders, end) - 1, first)
    return Part(first, last, start - borders[first], None if end == borders[last + 1] else end - borders[last])


def ranges_of(part: Part, segments: Sequence[ServedSegment]) -> Iterator[SegmentRange]:
    """Yield the bytes of each segment of this part that has some; the segments must be open."""
    for number in part.numbers:
        segment = segments[number]
        start = _border(segment, part.start) if number == part.first else 0
        end = segment.end if number != part.last or part.end is None else _border(segment, part.end)
        if start < end:
            yield SegmentRange(number, start, end)


def _border(segment: ServedSegment, place: int) -> int:
    """Return the first byte at or after this place that looks like the begin of a batch, or the end of the segment."""
    if place <= 0:
        return 0
    position = next_batch(readable(segment.buffer), place, min(place + SEARCHED_BYTES, segment.end), segment.file.base_offset)
    return segment.end if position == NOWHERE else int(position)
