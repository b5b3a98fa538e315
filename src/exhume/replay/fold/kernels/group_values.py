"""Check that every release takes a classic group record whose version it knows: kernels.

A record that fails the check can still be right. The loader reads it, as it reads the last record of each group.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel
from exhume.codecs.kernels.fields import BAD, NULL, length, text
from exhume.codecs.kernels.primitives import NO_POSITION, hash_of, int16, int32, is_same
from exhume.codecs.kernels.readers import read_group, read_group_end, read_member
from exhume.codecs.kernels.types import Bytes, Number, Rows

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
    """True for a group metadata value of which all releases accept the names, with no member or instance twice and nothing after its end.

    `accepted` has a bit for each accepted version, `stamp` is new for each call.
    """
    group = read_group(buffer, start, end)
    if group.after == NO_POSITION or not accepted >> group.version & 1 or group.members_count > most_members:
        return False
    has_null = group.protocol_size == NULL or group.leader_size == NULL
    if has_null and (group.members_count > 0 or not takes_null_protocol):
        return False
    position = group.after
    if group.members_count > 0:
        if group.protocol_type_size != len(_CONSUMER):
            return False
        for index in range(len(_CONSUMER)):
            if buffer[group.protocol_type_start + index] != _CONSUMER[index]:
                return False
        position = _members_end(buffer, position, end, group.version, group.members_count, scratch, stamp)
        if position == NO_POSITION:
            return False
    group = read_group_end(buffer, position, end, group)
    return group.after == end


@inlined
def _members_end(buffer: Bytes, position: Number, end: Number, version: Number, count: Number, scratch: Rows, stamp: Number) -> Number:
    """Return the byte after the members of a group; `NO_POSITION` if a member fails the check, or comes twice."""
    # Use no more of the scratch than these members need: a small part of it stays in the cache.
    room = np.int64(64)
    while room < 4 * count and room < len(scratch):
        room *= 2
    mask = room - 1
    known_start, known_size = np.int64(0), np.int64(-1)
    for _ in range(count):
        member = read_member(buffer, position, end, version)
        if member.after == NO_POSITION:
            return member.after
        if not _is_new(buffer, member.member_id_start, member.member_id_size, scratch, mask, stamp, _MEMBER):
            return np.int64(NO_POSITION)
        start, size = member.group_instance_id_start, member.group_instance_id_size
        if size >= 0 and not _is_new(buffer, start, size, scratch, mask, stamp, _INSTANCE):
            return np.int64(NO_POSITION)
        start, size = member.subscription_start, member.subscription_size
        # Members of a group mostly have the same subscription: one equal to that of the member before is already checked.
        if size != known_size or not is_same(buffer, known_start, buffer, start, size):
            if not _is_exact_payload(buffer, start, start + size, False):
                return np.int64(NO_POSITION)
            known_start, known_size = start, size
        if not _is_exact_payload(buffer, member.assignment_start, member.assignment_start + member.assignment_size, True):
            return np.int64(NO_POSITION)
        position = member.after
    return position
