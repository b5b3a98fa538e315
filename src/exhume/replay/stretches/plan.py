"""Which segments, or bytes of one, make a stretch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exhume.codecs.batches import BatchWalk
from exhume.codecs.indexes import last_indexed_position
from exhume.replay.broker_log import ServedSegment


@dataclass(frozen=True, slots=True)
class Stretch:
    """Segments `first` to `last` of a log, the last one not included; of a single one only bytes from about `start` to about `end` (None:
    to its end), moved on to where a batch begins.
    """

    first: int
    last: int
    start: int = 0
    end: int | None = None

    @property
    def numbers(self) -> range:
        return range(self.first, self.last)


def plan_stretches(sizes: Sequence[int], most_bytes: int) -> list[Stretch]:
    """Stretches of about so many bytes each that cover segments of these sizes, in order."""
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
    """(number, first byte, byte behind the last) of each of its segments, which must be open."""
    for number in stretch.numbers:
        segment = segments[number]
        start = _border(segment, stretch.start)
        end = segment.end if stretch.end is None else _border(segment, stretch.end)
        yield number, start, end


def _border(segment: ServedSegment, place: int) -> int:
    """Where the first batch begins that does not lie in front of this byte, as far as sizes and index say the truth; else the end.

    Whoever ends here and whoever begins here come to the same border. A fold finds out if no batch begins there.
    """
    if place <= 0:
        return 0
    walk = BatchWalk(segment.buffer, last_indexed_position(segment.file, min(place, segment.end)), segment.end)
    for batch in walk:
        if batch.byte_position >= place:
            return batch.byte_position
    return segment.end
