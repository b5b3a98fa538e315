"""Sections of records side by side, lz4 streams unfolded: many of them in one call.

A stream is taken where it is one that brokers write: blocks of 64 KiB that are not linked, without checksums. What is odd in any way is
left to the library, which knows what an error is; what is taken here comes to the same there.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.batch_format import LZ4
from exhume.codecs.kernels import inlined, kernel, scan
from exhume.codecs.kernels.primitives import copy_bytes, put_word, word
from exhume.codecs.kernels.types import Bytes, Number, Rows

#: Bytes that a target must have beyond what is put into it: copies are wide.
SLACK_BYTES = 16

# Magic, flags, block descriptor and the checksum of both.
_HEADER_WORD, _HEADER_MASK, _HEADER_BYTES = np.uint64(0x82_4060_184D_2204), np.uint64(0xFF_FFFF_FFFF_FFFF), 7
_BLOCK_BYTES = 64 * 1024
_STORED = 0x80000000
# So the format has it, to let decoders copy widely: the last literals of a block, and how far in front of its end the last match begins.
_LAST_LITERALS, _LAST_MATCH = 5, 12
_LEAST_MATCH = 4
_ODD = -1


@kernel
def put_side_by_side(content: Bytes, rows: Rows, first: Number, last: Number, most_bytes: Number, target: Bytes, bodies: Rows) -> Number:
    """Put the records of batches `first` to `last` of `rows`, which are of format 2 and lie in `content`, into `target`: as they are, or
    unfolded to at most so many bytes. Where they lie there, from its start on, goes into `bodies`.

    Gives the number of the batch that it ended at: one that is odd, or of another codec than lz4, or that `target` may be too small for.
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
            if place == _ODD:
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
    """Unfold the stream `source[position:end]` into `target[place:limit]`; the place behind it."""
    if end - position < _HEADER_BYTES + 4 or word(source, position) & _HEADER_MASK != _HEADER_WORD:
        return np.int64(_ODD)
    position += _HEADER_BYTES
    while end - position >= 4:
        size = _uint32(source, position)
        position += 4
        if size == 0:
            # What lies behind does not matter.
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
            if place == _ODD:
                break
        position += size
    return np.int64(_ODD)


@kernel
def _unfold_block(source: Bytes, position: Number, end: Number, target: Bytes, place: Number, limit: Number) -> Number:
    """Unfold the block `source[position:end]`: runs of literals, each with a match behind it, but for the last one."""
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
    return np.int64(_ODD)


@inlined
def _long_size(source: Bytes, position: Number, end: Number) -> tuple[Number, Number]:
    """What the bytes of a size come to that does not fit into its token, and the position behind them; too much where they do not end."""
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
    """Write to `place` what lies so far back, and goes on for `size` bytes; up to 16 more are written."""
    behind = place + size
    if back >= 16:
        while place < behind:
            first, second = word(target, place - back), word(target, place - back + 8)
            put_word(target, place, first)
            put_word(target, place + 8, second)
            place += 16
        return
    if back < 8:
        # What is repeated, until it fills a word: then it is some repetitions back.
        for at in range(place, place + 8):
            target[np.uint64(at)] = target[np.uint64(at - back)]
        place += 8
        back *= (7 + back) // back
    while place < behind:
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
