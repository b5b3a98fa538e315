"""Plan stretches: whole segments, or bytes of one segment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exhume.codecs.batches import BatchWalk
from exhume.codecs.indexes import last_indexed_position
from exhume.replay.broker_log import ServedSegment


@dataclass(frozen=True, slots=True)
class Stretch:
    """Segments `first` up to, but not including, `last` of a log.

    Of a single segment, a stretch may have only the bytes from `start` to `end` (None: its end). Both move forward to the next batch.
    """

    first: int
    last: int
    start: int = 0
    end: int | None = None

    @property
    def numbers(self) -> range:
        return range(self.first, self.last)


def plan_stretches(sizes: Sequence[int], most_bytes: int) -> list[Stretch]:
    """Return stretches of about so many bytes each that cover segments of these sizes, in order."""
    stretches: list[Stretch] = []
    first = gathered = 0
    for number, size in enumerate(sizes):
        if size >= 2 * most_bytes:
            if first < number:
                stretches.append(Stretch(first, number))
            parts = size // most_bytes
            edges = [size * part // parts for part in range(parts)]
            stretches += [Stretch(number, number + 1, start, end) for start, end in zip(edges, [*edges[1:], None], strict=True)]
            first, gathered = number + 1, 0
            continue
        gathered += size
        if gathered >= most_bytes:
            stretches.append(Stretch(first, number + 1))
            first, gathered = number + 1, 0
    if first < len(sizes):
        stretches.append(Stretch(first, len(sizes)))
    return stretches


def bytes_of(stretch: Stretch, segments: Sequence[ServedSegment]) -> Iterator[tuple[int, int, int]]:
    """Yield (number, first byte, byte after the last) of each of its segments, which must be open."""
    for number in stretch.numbers:
        segment = segments[number]
        start = _border(segment, stretch.start)
        end = segment.end if stretch.end is None else _border(segment, stretch.end)
        yield number, start, end


def _border(segment: ServedSegment, place: int) -> int:
    """Return the first byte of the first batch at or after this byte, if sizes and index are right; else the end of the segment.

    The stretches before and after this byte find the same border. If no batch begins there, the fold fails.
    """
    if place <= 0:
        return 0
    walk = BatchWalk(segment.buffer, last_indexed_position(segment.file, min(place, segment.end)), segment.end)
    for batch in walk:
        if batch.byte_position >= place:
            return batch.byte_position
    return segment.end
