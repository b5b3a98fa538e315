"""Read values of commits and of classic groups into columns, if the layouts read them to the last byte without a mark.

A row of a result is a field, a column is a record (or a member), and all numbers are int64. The kernels do not copy texts: they keep their
places, with a size of -1 for null. `VERSION` decides which fields a record has; it is -1 for a tombstone. `IS_READ` is 0 for a record that
only `record_types` can decode; then the other fields mean nothing.

Source: as `layouts.offsets` and `layouts.classic_group`.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel, keys
from exhume.codecs.kernels.keys import IS_READ, read_key
from exhume.codecs.kernels.primitives import NO_POSITION, NOT_EXACT, int16, int32, int64, kind_of_text, unsigned_varint
from exhume.codecs.kernels.records import KEY_SIZE, KEY_START, RECORD_TYPE, VALUE_SIZE, VALUE_START
from exhume.codecs.kernels.types import Bytes, Number, Rows
from exhume.codecs.layouts.classic_group import GROUP_FLEXIBLE_SINCE
from exhume.codecs.layouts.offsets import COMMIT_FLEXIBLE_SINCE
from exhume.codecs.record_types import GROUP_METADATA, LEGACY_OFFSET_COMMIT, OFFSET_COMMIT

#: The columns after those of `keys`. `TOPIC_ID` is the place of the 16 bytes of a topic id; -1 for none.
VERSION, COMMITTED_OFFSET, LEADER_EPOCH, METADATA_START, METADATA_SIZE = range(keys.COLUMNS, keys.COLUMNS + 5)
COMMIT_TIMESTAMP, EXPIRE_TIMESTAMP, TOPIC_ID = range(keys.COLUMNS + 5, keys.COLUMNS + 8)
COMMIT_COLUMNS = keys.COLUMNS + 8

#: The columns of groups, after those of `keys` and the version.
PROTOCOL_TYPE_START, PROTOCOL_TYPE_SIZE, GENERATION, PROTOCOL_START, PROTOCOL_SIZE = range(VERSION + 1, VERSION + 6)
LEADER_START, LEADER_SIZE, STATE_TIMESTAMP, MEMBERS = range(VERSION + 6, VERSION + 10)
GROUP_COLUMNS = VERSION + 10

#: The columns of members: start and size of six texts and byte strings, then the timeouts and the version of the value.
MEMBER_ID, INSTANCE_ID, CLIENT_ID, CLIENT_HOST, SUBSCRIPTION, ASSIGNMENT = range(0, 12, 2)
REBALANCE_TIMEOUT, SESSION_TIMEOUT, MEMBER_VERSION = range(12, 15)
MEMBER_COLUMNS = 15
#: The bytes of the smallest member.
LEAST_MEMBER_BYTES = 15

#: The newest version of a commit and of a group that kernels read. `record_types` decodes newer ones, if the layouts have them.
NEWEST_VERSION = 4
MOST_STRING_BYTES = 0x7FFF
#: The sizes that `length` and `text` return for a null, and for bytes that cannot be read.
NULL, BAD = -1, -2


@inlined
def length(data: Bytes, position: Number, end: Number, is_wide: bool, is_compact: bool) -> tuple[Number, Number]:
    """Read a length: return it, `NULL`, or `BAD` if it is cut or leads beyond the end; and the position after it."""
    if is_compact:
        size, position = unsigned_varint(data, position, end)
        if position == NO_POSITION:
            return BAD, position
        size -= 1
    else:
        width = 4 if is_wide else 2
        if end - position < width:
            return BAD, position
        size = int32(data, position) if is_wide else int16(data, position)
        position += width
    if size < 0:
        return NULL, position
    return (size if size <= end - position else BAD), position


@inlined
def text(data: Bytes, position: Number, end: Number, is_compact: bool) -> tuple[Number, Number]:
    """Return size and start of a text, as `length` does; the size is `BAD` also for a text that is not exact."""
    size, position = length(data, position, end, False, is_compact)
    if size > MOST_STRING_BYTES or (size > 0 and kind_of_text(data, position, size) == NOT_EXACT):
        return BAD, position
    return size, position


# Commits


@kernel
def read_commits(data: Bytes, records: Rows, commits: Rows) -> None:
    """Read commits and their tombstones into `commits`, from `records` with keys and values in `data`; do not read other record types."""
    for at in range(records.shape[1]):
        if records[RECORD_TYPE, at] != OFFSET_COMMIT and records[RECORD_TYPE, at] != LEGACY_OFFSET_COMMIT:
            commits[IS_READ, at] = 0
            continue
        read_key(data, records[RECORD_TYPE, at], records[KEY_START, at], records[KEY_SIZE, at], commits, at)
        size = records[VALUE_SIZE, at]
        commits[VERSION, at] = -1
        commits[METADATA_SIZE, at] = NULL
        commits[TOPIC_ID, at] = -1
        if commits[IS_READ, at] and size >= 0:
            commits[IS_READ, at] = _read_commit(data, records[VALUE_START, at], records[VALUE_START, at] + size, commits, at)


@kernel
def _read_commit(data: Bytes, position: Number, end: Number, commits: Rows, at: Number) -> Number:
    if end - position < 20:
        return 0
    version = int16(data, position)
    if version < 0 or version > NEWEST_VERSION:
        return 0
    commits[VERSION, at] = version
    commits[COMMITTED_OFFSET, at] = int64(data, position + 2)
    position += 10
    if version >= 3:
        commits[LEADER_EPOCH, at] = int32(data, position)
        position += 4
    size, position = text(data, position, end, version >= COMMIT_FLEXIBLE_SINCE)
    if size < 0:
        return 0
    commits[METADATA_START, at] = position
    commits[METADATA_SIZE, at] = size
    position += size
    if end - position < 8:
        return 0
    commits[COMMIT_TIMESTAMP, at] = int64(data, position)
    position += 8
    if version == 1:
        if end - position < 8:
            return 0
        commits[EXPIRE_TIMESTAMP, at] = int64(data, position)
        position += 8
    if version >= COMMIT_FLEXIBLE_SINCE:
        tags, position = unsigned_varint(data, position, end)
        if position == NO_POSITION or tags > 1:
            return 0
        if tags == 1:
            if end - position < 18 or data[np.uint64(position)] != 0 or data[np.uint64(position + 1)] != 16:
                return 0
            commits[TOPIC_ID, at] = position + 2
            position += 18
    return 1 if position == end else 0


# Groups


@kernel
def read_groups(data: Bytes, records: Rows, groups: Rows, members: Rows) -> Number:
    """Read classic groups and their tombstones into `groups`, and all their members into `members`; return the number of members.

    All `records` are of type 2; `members` must have room for as many members as their values can hold.
    """
    count = np.int64(0)
    for at in range(records.shape[1]):
        read_key(data, GROUP_METADATA, records[KEY_START, at], records[KEY_SIZE, at], groups, at)
        if groups[keys.GROUP_SIZE, at] != records[KEY_SIZE, at] - 4:
            groups[IS_READ, at] = 0
        groups[VERSION, at] = -1
        groups[PROTOCOL_TYPE_SIZE, at] = NULL
        groups[PROTOCOL_SIZE, at] = NULL
        groups[LEADER_SIZE, at] = NULL
        groups[MEMBERS, at] = 0
        size = records[VALUE_SIZE, at]
        if groups[IS_READ, at] and size >= 0:
            start = records[VALUE_START, at]
            total = _read_group(data, start, start + size, groups, at, members, count)
            groups[IS_READ, at] = total != BAD
            groups[MEMBERS, at] = 0 if total == BAD else total - count
            count = count if total == BAD else total
    return count


@kernel
def _read_group(data: Bytes, position: Number, end: Number, groups: Rows, at: Number, members: Rows, count: Number) -> Number:
    """Read a group, and its members from column `count` on; return the column after the last member, or `BAD` if it cannot be read."""
    if end - position < 2:
        return BAD
    version = int16(data, position)
    if version < 0 or version > NEWEST_VERSION:
        return BAD
    is_compact = version >= GROUP_FLEXIBLE_SINCE
    size, position = text(data, position + 2, end, is_compact)
    if size < 0:
        return BAD
    groups[PROTOCOL_TYPE_START, at] = position
    groups[PROTOCOL_TYPE_SIZE, at] = size
    position += size
    if end - position < 4:
        return BAD
    groups[GENERATION, at] = int32(data, position)
    size, position = text(data, position + 4, end, is_compact)
    if size == BAD:
        return BAD
    groups[PROTOCOL_START, at] = position
    groups[PROTOCOL_SIZE, at] = size
    size, position = text(data, position + max(size, 0), end, is_compact)
    if size == BAD:
        return BAD
    groups[LEADER_START, at] = position
    groups[LEADER_SIZE, at] = size
    position += max(size, 0)
    if version >= 2:
        if end - position < 8:
            return BAD
        groups[STATE_TIMESTAMP, at] = int64(data, position)
        position += 8
    promised, position = length(data, position, end, True, is_compact)
    if promised < 0 or promised > members.shape[1] - count:
        return BAD
    for _ in range(promised):
        position = _read_member(data, position, end, version, members, count)
        if position == BAD:
            return BAD
        count += 1
    if is_compact:
        tags, position = unsigned_varint(data, position, end)
        if position == NO_POSITION or tags:
            return BAD
    groups[VERSION, at] = version
    return count if position == end else BAD


@kernel
def _read_member(data: Bytes, position: Number, end: Number, version: Number, members: Rows, at: Number) -> Number:
    """Read a member; return the position after it, or `BAD` if it cannot be read."""
    is_compact = version >= GROUP_FLEXIBLE_SINCE
    members[MEMBER_VERSION, at] = version
    members[INSTANCE_ID, at] = position
    members[INSTANCE_ID + 1, at] = NULL
    for field in range(MEMBER_ID, SUBSCRIPTION, 2):
        if field == INSTANCE_ID and version < 3:
            continue
        size, position = text(data, position, end, is_compact)
        if size == BAD or (size == NULL and field != INSTANCE_ID):
            return BAD
        members[field, at] = position
        members[field + 1, at] = size
        position += max(size, 0)
    if end - position < (8 if version >= 1 else 4):
        return BAD
    if version >= 1:
        members[REBALANCE_TIMEOUT, at] = int32(data, position)
        position += 4
    members[SESSION_TIMEOUT, at] = int32(data, position)
    position += 4
    for field in range(SUBSCRIPTION, REBALANCE_TIMEOUT, 2):
        size, position = length(data, position, end, True, is_compact)
        if size < 0:
            return BAD
        members[field, at] = position
        members[field + 1, at] = size
        position += size
    if is_compact:
        tags, position = unsigned_varint(data, position, end)
        if position == NO_POSITION or tags:
            return BAD
    return position
