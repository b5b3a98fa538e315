"""Put sections of records side by side, and unfold lz4 streams: many in one call.

The kernel unfolds the streams that brokers write: blocks of 64 KiB that are not linked, without checksums. It leaves all other streams and
damaged ones to the library, which reports errors. The library unfolds the streams of the kernel to the same bytes.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.batch_format import LZ4
from exhume.codecs.kernels import inlined, kernel, scan
from exhume.codecs.kernels.primitives import copy_bytes, put_word, word
from exhume.codecs.kernels.types import Bytes, Number, Rows

#: The bytes that a target must have after its last section: copies are wide.
SLACK_BYTES = 16

# Magic, flags, block descriptor and the checksum of both.
_HEADER_WORD, _HEADER_MASK, _HEADER_BYTES = np.uint64(0x82_4060_184D_2204), np.uint64(0xFF_FFFF_FFFF_FFFF), 7
_BLOCK_BYTES = 64 * 1024
_STORED = 0x80000000
# The format requires both, so that decoders can copy widely: the least number of literals at the end of a block, and the least distance
# from the start of its last match to its end.
_LAST_LITERALS, _LAST_MATCH = 5, 12
_LEAST_MATCH = 4
_NOT_UNFOLDED = -1


@kernel
def put_side_by_side(content: Bytes, rows: Rows, first: Number, last: Number, most_bytes: Number, target: Bytes, bodies: Rows) -> Number:
    """Put the records of the batches `first` to `last` of `rows` into `target`; return the number of the batch at which it ends.

    The batches are in `content`, all of format 2. The kernel copies uncompressed sections, and unfolds lz4 streams to at most `most_bytes`
    each. `bodies` gets the start and the end of each section in `target`. It ends before a batch that has another codec, whose stream it
    cannot unfold, or for which `target` may be too small.
    """
    place = np.int64(0)
    for number in range(first, last):
        start, end = rows[number, scan.POSITION] + scan.HEADER_BYTES, rows[number, scan.POSITION] + rows[number, scan.SIZE]
        limit = min(place + most_bytes, len(target) - SLACK_BYTES)
        bodies[number, 0] = place
        # Kafka does not look at the codec of a batch without records.
        codec = rows[number, scan.ATTRIBUTES] & scan.CODEC if end > start else 0
        if codec == LZ4:
            place = _unfold(content, start, end, target, place, limit)
            if place == _NOT_UNFOLDED:
                return number
        else:
            if codec != 0 or end - start > limit - place:
                return number
            copy_bytes(content, start, end - start, target, place)
            place += end - start
        bodies[number, 1] = place
    return last


@inlined
def _unfold(source: Bytes, position: Number, end: Number, target: Bytes, place: Number, limit: Number) -> Number:
    """Unfold the stream `source[position:end]` into `target[place:limit]`; return the place after it, or `_NOT_UNFOLDED`."""
    if end - position < _HEADER_BYTES + 4 or word(source, position) & _HEADER_MASK != _HEADER_WORD:
        return np.int64(_NOT_UNFOLDED)
    position += _HEADER_BYTES
    while end - position >= 4:
        size = _uint32(source, position)
        position += 4
        if size == 0:
            # Bytes after the end mark do not matter.
            return place
        is_stored = size & _STORED != 0
        size &= _STORED - 1
        if size == 0 or size > min(_BLOCK_BYTES, end - position):
            break
        if is_stored:
            if size > limit - place:
                break
            copy_bytes(source, position, size, target, place)
            place += size
        else:
            place = _unfold_block(source, position, position + size, target, place, min(limit, place + _BLOCK_BYTES))
            if place == _NOT_UNFOLDED:
                break
        position += size
    return np.int64(_NOT_UNFOLDED)


@kernel
def _unfold_block(source: Bytes, position: Number, end: Number, target: Bytes, place: Number, limit: Number) -> Number:
    """Unfold the block `source[position:end]`; return the place after it, or `_NOT_UNFOLDED`.

    A block has runs of literals, and a match after each run except the last.
    """
    start, wide_end = place, len(source) - 16
    while position < end:
        token = np.int64(source[np.uint64(position)])
        position += 1
        size = token >> 4
        if size == 15:
            more, position = _long_size(source, position, end)
            size += more
        if size > end - position or size > limit - place:
            break
        if size <= 16 and position <= wide_end:
            put_word(target, place, word(source, position))
            put_word(target, place + 8, word(source, position + 8))
        else:
            copy_bytes(source, position, size, target, place)
        position += size
        place += size
        if position == end:
            return place

        if end - position < 2 + 1 + _LAST_LITERALS or place > limit - _LAST_MATCH:
            break
        back = np.int64(source[np.uint64(position)]) | np.int64(source[np.uint64(position + 1)]) << 8
        position += 2
        size = token & 15
        if size == 15:
            more, position = _long_size(source, position, end - _LAST_LITERALS)
            size += more
        size += _LEAST_MATCH
        if back == 0 or back > place - start or size > limit - _LAST_LITERALS - place:
            break
        _repeat(target, place, back, size)
        place += size
    return np.int64(_NOT_UNFOLDED)


@inlined
def _long_size(source: Bytes, position: Number, end: Number) -> tuple[Number, Number]:
    """Return the part of a size that does not fit into its token, and the position after it; a too large size if it does not end."""
    size = np.int64(0)
    while position < end:
        byte = np.int64(source[np.uint64(position)])
        position += 1
        size += byte
        if byte != 255:
            return size, position
    return np.int64(_STORED), position


@inlined
def _repeat(target: Bytes, place: Number, back: Number, size: Number) -> None:
    """Write `size` bytes to `place` that repeat the bytes `back` places before; write up to 16 bytes more."""
    end = place + size
    if back >= 16:
        while place < end:
            first, second = word(target, place - back), word(target, place - back + 8)
            put_word(target, place, first)
            put_word(target, place + 8, second)
            place += 16
        return
    if back < 8:
        # Write the first word byte by byte. After it, a distance of several repetitions gives the same bytes, and is 8 or more.
        for at in range(place, place + 8):
            target[np.uint64(at)] = target[np.uint64(at - back)]
        place += 8
        back *= (7 + back) // back
    while place < end:
        put_word(target, place, word(target, place - back))
        place += 8


@inlined
def _uint32(buffer: Bytes, position: Number) -> Number:
    at = np.uint64(position)
    return np.int64(
        np.uint32(buffer[at])
        | np.uint32(buffer[at + np.uint64(1)]) << np.uint32(8)
        | np.uint32(buffer[at + np.uint64(2)]) << np.uint32(16)
        | np.uint32(buffer[at + np.uint64(3)]) << np.uint32(24)
    )
