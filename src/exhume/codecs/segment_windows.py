"""Divide a large segment into parts that can be read separately, at the starts of batches found by the offset index.

A border is the first start of a batch at or after a wanted byte, found by a walk from the last indexed position before it. It is valid
only if the batches before and after it are whole, in order and of format 2, with matching checksums: then no damage crosses it. If one
border is not valid, the segment is read whole.
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

#: The number of bytes after the wanted byte in which a border is searched.
SEARCHED_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Border:
    position: int
    batch_before_at: int


def windows(segment: SegmentFile, wanted: Sequence[int]) -> list[SegmentFile | None]:
    """Return the part of this segment before each wanted byte position, and the part after the last one.

    None for a part without a batch. If a border is not valid, the first part is the whole segment and the others are None.
    """
    borders: list[_Border] = []
    for position in wanted:
        border = _border(segment, position)
        if border is None:
            return [segment, *(None for _ in wanted)]
        borders.append(border)
    parts: list[SegmentFile | None] = []
    start, before = 0, None
    for border in borders:
        parts.append(replace(segment, window=Window(before, border.position)) if border.position > start else None)
        start, before = border.position, border.batch_before_at
    parts.append(replace(segment, window=Window(before, segment.size_bytes)) if segment.size_bytes > start else None)
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
        following = _sound_batch(found, position)
        if following is None or not _follows(following, before):
            return None
    return _Border(start + position, start + before.byte_position)


def _sound_batch(found: memoryview, position: int) -> Batch | None:
    if len(found) - position < HEADER_BYTES[2] or not is_plausible(found, position, len(found)):
        return None
    batch = read_header_fields(found, position)
    return batch if batch.magic == 2 and crc_matches(found, batch) else None


def _follows(batch: Batch, before: Batch) -> bool:
    return (batch.base_offset or 0) > before.last_offset and (batch.partition_leader_epoch or 0) >= (before.partition_leader_epoch or 0)
