"""Continue reading after damage: find every batch in a buffer, and the holes between batches.

The walk is Kafka's own until it fails. Then it tries, in this order:

    1  the batch here is whole, but its size or its magic is wrong: another end or magic makes its checksum match
    2  the size leads to another header (or to the end): the contents changed, the batch keeps its place
    3  search the next batch with a plausible header and a matching checksum; the bytes before it are a hole

The search never enters a batch whose checksum matches: a record may contain batches. A batch after a hole must fit between the offsets
before and after it. If not, it is displaced: it may be an old block of the disk, or part of the value of a record whose batch is lost.

The checksum covers size, magic and contents, not base offset and leader epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from exhume.codecs.batch_format import HEADER_BYTES, HEADER_UP_TO_MAGIC, MOST_OFFSETS_IN_SEGMENT
from exhume.codecs.batch_search import MAX_SEARCHED_BATCH_BYTES, BatchSearch, has_possible_fields, is_plausible, legacy_end
from exhume.codecs.batches import Batch, CrcStatus, checksum, crc_matches, end_reason, first_offset, read_header_fields
from exhume.codecs.wire import Buffer, Reader
from exhume.errors import DecodeError

Grade = Literal["verified", "displaced", "structure_only", "unverified"]
HoleReason = Literal["short_tail", "zero_tail", "cut_batch", "size_beyond_end", "size_too_small", "bad_magic", "crc_mismatch"]

_TRIED_ENDS = 16
_TRIAL_ALLOWANCE_BYTES, _TRIAL_PASSES = 1024 * 1024 * 1024, 8
_SMALLEST_RECORD_BYTES = 7
# A step over one record takes about as long as the checksum of this number of bytes.
_RECORD_STEP_COST_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Found:
    """A batch, and its grade.

    `verified`: its checksum matches. `displaced`: its checksum matches, but it was found after a hole and its offsets do not belong there.
    `structure_only`: the checksum fails, but the records fill the batch exactly as its header says. `unverified`: the checksum fails or was
    not computed. `crc_status` is `unreadable` for a batch that the end of the buffer cuts.

    `batch.size_bytes` and `batch.magic` are the true values; `stated_size_bytes` (of the whole batch) and `stated_magic` are those of the
    header if they differ, else None.
    """

    batch: Batch
    crc_status: CrcStatus
    grade: Grade
    stated_size_bytes: int | None = None
    stated_magic: int | None = None

    @property
    def end_position(self) -> int:
        return self.batch.end_position


@dataclass(frozen=True, slots=True)
class Hole:
    """Bytes that belong to no batch; `reason` is the reason why the walk failed at their start; `is_zero`: all of them are 0."""

    byte_position: int
    size_bytes: int
    reason: HoleReason
    is_zero: bool

    @property
    def end_position(self) -> int:
        return self.byte_position + self.size_bytes

    @property
    def is_damage(self) -> bool:
        """Return False for the zeros of a preallocated file."""
        return self.reason != "zero_tail"


def salvage(
    buffer: Buffer,
    *,
    position: int = 0,
    base_offset: int | None = None,
    next_base_offset: int | None = None,
    verify_crc: bool = True,
) -> Iterator[Found | Hole]:
    """Yield every batch and every hole of `buffer[position:]`, in file order, without a gap. Damage raises no error.

    `base_offset` (of the segment) and `next_base_offset` (of the next one) limit the offsets of batches after a hole. Without
    `verify_crc`, checksums are computed only at places where the walk fails.
    """
    return _Salvage(buffer, base_offset, next_base_offset, verify_crc=verify_crc).run(position)


class _Salvage:
    def __init__(self, buffer: Buffer, base_offset: int | None, next_base_offset: int | None, *, verify_crc: bool) -> None:
        self._buffer = buffer
        self._end = len(buffer)
        self._base_offset = base_offset or 0
        self._lowest_offset = base_offset
        self._next_base_offset = next_base_offset
        self._verify_crc = verify_crc
        self._search = BatchSearch(buffer, self._end)
        # Without this limit, a hostile file could make each failing batch cost a read up to its end.
        self._allowance_bytes = _TRIAL_ALLOWANCE_BYTES + _TRIAL_PASSES * self._end
        self._is_off_the_walk = False

    def run(self, position: int) -> Iterator[Found | Hole]:
        while position < self._end:
            item = self._next(position)
            if isinstance(item, Found) and item.crc_status in ("ok", "not_checked") and item.grade != "displaced":
                self._is_off_the_walk = False
                self._lowest_offset = max(self._base_offset, item.batch.last_offset + 1)
            yield item
            position = item.end_position

    def _next(self, position: int) -> Found | Hole:
        reason: HoleReason
        stopped = end_reason(self._buffer, position, self._end)
        if stopped is None:
            batch = read_header_fields(self._buffer, position)
            if not self._verify_crc:
                return Found(batch, "not_checked", "unverified")
            if crc_matches(self._buffer, batch):
                return Found(batch, "ok", self._grade(batch))
            reason = "crc_mismatch"
        else:
            reason = "short_tail" if stopped == "end" else stopped
        if reason == "short_tail":
            return self._hole(position, self._end, reason)
        leads_on = reason == "crc_mismatch" and self._leads_on(batch.end_position)
        if leads_on and self._grade_by_structure(batch) == "structure_only":
            return Found(batch, "mismatch", "structure_only")
        whole = self._read_whole(position, batch.end_position if leads_on else self._end)
        if whole is not None:
            return whole
        # After a displaced batch no batch is known to begin: bytes that fail their checksum there are no batch.
        may_begin_here = not self._is_off_the_walk
        if leads_on and (may_begin_here or is_plausible(self._buffer, position, self._end)):
            return Found(batch, "mismatch", "unverified")
        self._is_off_the_walk = True
        following = self._search.first_from(position + 1)
        stop = self._end if following is None else following.byte_position
        if may_begin_here and reason in ("crc_mismatch", "cut_batch"):
            headers = self._possible_headers(position)
            if headers and headers[0].magic == self._buffer[position + 16] and self._fits_offsets(headers[0]):
                return self._found_up_to(headers[0], stop, is_last=following is None)
        return self._hole(position, stop, reason)

    def _hole(self, position: int, stop: int, reason: HoleReason) -> Hole:
        is_zero = not np.frombuffer(self._buffer, np.uint8)[position:stop].any()
        if reason == "cut_batch" and (stop < self._end or stop - position >= HEADER_BYTES[2]):
            # A whole header would fit here, but these bytes are no header.
            reason = "size_beyond_end"
        return Hole(position, stop - position, "zero_tail" if is_zero and stop == self._end else reason, is_zero)

    def _found_up_to(self, batch: Batch, stop: int, *, is_last: bool) -> Found:
        """Return a batch whose checksum fails with every size and magic. Trust its size unless another batch, or the end, comes earlier."""
        if batch.end_position <= stop:
            return Found(batch, "mismatch", self._grade_by_structure(batch))
        cut = replace(batch, size_bytes=stop - batch.byte_position)
        return Found(cut, "unreadable" if is_last else "mismatch", "unverified", stated_size_bytes=batch.size_bytes)

    def _leads_on(self, position: int) -> bool:
        """Return True at the end, at a plausible header, and at zeros, with which a preallocated tail or a lost page begins."""
        return (
            position == self._end
            or is_plausible(self._buffer, position, self._end)
            or (self._end - position > HEADER_UP_TO_MAGIC and not any(self._buffer[position : position + HEADER_UP_TO_MAGIC]))
        )

    def _grade(self, batch: Batch) -> Grade:
        """The grade of a batch whose checksum matches."""
        if not self._is_off_the_walk:
            return "verified"
        if not self._fits_offsets(batch):
            return "displaced"
        if self._leads_on(batch.end_position):
            return "verified"
        # The bytes before and after it are damaged. The next batch in the file must have later offsets.
        following = self._search.first_from(batch.end_position)
        return "displaced" if following is not None and first_offset(following) <= batch.last_offset else "verified"

    def _fits_offsets(self, batch: Batch) -> bool:
        """Return True if the offsets of this batch may follow those before it, in this segment."""
        if self._next_base_offset is not None and batch.last_offset >= self._next_base_offset:
            return False
        lowest = self._lowest_offset
        return lowest is None or lowest <= first_offset(batch) <= batch.last_offset <= lowest + MOST_OFFSETS_IN_SEGMENT

    def _grade_by_structure(self, batch: Batch) -> Grade:
        if batch.codec == 0 and self._structural_end(batch) == batch.end_position:
            return "structure_only"
        return "unverified"

    def _read_whole(self, position: int, stop: int) -> Found | None:
        """The batch at `position` if another size (ending within `stop`) or another magic makes its checksum match."""
        for header in self._possible_headers(position):
            end = self._matching_end(header, stop)
            if end is not None:
                batch = replace(header, size_bytes=end - position)
                stated_magic = self._buffer[position + 16]
                return Found(
                    batch,
                    "ok",
                    self._grade(batch),
                    stated_size_bytes=None if end == header.end_position else header.size_bytes,
                    stated_magic=None if stated_magic == batch.magic else stated_magic,
                )
        return None

    def _possible_headers(self, position: int) -> list[Batch]:
        """Return the header at `position` if a broker could have written it apart from its size; with an invalid magic, try every magic."""
        left = self._end - position
        if left < HEADER_BYTES[0] or not any(self._buffer[position : position + HEADER_BYTES[0]]):
            return []
        stated = self._buffer[position + 16]
        magics = (stated,) if stated in HEADER_BYTES else (2, 1, 0)
        headers = [read_header_fields(self._buffer, position, magic) for magic in magics if left >= HEADER_BYTES[magic]]
        return [header for header in headers if has_possible_fields(header)]

    def _matching_end(self, header: Batch, stop: int) -> int | None:
        """Return the end for which the checksum matches: the end of its records, the next verified batch, or the end of the buffer."""
        ends = {header.end_position, self._structural_end(header) or 0}
        following = self._search.first_from(header.byte_position + 1)
        while following is not None and following.byte_position < stop and len(ends) < _TRIED_ENDS:
            ends.add(following.byte_position)
            following = self._search.first_from(following.byte_position + 1)
        if stop == self._end:
            ends.add(stop)
        smallest = header.byte_position + HEADER_BYTES[header.magic]
        largest = min(stop, header.byte_position + MAX_SEARCHED_BATCH_BYTES)
        for end in sorted(end for end in ends if smallest <= end <= largest):
            if end - header.byte_position > self._allowance_bytes:
                return None
            self._allowance_bytes -= end - header.byte_position
            if checksum(self._buffer, header, end) == header.crc:
                return end
        return None

    def _structural_end(self, header: Batch) -> int | None:
        """Return the end of the contents by their own lengths; None if they are compressed or the lengths are wrong."""
        start = header.byte_position + HEADER_BYTES[header.magic]
        if header.magic < 2:
            return legacy_end(self._buffer, header, self._end)
        count = header.record_count or 0
        if header.codec or count * _SMALLEST_RECORD_BYTES > self._end - start or count * _RECORD_STEP_COST_BYTES > self._allowance_bytes:
            return None
        return self._record_chain_end(start, count)

    def _record_chain_end(self, position: int, count: int) -> int | None:
        reader = Reader(self._buffer, position, self._end)
        self._allowance_bytes -= count * _RECORD_STEP_COST_BYTES
        try:
            for _ in range(count):
                size = reader.varint()
                if not _SMALLEST_RECORD_BYTES - 1 <= size <= reader.remaining:
                    return None
                reader.position += size
        except DecodeError:
            return None
        return reader.position
