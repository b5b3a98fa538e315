"""Search a buffer for batches: test every position for a header that a broker could have written, and verify its checksum.

Reading continues with this search after damage. The search tests whole columns of bytes at a time. It computes a checksum only for a
candidate that passes every test of the header.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from exhume.codecs.batch_format import CODEC, HEADER_BYTES, HEADER_UP_TO_MAGIC, LOG_OVERHEAD
from exhume.codecs.batches import Batch, crc_matches, end_reason, read_header_fields
from exhume.codecs.compression import CODECS, codecs_of_format
from exhume.codecs.wire import Buffer

#: The largest batch that the search accepts; brokers refuse much smaller messages.
MAX_SEARCHED_BATCH_BYTES = 128 * 1024 * 1024

_INT32 = struct.Struct(">i")
_FIRST_WINDOW_BYTES, _LARGEST_WINDOW_BYTES = 4 * 1024, 1024 * 1024
_SEARCH_ALLOWANCE_BYTES, _SEARCH_PASSES = 1024 * 1024 * 1024, 8
_Bytes = npt.NDArray[np.uint8]
_Positions = npt.NDArray[np.int64]


class BatchSearch:
    """The batches in `buffer[:end]` whose header is plausible and whose checksum matches, at any position.

    The search keeps its results: callers that search step by step read every byte once. It computes checksums of a limited number of bytes,
    because a file could consist of plausible headers only; `skipped_count` is the number of candidates that it did not check.
    """

    def __init__(self, buffer: Buffer, end: int) -> None:
        self._buffer = buffer
        self._end = end
        self._found: list[Batch] = []
        self._positions: list[int] = []
        self._frontier = 0
        self._scan: Iterator[Batch] = iter(())
        self._allowance_bytes = _SEARCH_ALLOWANCE_BYTES + _SEARCH_PASSES * end
        self.skipped_count = 0

    def first_from(self, position: int) -> Batch | None:
        """Return the first verified batch that begins at or after `position`; None if there is none.

        Call it with rising positions. A smaller position is allowed if a batch after it was found before.
        """
        index = bisect_left(self._positions, position)
        if index < len(self._found):
            return self._found[index]
        if position >= self._frontier:
            self._scan = self._verified(position)
        for batch in self._scan:
            self._found.append(batch)
            self._positions.append(batch.byte_position)
            # The search may not have reached `position` yet.
            if batch.byte_position >= position:
                return batch
        return None

    def _verified(self, start: int) -> Iterator[Batch]:
        window_bytes = _FIRST_WINDOW_BYTES
        while start < self._end:
            stop = min(start + window_bytes, self._end)
            self._frontier = stop
            for position in plausible_positions(self._buffer, start, stop, self._end).tolist():
                batch = read_header_fields(self._buffer, position)
                if batch.size_bytes > self._allowance_bytes:
                    self.skipped_count += 1
                    continue
                if crc_matches(self._buffer, batch):
                    yield batch
                else:
                    self._allowance_bytes -= batch.size_bytes
            start = stop
            window_bytes = min(window_bytes * 2, _LARGEST_WINDOW_BYTES)


def is_plausible(buffer: Buffer, position: int, end: int) -> bool:
    """Return True if a broker could have written the header at `position`, and its batch ends within `end`."""
    if end_reason(buffer, position, end) is not None:
        return False
    batch = read_header_fields(buffer, position)
    if not has_possible_fields(batch) or batch.size_bytes > MAX_SEARCHED_BATCH_BYTES + LOG_OVERHEAD:
        return False
    if batch.magic < 2:
        return legacy_end(buffer, batch, end) == batch.end_position
    return batch.record_count != 0 or batch.size_bytes == HEADER_BYTES[2]


def _has_known_codec(batch: Batch) -> bool:
    return batch.codec in CODECS and CODECS[batch.codec].first_format <= batch.magic


def has_possible_fields(batch: Batch) -> bool:
    """Return True if a broker could have written the header fields other than size and magic."""
    times = (batch.base_timestamp_ms, batch.max_timestamp_ms, batch.delete_horizon_ms)
    if any(time is not None and time < -1 for time in times):
        return False
    if batch.magic < 2:
        return batch.last_offset >= 0 and _has_known_codec(batch) and batch.attributes & (0xF8 if batch.magic == 0 else 0xF0) == 0
    base_offset, count, leader_epoch = batch.base_offset or 0, batch.record_count or 0, batch.partition_leader_epoch or 0
    return (
        0 <= base_offset <= batch.last_offset
        and 0 <= count <= batch.last_offset - base_offset + 1
        and batch.attributes & 0xFF80 == 0
        and _has_known_codec(batch)
        and leader_epoch >= -1
        and batch.producer_epoch >= -1
    )


def legacy_end(buffer: Buffer, batch: Batch, end: int) -> int | None:
    """Return the end of a log entry of format 0 or 1 by the lengths of its key and value; None if that is beyond `end`."""
    position = batch.byte_position + HEADER_BYTES[batch.magic] - 8
    for _ in ("key", "value"):
        if position + 4 > end:
            return None
        position += 4 + max(_INT32.unpack_from(buffer, position)[0], 0)
    return position if position <= end else None


def plausible_positions(buffer: Buffer, start: int, stop: int, end: int) -> _Positions:
    """Return the positions in `start..stop-1` of headers that a broker could have written, in order, of batches that end within `end`.

    This function computes no checksum. A random position of format 2 passes with a probability of about 2^-40; formats 0 and 1 must satisfy
    `size == header + key + value` exactly.
    """
    view = np.frombuffer(buffer, np.uint8)[:end]
    # All candidates of one call must have 17 header bytes before the end; the per-format tests ask for the rest.
    found = [_plausible_format_2(view, start, min(stop, end - HEADER_BYTES[2] + 1), end)]
    found += [_plausible_legacy(view, start, min(stop, end - HEADER_BYTES[magic] + 1), end, magic) for magic in (0, 1)]
    positions = np.concatenate(found)
    positions.sort()
    return positions


def _plausible_format_2(view: _Bytes, start: int, stop: int, end: int) -> _Positions:
    if stop <= start:
        return np.empty(0, np.int64)

    def column(at: int) -> _Bytes:
        return view[start + at : stop + at]

    mask = (column(16) == 2) & (column(21) == 0)
    at = np.flatnonzero(mask).astype(np.int64) + start
    at = at[(view[at + 22] < 0x80) & np.isin(view[at + 22] & CODEC, codecs_of_format(2))]
    size, last_offset_delta, count = _int(view, at + 8, 4), _int(view, at + 23, 4), _int(view, at + 57, 4)
    fits = (size >= 49) & (size <= MAX_SEARCHED_BATCH_BYTES) & (at + LOG_OVERHEAD + size <= end)
    counts = (last_offset_delta >= 0) & (count >= 0) & (count <= last_offset_delta + 1) & ((count > 0) | (size == 49))
    epochs = (_int(view, at + 12, 4) >= -1) & (_int(view, at + 51, 2) >= -1)
    times = (_int(view, at + 27, 8) >= -1) & (_int(view, at + 35, 8) >= -1)
    passes: npt.NDArray[np.bool_] = fits & counts & epochs & times & (view[at] < 0x80)
    return at[passes]


def _plausible_legacy(view: _Bytes, start: int, stop: int, end: int, magic: int) -> _Positions:
    if stop <= start or not view[start : stop + HEADER_UP_TO_MAGIC].any():
        return np.empty(0, np.int64)

    def column(at: int) -> _Bytes:
        return view[start + at : stop + at]

    # Test whole columns first: this removes most positions of zeros and text before an index is built.
    mask = (column(16) == magic) & (column(17) & (0xF8 if magic == 0 else 0xF0) == 0) & (column(8) <= MAX_SEARCHED_BATCH_BYTES >> 24)
    mask &= (column(9) | column(10) != 0) | (column(11) >= HEADER_BYTES[0] - LOG_OVERHEAD)
    at = np.flatnonzero(mask).astype(np.int64) + start
    at = at[np.isin(view[at + 17] & CODEC, codecs_of_format(magic)) & (view[at] < 0x80)]
    size = _int(view, at + 8, 4)
    at = at[(size <= MAX_SEARCHED_BATCH_BYTES) & (at + LOG_OVERHEAD + size <= end)]
    if magic == 1:
        at = at[_int(view, at + 18, 8) >= -1]
    payload_bytes = _int(view, at + 8, 4) + LOG_OVERHEAD - HEADER_BYTES[magic]
    key_bytes = np.maximum(_int(view, at + HEADER_BYTES[magic] - 8, 4), 0)
    inside = key_bytes <= payload_bytes
    at, key_bytes, payload_bytes = at[inside], key_bytes[inside], payload_bytes[inside]
    value_bytes = np.maximum(_int(view, at + HEADER_BYTES[magic] - 4 + key_bytes, 4), 0)
    is_exact: npt.NDArray[np.bool_] = key_bytes + value_bytes == payload_bytes
    return at[is_exact]


def _int(view: _Bytes, at: _Positions, width: int) -> _Positions:
    """The big-endian signed integers of `width` bytes at these positions."""
    value: _Positions = view[at].astype(np.int8).astype(np.int64)
    for index in range(1, width):
        value = value << 8 | view[at + index]
    return value
