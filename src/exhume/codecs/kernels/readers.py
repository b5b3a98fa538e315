"""Read keys and values of commits and of classic groups, field by field.

`python -m kernel_build.readers` writes this module from the layouts: do not edit it. A reader gets the bytes from `position` to `end`. It
returns the fields, and in `after` the position after them, or `NO_POSITION` for bytes that only `record_types` can decode. It returns the
start and the size of a text; the size is `NULL` for a null, and in a version without the field. Texts in values are exact.
"""

from __future__ import annotations

from typing import NamedTuple

from exhume.codecs.kernels import inlined
from exhume.codecs.kernels.fields import BAD, NULL, length, tagged, text
from exhume.codecs.kernels.primitives import NO_POSITION, int16, int32, int64, unsigned_varint
from exhume.codecs.kernels.types import Bytes, Number, Rows

#: The newest versions of a commit and of a group that these kernels read.
NEWEST_COMMIT_VERSION, NEWEST_GROUP_VERSION = 4, 4
#: The bytes of the record type that begins a key, of a commit key with empty names, and of the partition, its last field.
TYPE_BYTES, LEAST_COMMIT_KEY_BYTES, PARTITION_BYTES = 2, 10, 4
#: The bytes of the smallest member.
LEAST_MEMBER_BYTES = 15
#: A common commit value: its version, its bytes without metadata, and the place of the metadata, which comes after its size.
COMMON_VERSION, COMMON_BYTES, COMMON_METADATA_AT = 3, 24, 16


class CommitKey(NamedTuple):
    """The fields of OffsetCommitKey."""

    group_start: Number
    group_size: Number
    topic_start: Number
    topic_size: Number
    partition: Number
    after: Number


NO_COMMIT_KEY = CommitKey(NULL, NULL, NULL, NULL, NULL, NO_POSITION)


@inlined
def read_commit_key(data: Bytes, position: Number, end: Number) -> CommitKey:
    """Read the fields of OffsetCommitKey, which come after the record type; texts may be not exact."""
    group_size, position = length(data, position, end, False, False)
    if group_size < 0:
        return NO_COMMIT_KEY
    group_start = position
    position += group_size
    topic_size, position = length(data, position, end, False, False)
    if topic_size < 0:
        return NO_COMMIT_KEY
    topic_start = position
    position += topic_size
    if end - position < 4:
        return NO_COMMIT_KEY
    partition = int32(data, position)
    position += 4
    return CommitKey(group_start, group_size, topic_start, topic_size, partition, position)


class GroupKey(NamedTuple):
    """The fields of GroupMetadataKey."""

    group_start: Number
    group_size: Number
    after: Number


NO_GROUP_KEY = GroupKey(NULL, NULL, NO_POSITION)


@inlined
def read_group_key(data: Bytes, position: Number, end: Number) -> GroupKey:
    """Read the fields of GroupMetadataKey, which come after the record type; texts may be not exact."""
    group_size, position = length(data, position, end, False, False)
    if group_size < 0:
        return NO_GROUP_KEY
    group_start = position
    position += group_size
    return GroupKey(group_start, group_size, position)


class Commit(NamedTuple):
    """The fields of OffsetCommitValue."""

    version: Number
    committed_offset: Number
    leader_epoch: Number
    metadata_start: Number
    metadata_size: Number
    commit_timestamp_ms: Number
    expire_timestamp_ms: Number
    topic_id_start: Number
    after: Number


NO_COMMIT = Commit(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NO_POSITION)


@inlined
def read_commit(data: Bytes, position: Number, end: Number) -> Commit:
    """Read OffsetCommitValue, versions 0 to 4."""
    if end - position < 10:
        return NO_COMMIT
    version = int16(data, position)
    if version < 0 or version > 4:
        return NO_COMMIT
    position += 2
    is_compact = version >= 4
    leader_epoch = -1
    expire_timestamp_ms = -1
    topic_id_start = NULL
    committed_offset = int64(data, position)
    position += 8
    if version >= 3:
        if end - position < 4:
            return NO_COMMIT
        leader_epoch = int32(data, position)
        position += 4
    metadata_size, position = text(data, position, end, is_compact)
    if metadata_size < 0:
        return NO_COMMIT
    metadata_start = position
    position += metadata_size
    if end - position < 8:
        return NO_COMMIT
    commit_timestamp_ms = int64(data, position)
    position += 8
    if version == 1:
        if end - position < 8:
            return NO_COMMIT
        expire_timestamp_ms = int64(data, position)
        position += 8
    if is_compact:
        tags, position = unsigned_varint(data, position, end)
        if position == NO_POSITION:
            return NO_COMMIT
        if tags:
            size, start = tagged(data, position, end, 0)
            if size == 16:
                topic_id_start = start
                position = start + size
                tags -= 1
        if tags:
            return NO_COMMIT
    return Commit(
        version,
        committed_offset,
        leader_epoch,
        metadata_start,
        metadata_size,
        commit_timestamp_ms,
        expire_timestamp_ms,
        topic_id_start,
        position,
    )


@inlined
def put_commit(commit: Commit, rows: Rows, first: Number, at: Number) -> None:
    """Write the fields to column `at`, from row `first` on, in their order."""
    rows[first, at] = commit.version
    rows[first + 1, at] = commit.committed_offset
    rows[first + 2, at] = commit.leader_epoch
    rows[first + 3, at] = commit.metadata_start
    rows[first + 4, at] = commit.metadata_size
    rows[first + 5, at] = commit.commit_timestamp_ms
    rows[first + 6, at] = commit.expire_timestamp_ms
    rows[first + 7, at] = commit.topic_id_start


class Group(NamedTuple):
    """The fields of GroupMetadataValue."""

    version: Number
    protocol_type_start: Number
    protocol_type_size: Number
    generation: Number
    protocol_start: Number
    protocol_size: Number
    leader_start: Number
    leader_size: Number
    current_state_timestamp_ms: Number
    members_count: Number
    after: Number


NO_GROUP = Group(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NO_POSITION)


@inlined
def read_group(data: Bytes, position: Number, end: Number) -> Group:
    """Read GroupMetadataValue, versions 0 to 4, up to the number of members."""
    if end - position < 2:
        return NO_GROUP
    version = int16(data, position)
    if version < 0 or version > 4:
        return NO_GROUP
    position += 2
    is_compact = version >= 4
    current_state_timestamp_ms = -1
    protocol_type_size, position = text(data, position, end, is_compact)
    if protocol_type_size < 0:
        return NO_GROUP
    protocol_type_start = position
    position += protocol_type_size
    if end - position < 4:
        return NO_GROUP
    generation = int32(data, position)
    position += 4
    protocol_size, position = text(data, position, end, is_compact)
    if protocol_size == BAD:
        return NO_GROUP
    protocol_start = position
    position += max(protocol_size, 0)
    leader_size, position = text(data, position, end, is_compact)
    if leader_size == BAD:
        return NO_GROUP
    leader_start = position
    position += max(leader_size, 0)
    if version >= 2:
        if end - position < 8:
            return NO_GROUP
        current_state_timestamp_ms = int64(data, position)
        position += 8
    members_count, position = length(data, position, end, True, is_compact)
    if members_count < 0:
        return NO_GROUP
    return Group(
        version,
        protocol_type_start,
        protocol_type_size,
        generation,
        protocol_start,
        protocol_size,
        leader_start,
        leader_size,
        current_state_timestamp_ms,
        members_count,
        position,
    )


@inlined
def read_group_end(data: Bytes, position: Number, end: Number, group: Group) -> Group:
    """Read the fields of GroupMetadataValue after its members; return all fields."""
    version = group.version
    is_compact = version >= 4
    if is_compact:
        tags, position = unsigned_varint(data, position, end)
        if position == NO_POSITION or tags:
            return NO_GROUP
    return Group(
        version,
        group.protocol_type_start,
        group.protocol_type_size,
        group.generation,
        group.protocol_start,
        group.protocol_size,
        group.leader_start,
        group.leader_size,
        group.current_state_timestamp_ms,
        group.members_count,
        position,
    )


@inlined
def put_group(group: Group, rows: Rows, first: Number, at: Number) -> None:
    """Write the fields to column `at`, from row `first` on, in their order."""
    rows[first, at] = group.version
    rows[first + 1, at] = group.protocol_type_start
    rows[first + 2, at] = group.protocol_type_size
    rows[first + 3, at] = group.generation
    rows[first + 4, at] = group.protocol_start
    rows[first + 5, at] = group.protocol_size
    rows[first + 6, at] = group.leader_start
    rows[first + 7, at] = group.leader_size
    rows[first + 8, at] = group.current_state_timestamp_ms
    rows[first + 9, at] = group.members_count


class Member(NamedTuple):
    """The fields of an element of GroupMetadataValue."""

    member_id_start: Number
    member_id_size: Number
    group_instance_id_start: Number
    group_instance_id_size: Number
    client_id_start: Number
    client_id_size: Number
    client_host_start: Number
    client_host_size: Number
    rebalance_timeout_ms: Number
    session_timeout_ms: Number
    subscription_start: Number
    subscription_size: Number
    assignment_start: Number
    assignment_size: Number
    after: Number


NO_MEMBER = Member(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NO_POSITION)


@inlined
def read_member(data: Bytes, position: Number, end: Number, version: Number) -> Member:
    """Read an element of GroupMetadataValue in this version."""
    is_compact = version >= 4
    group_instance_id_start, group_instance_id_size = position, NULL
    rebalance_timeout_ms = -1
    member_id_size, position = text(data, position, end, is_compact)
    if member_id_size < 0:
        return NO_MEMBER
    member_id_start = position
    position += member_id_size
    if version >= 3:
        group_instance_id_size, position = text(data, position, end, is_compact)
        if group_instance_id_size == BAD:
            return NO_MEMBER
        group_instance_id_start = position
        position += max(group_instance_id_size, 0)
    client_id_size, position = text(data, position, end, is_compact)
    if client_id_size < 0:
        return NO_MEMBER
    client_id_start = position
    position += client_id_size
    client_host_size, position = text(data, position, end, is_compact)
    if client_host_size < 0:
        return NO_MEMBER
    client_host_start = position
    position += client_host_size
    if version >= 1:
        if end - position < 4:
            return NO_MEMBER
        rebalance_timeout_ms = int32(data, position)
        position += 4
    if end - position < 4:
        return NO_MEMBER
    session_timeout_ms = int32(data, position)
    position += 4
    subscription_size, position = length(data, position, end, True, is_compact)
    if subscription_size < 0:
        return NO_MEMBER
    subscription_start = position
    position += subscription_size
    assignment_size, position = length(data, position, end, True, is_compact)
    if assignment_size < 0:
        return NO_MEMBER
    assignment_start = position
    position += assignment_size
    if is_compact:
        tags, position = unsigned_varint(data, position, end)
        if position == NO_POSITION or tags:
            return NO_MEMBER
    return Member(
        member_id_start,
        member_id_size,
        group_instance_id_start,
        group_instance_id_size,
        client_id_start,
        client_id_size,
        client_host_start,
        client_host_size,
        rebalance_timeout_ms,
        session_timeout_ms,
        subscription_start,
        subscription_size,
        assignment_start,
        assignment_size,
        position,
    )


@inlined
def put_member(member: Member, rows: Rows, first: Number, at: Number) -> None:
    """Write the fields to column `at`, from row `first` on, in their order."""
    rows[first, at] = member.member_id_start
    rows[first + 1, at] = member.member_id_size
    rows[first + 2, at] = member.group_instance_id_start
    rows[first + 3, at] = member.group_instance_id_size
    rows[first + 4, at] = member.client_id_start
    rows[first + 5, at] = member.client_id_size
    rows[first + 6, at] = member.client_host_start
    rows[first + 7, at] = member.client_host_size
    rows[first + 8, at] = member.rebalance_timeout_ms
    rows[first + 9, at] = member.session_timeout_ms
    rows[first + 10, at] = member.subscription_start
    rows[first + 11, at] = member.subscription_size
    rows[first + 12, at] = member.assignment_start
    rows[first + 13, at] = member.assignment_size


@inlined
def common_metadata_size(data: Bytes, start: Number, size: Number) -> Number:
    """Return the bytes of metadata of a common commit value with nothing after its fields; -1 for another value."""
    metadata_size = size - COMMON_BYTES
    if metadata_size < 0 or int16(data, start) != COMMON_VERSION or int16(data, start + COMMON_METADATA_AT - 2) != metadata_size:
        return -1
    return metadata_size


@inlined
def read_common_commit(data: Bytes, start: Number, metadata_size: Number) -> Commit:
    """Return the fields of a common commit value; `common_metadata_size` has the bytes of its metadata."""
    metadata = start + COMMON_METADATA_AT
    metadata_end = metadata + metadata_size
    return Commit(
        COMMON_VERSION,
        int64(data, start + 2),
        int32(data, start + 10),
        metadata,
        metadata_size,
        int64(data, metadata_end),
        -1,
        NULL,
        metadata_end + 8,
    )
