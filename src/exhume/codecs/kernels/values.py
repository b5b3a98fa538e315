"""Read values of commits and of classic groups into columns, if the layouts read them to the last byte without a mark.

A row of a result is a field, a column is a record (or a member), and all numbers are int64. The kernels do not copy texts: they keep their
places, with a size of -1 for null. `VERSION` decides which fields a record has; it is -1 for a tombstone. `IS_READ` is 0 for a record that
only `record_types` can decode; then the other fields mean nothing.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import kernel, keys
from exhume.codecs.kernels.fields import BAD
from exhume.codecs.kernels.keys import IS_READ, read_key
from exhume.codecs.kernels.primitives import NO_POSITION, int16
from exhume.codecs.kernels.readers import (
    NO_COMMIT,
    NO_GROUP,
    Commit,
    Group,
    Member,
    put_commit,
    put_group,
    put_member,
    read_commit,
    read_group,
    read_group_end,
    read_member,
)
from exhume.codecs.kernels.records import KEY_SIZE, KEY_START, RECORD_TYPE, VALUE_SIZE, VALUE_START
from exhume.codecs.kernels.types import Bytes, Int64s, Number, Rows
from exhume.codecs.record_types import GROUP_METADATA, LEGACY_OFFSET_COMMIT, OFFSET_COMMIT

#: The columns of commits and of groups, after those of `keys`, and of members, by the names in `readers`: a number, the start or the size
#: of a text, the start of a topic id. `MEMBER_VERSION` is the version of the value that has the member.
COMMITS = {name: keys.COLUMNS + place for place, name in enumerate(Commit._fields[:-1])}
GROUPS = {name: keys.COLUMNS + place for place, name in enumerate(Group._fields[:-1])}
MEMBERS = {name: place for place, name in enumerate(Member._fields[:-1])}
COMMIT_COLUMNS, GROUP_COLUMNS = keys.COLUMNS + len(COMMITS), keys.COLUMNS + len(GROUPS)
VERSION, MEMBERS_COUNT, MEMBER_VERSION = keys.COLUMNS, GROUPS["members_count"], len(MEMBERS)
MEMBER_COLUMNS = len(MEMBERS) + 1


@kernel
def read_commits(data: Bytes, records: Rows, commits: Rows) -> None:
    """Read commits and their tombstones into `commits`, from `records` with keys and values in `data`; do not read other record types."""
    for at in range(records.shape[1]):
        if records[RECORD_TYPE, at] != OFFSET_COMMIT and records[RECORD_TYPE, at] != LEGACY_OFFSET_COMMIT:
            commits[IS_READ, at] = 0
            continue
        read_key(data, records[RECORD_TYPE, at], records[KEY_START, at], records[KEY_SIZE, at], commits, at)
        commit = NO_COMMIT
        if commits[IS_READ, at] and records[VALUE_SIZE, at] >= 0:
            end = records[VALUE_START, at] + records[VALUE_SIZE, at]
            commit = read_commit(data, records[VALUE_START, at], end)
            commits[IS_READ, at] = commit.after == end
        put_commit(commit, commits, VERSION, at)


@kernel
def besides_old_commits(data: Bytes, records: Rows, version: Number, found: Int64s) -> Number:
    """Fill `found` with the numbers of all records but these: commits of value versions before this one, and their tombstones.

    Returns their number. A negative version counts as a later one.
    """
    count = np.int64(0)
    for at in range(records.shape[1]):
        is_old = False
        if records[RECORD_TYPE, at] == OFFSET_COMMIT or records[RECORD_TYPE, at] == LEGACY_OFFSET_COMMIT:
            is_old = records[VALUE_SIZE, at] < 2 or 0 <= int16(data, records[VALUE_START, at]) < version
        if not is_old:
            found[count] = at
            count += 1
    return count


@kernel
def read_groups(data: Bytes, records: Rows, groups: Rows, members: Rows) -> Number:
    """Read classic groups and their tombstones into `groups`, and all their members into `members`; return the number of members.

    All `records` are of type 2; `members` must have room for as many members as their values can hold.
    """
    count = np.int64(0)
    for at in range(records.shape[1]):
        read_key(data, GROUP_METADATA, records[KEY_START, at], records[KEY_SIZE, at], groups, at)
        key_end = records[KEY_START, at] + records[KEY_SIZE, at]
        if groups[IS_READ, at] and groups[keys.GROUP_START, at] + groups[keys.GROUP_SIZE, at] != key_end:
            groups[IS_READ, at] = 0
        put_group(NO_GROUP, groups, VERSION, at)
        groups[MEMBERS_COUNT, at] = 0
        if groups[IS_READ, at] and records[VALUE_SIZE, at] >= 0:
            start = records[VALUE_START, at]
            total = _read_group(data, start, start + records[VALUE_SIZE, at], groups, at, members, count)
            groups[IS_READ, at] = total != BAD
            count = count if total == BAD else total
    return count


@kernel
def _read_group(data: Bytes, position: Number, end: Number, groups: Rows, at: Number, members: Rows, count: Number) -> Number:
    """Read a group, and its members from column `count` on; return the column after the last member, or `BAD` if it cannot be read."""
    group = read_group(data, position, end)
    if group.after == NO_POSITION or group.members_count > members.shape[1] - count:
        return BAD
    position = group.after
    for _ in range(group.members_count):
        member = read_member(data, position, end, group.version)
        if member.after == NO_POSITION:
            return BAD
        put_member(member, members, 0, count)
        members[MEMBER_VERSION, count] = group.version
        position = member.after
        count += 1
    group = read_group_end(data, position, end, group)
    if group.after != end:
        return BAD
    put_group(group, groups, VERSION, at)
    return count
