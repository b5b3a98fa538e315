"""A large segment in parts that can be read apart: cut where batches begin, found by the offset index.

A border is where a batch begins at or behind a wanted byte, as the walk from the last indexed place before it comes there. It holds only
if the batches on both sides of it are whole, in order and of format 2, with checksums that match: then nothing odd reaches over it. Where
one border does not hold, the segment is read whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from exhume.codecs.batch_format import HEADER_BYTES
from exhume.codecs.batch_search import is_plausible
from exhume.codecs.batches import Batch, crc_matches, read_header_fields
from exhume.codecs.indexes import last_indexed_position
from exhume.codecs.segment_files import SegmentFile, Window
from exhume.errors import EvidenceError

#: How far behind an indexed place a border is looked for.
SEARCHED_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Border:
    position: int
    batch_before_at: int


def windows(segment: SegmentFile, wanted: Sequence[int]) -> list[SegmentFile | None]:
    """The part of this segment in front of each wanted byte position, and the one behind the last: one more than there are positions.

    None for a part without a batch. Where a border does not hold, the first part is the whole segment and the others are None.
    """
    borders: list[_Border] = []
    for position in wanted:
        border = _border(segment, position)
        if border is None:
            return [segment, *(None for _ in wanted)]
        borders.append(border)
    parts: list[SegmentFile | None] = []
    start, behind = 0, None
    for border in borders:
        parts.append(replace(segment, window=Window(behind, border.position)) if border.position > start else None)
        start, behind = border.position, border.batch_before_at
    parts.append(replace(segment, window=Window(behind, segment.size_bytes)) if segment.size_bytes > start else None)
    return parts


def _border(segment: SegmentFile, wanted: int) -> _Border | None:
    try:
        start = last_indexed_position(segment, wanted)
        found = memoryview(segment.read(start, wanted - start + SEARCHED_BYTES))
    except EvidenceError:
        return None
    before: Batch | None = None
    position = 0
    while start + position < wanted or before is None:
        batch = _sound_batch(found, position)
        if batch is None or (before is not None and not _follows(batch, before)):
            return None
        before, position = batch, batch.end_position
    if start + position < segment.size_bytes:
        behind = _sound_batch(found, position)
        if behind is None or not _follows(behind, before):
            return None
    return _Border(start + position, start + before.byte_position)


def _sound_batch(found: memoryview, position: int) -> Batch | None:
    if len(found) - position < HEADER_BYTES[2] or not is_plausible(found, position, len(found)):
        return None
    batch = read_header_fields(found, position)
    return batch if batch.magic == 2 and crc_matches(found, batch) else None


def _follows(batch: Batch, before: Batch) -> bool:
    return (batch.base_offset or 0) > before.last_offset and (batch.partition_leader_epoch or 0) >= (before.partition_leader_epoch or 0)
