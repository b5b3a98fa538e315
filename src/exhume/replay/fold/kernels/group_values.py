"""Check that every release takes a classic group record whose version it knows: kernels.

A record that fails the check can still be right. The loader reads it, as it reads the last record of each group.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel
from exhume.codecs.kernels.primitives import NO_POSITION, hash_of, int16, int32, is_same, unsigned_varint
from exhume.codecs.kernels.types import Bytes, Number, Rows
from exhume.codecs.kernels.values import BAD, NEWEST_VERSION, NULL, length, text
from exhume.codecs.layouts.classic_group import GROUP_FLEXIBLE_SINCE

_CONSUMER = b"consumer"
_MEMBER, _INSTANCE = 0, 1


@kernel
def _topics_end(buffer: Bytes, position: Number, end: Number, has_partitions: bool) -> Number:
    """Return the byte after an array of topics (with partitions); `BAD` if a name is not exact UTF-8 or the bytes end."""
    if end - position < 4:
        return BAD
    count = int32(buffer, position)
    position += 4
    if count < 0 or count > end - position:
        return BAD
    for _ in range(count):
        size, position = text(buffer, position, end, False)
        if size < 0:
            return BAD
        position += size
        if has_partitions:
            if end - position < 4:
                return BAD
            partitions = int32(buffer, position)
            position += 4
            if partitions < 0 or partitions > (end - position) // 4:
                return BAD
            position += 4 * partitions
    return position


@kernel
def _is_exact_payload(buffer: Bytes, position: Number, end: Number, is_assignment: bool) -> Number:
    """True for a consumer protocol Subscription or Assignment that every broker can read, with all names in exact UTF-8."""
    if end - position < 2:
        return False
    version = int16(buffer, position)
    position = _topics_end(buffer, position + 2, end, is_assignment)
    if position == BAD:
        return False
    size, position = length(buffer, position, end, True, False)
    if size == BAD:
        return False
    if is_assignment or version < 1:
        return True
    position = _topics_end(buffer, position + max(size, 0), end, True)
    if position == BAD:
        return False
    if version < 3:
        return True
    if end - position < 6:
        return False
    size, _ = text(buffer, position + 4, end, False)
    return size != BAD


@inlined
def _is_new(buffer: Bytes, start: Number, size: Number, scratch: Rows, mask: Number, stamp: Number, kind: Number) -> Number:
    """Return False if the record of this stamp already has this name, among names of this kind; else enter it.

    A row of `scratch` is stamp, kind, start and size; rows of other stamps are free. `mask` is one less than the number of rows in use.
    """
    at = np.int64(hash_of(buffer, start, size, stamp) & np.uint64(mask))
    while scratch[at, 0] == stamp:
        if scratch[at, 1] == kind and scratch[at, 3] == size and is_same(buffer, scratch[at, 2], buffer, start, size):
            return False
        at = (at + 1) & mask
    scratch[at, 0] = stamp
    scratch[at, 1] = kind
    scratch[at, 2] = start
    scratch[at, 3] = size
    return True


@kernel
def is_plain_group(
    buffer: Bytes,
    start: Number,
    end: Number,
    accepted: Number,
    most_members: Number,
    takes_null_protocol: bool,
    scratch: Rows,
    stamp: Number,
) -> Number:
    """True for a group metadata value that is complete, has no member or instance twice, and has only names that every release takes.

    `accepted` has a bit for each accepted version, `stamp` is new for each call.
    """
    if end - start < 2:
        return False
    version = int16(buffer, start)
    if version < 0 or version > NEWEST_VERSION or not accepted >> version & 1:
        return False
    is_compact = version >= GROUP_FLEXIBLE_SINCE
    size, position = text(buffer, start + 2, end, is_compact)
    if size < 0:
        return False
    is_consumer = size == len(_CONSUMER)
    if is_consumer:
        for index in range(size):
            is_consumer = is_consumer and buffer[position + index] == _CONSUMER[index]
    position += size
    if end - position < 4:
        return False
    position += 4
    protocol, position = text(buffer, position, end, is_compact)
    if protocol == BAD:
        return False
    position += max(protocol, 0)
    leader, position = text(buffer, position, end, is_compact)
    if leader == BAD or (not takes_null_protocol and (protocol == NULL or leader == NULL)):
        return False
    position += max(leader, 0)
    if version >= 2:
        position += 8
    if position > end:
        return False
    members, position = length(buffer, position, end, True, is_compact)
    if members < 0 or members > most_members:
        return False
    if members and (not is_consumer or protocol == NULL or leader == NULL):
        return False
    # Use no more of the scratch than these members need: a small part of it stays in the cache.
    room = np.int64(64)
    while room < 4 * members and room < len(scratch):
        room *= 2
    mask = room - 1
    known_start, known_size = np.int64(0), np.int64(-3)
    for _ in range(members):
        size, position = text(buffer, position, end, is_compact)
        if size < 0 or not _is_new(buffer, position, size, scratch, mask, stamp, _MEMBER):
            return False
        position += size
        if version >= 3:
            size, position = text(buffer, position, end, is_compact)
            if size == BAD or (size >= 0 and not _is_new(buffer, position, size, scratch, mask, stamp, _INSTANCE)):
                return False
            position += max(size, 0)
        for _ in range(2):
            size, position = text(buffer, position, end, is_compact)
            if size < 0:
                return False
            position += size
        position += 8 if version >= 1 else 4
        size, position = length(buffer, position, end, True, is_compact)
        # Members of a group mostly have the same subscription: one equal to that of the member before is already checked.
        if size != known_size or not is_same(buffer, known_start, buffer, position, size):
            if size < 0 or not _is_exact_payload(buffer, position, position + size, False):
                return False
            known_start, known_size = position, size
        position += size
        size, position = length(buffer, position, end, True, is_compact)
        if size < 0 or not _is_exact_payload(buffer, position, position + size, True):
            return False
        position += size
        if is_compact:
            tags, position = unsigned_varint(buffer, position, end)
            if position == NO_POSITION or tags:
                return False
    if is_compact:
        tags, position = unsigned_varint(buffer, position, end)
        return position != NO_POSITION and tags == 0
    return True
