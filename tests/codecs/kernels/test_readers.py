"""The readers that are generated from the layouts: they return the fields that the layouts read, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.kernels import readers
from exhume.codecs.kernels.primitives import NO_POSITION
from exhume.codecs.kernels.readers import Commit, CommitKey, Group, GroupKey, Member
from exhume.codecs.layout import BYTES, STRING, UUID, Fields, Struct
from exhume.codecs.layouts import classic_group, offsets
from exhume.codecs.record_types import GROUP_METADATA, OFFSET_COMMIT, RECORD_TYPES, decode_record, encode_key, encode_value
from exhume.codecs.wire import format_uuid
from kernel_build import readers as generated
from tests.strategies import examples

_NUMBERS = st.integers(-(1 << 31), (1 << 31) - 1)
_TEXTS = st.text(max_size=40).filter(lambda text: "\ufffd" not in text and text.isprintable()) | st.sampled_from(("", "größe", "x" * 200))
_MEMBERS = st.fixed_dictionaries(
    {
        "member_id": _TEXTS,
        "group_instance_id": st.none() | _TEXTS,
        "client_id": _TEXTS,
        "client_host": _TEXTS,
        "rebalance_timeout_ms": _NUMBERS,
        "session_timeout_ms": _NUMBERS,
        "subscription": st.binary(max_size=30),
        "assignment": st.binary(max_size=300),
    }
)
_GROUPS = st.fixed_dictionaries(
    {
        "protocol_type": _TEXTS,
        "generation": _NUMBERS,
        "protocol": st.none() | _TEXTS,
        "leader": st.none() | _TEXTS,
        "current_state_timestamp_ms": _NUMBERS,
        "members": st.lists(_MEMBERS, max_size=3),
    }
)
_COMMITS = st.fixed_dictionaries(
    {
        "committed_offset": st.integers(-(1 << 63), (1 << 63) - 1),
        "leader_epoch": _NUMBERS,
        "metadata": _TEXTS,
        "commit_timestamp_ms": _NUMBERS,
        "expire_timestamp_ms": _NUMBERS,
        "topic_id": st.none() | st.binary(min_size=16, max_size=16).filter(any).map(format_uuid),
    }
)


def _value(number: int, version: int, fields: Fields) -> bytes:
    """Return a value with those of these fields that its version has."""
    struct = RECORD_TYPES[number].message.struct
    return encode_value(number, version, {field.name: fields[field.name] for field in struct.fields if field.is_in(version)})


_VALUES = st.builds(_value, st.just(OFFSET_COMMIT), st.integers(0, 4), _COMMITS) | st.builds(
    _value, st.just(GROUP_METADATA), st.integers(0, 4), _GROUPS
)


def _fields(struct: Struct, names: Sequence[str], numbers: Sequence[int], version: int, data: bytes) -> Fields:
    """Return the fields of this version as the layouts do; without arrays."""
    at = dict(zip(names, numbers, strict=True))
    found: dict[str, Any] = {}
    for field in struct.fields:
        start, size = at.get(f"{field.name}_start", -1), at.get(f"{field.name}_size", -1)
        if not field.is_in(version):
            assert size == -1
        elif field.type is UUID:
            found[field.name] = format_uuid(data[start : start + 16]) if start >= 0 and any(data[start : start + 16]) else None
        elif field.type in (STRING, BYTES):
            content = data[start : start + size]
            found[field.name] = None if size < 0 else content if field.type is BYTES else content.decode()
        elif field.name in at:
            found[field.name] = at[field.name]
    return found


def _read_commit(data: bytes) -> tuple[Fields | None, int]:
    """Return the fields of a commit, None if the kernel does not read it, and the position after it."""
    commit = Commit(*readers.read_commit(np.frombuffer(data, np.uint8), 0, len(data)))
    if commit.after == NO_POSITION:
        return None, 0
    return _fields(offsets.OFFSET_COMMIT_VALUE.struct, Commit._fields, commit, commit.version, data), commit.after


def _read_group(data: bytes) -> tuple[Fields | None, int]:
    buffer = np.frombuffer(data, np.uint8)
    group = Group(*readers.read_group(buffer, 0, len(data)))
    position, members = group.after, []
    for _ in range(group.members_count):
        member = Member(*readers.read_member(buffer, position, len(data), group.version))
        if member.after == NO_POSITION:
            return None, 0
        members.append(_fields(classic_group.MEMBER, Member._fields, member, group.version, data))
        position = member.after
    if position == NO_POSITION:
        return None, 0
    group = Group(*readers.read_group_end(buffer, position, len(data), group))
    if group.after == NO_POSITION:
        return None, 0
    fields = _fields(classic_group.GROUP_METADATA_VALUE.struct, Group._fields, group, group.version, data)
    return fields | {"members": members}, group.after


def test_the_module_is_what_the_layouts_give() -> None:
    path = generated.SOURCES / generated.TARGET

    assert path.read_text(encoding="utf-8") == generated.module(), "a layout has changed: run `python -m kernel_build.readers`"


def test_every_version_is_read() -> None:
    assert offsets.OFFSET_COMMIT_VALUE.versions[-1] == readers.NEWEST_COMMIT_VERSION
    assert classic_group.GROUP_METADATA_VALUE.versions[-1] == readers.NEWEST_GROUP_VERSION


@examples(300)
@given(st.integers(0, 4), _COMMITS)
def test_every_commit_is_read_as_by_its_layout(version: int, fields: Fields) -> None:
    value = _value(OFFSET_COMMIT, version, fields)

    assert _read_commit(value) == (decode_record(b"\0\1\0\0\0\0\0\0\0\0", value).value, len(value))


@examples(300)
@given(st.integers(0, 4), _GROUPS)
def test_every_group_is_read_as_by_its_layout(version: int, fields: Fields) -> None:
    value = _value(GROUP_METADATA, version, fields)

    assert _read_group(value) == (decode_record(b"\0\2\0\0", value).value, len(value))


@examples(600)
@given(_VALUES, st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=3), st.integers(-4, 4))
def test_other_bytes_are_read_as_by_their_layout_or_not_at_all(value: bytes, changes: list[tuple[int, int]], longer: int) -> None:
    changed = bytearray(value)
    for place, byte in changes:
        changed[place % len(changed)] = byte
    data = bytes(changed[: len(changed) + min(longer, 0)]) + bytes(max(longer, 0)) or b"\0"

    for key, read in ((b"\0\1\0\0\0\0\0\0\0\0", _read_commit), (b"\0\2\0\0", _read_group)):
        fields, after = read(data)
        decoded = decode_record(key, data[:after])
        if fields is not None:
            assert (fields, []) == (decoded.value, decoded.marks)


@examples(200)
@given(_TEXTS, _TEXTS, _NUMBERS, st.binary(max_size=3))
def test_keys_are_read_as_by_their_layouts(group: str, topic: str, partition: int, more: bytes) -> None:
    fields = {"group": group, "topic": topic, "partition": partition}
    key = encode_key(OFFSET_COMMIT, fields)
    buffer = np.frombuffer(key + more, np.uint8)

    whole = CommitKey(*readers.read_commit_key(buffer, 2, len(buffer)))
    first = GroupKey(*readers.read_group_key(buffer, 2, len(buffer)))
    cut = CommitKey(*readers.read_commit_key(buffer, 2, len(key) - 1))

    assert whole.after == len(key)
    assert _fields(offsets.OFFSET_COMMIT_KEY, CommitKey._fields, whole, 0, key) == fields
    assert _fields(classic_group.GROUP_METADATA_KEY, GroupKey._fields, first, 0, key) == {"group": group}
    assert cut.after == NO_POSITION
    assert len(encode_key(OFFSET_COMMIT, {"group": "", "topic": "", "partition": 0})) == readers.LEAST_COMMIT_KEY_BYTES
    assert key[-readers.PARTITION_BYTES :] == partition.to_bytes(4, "big", signed=True)


@examples(300)
@given(_VALUES, st.sampled_from((-1, 0, 1)))
def test_a_common_commit_is_read_as_any_other(value: bytes, longer: int) -> None:
    data = value[: len(value) + min(longer, 0)] + bytes(max(longer, 0))
    buffer = np.frombuffer(data, np.uint8)
    commit = Commit(*readers.read_commit(buffer, 0, len(data)))
    is_common = commit.version == readers.COMMON_VERSION and commit.after == len(data)

    metadata_size = readers.common_metadata_size(buffer, 0, len(data))

    if is_common or (metadata_size >= 0 and commit.after != NO_POSITION):
        assert metadata_size == commit.metadata_size == len(data) - readers.COMMON_BYTES
        assert commit.metadata_start == readers.COMMON_METADATA_AT
        assert Commit(*readers.read_common_commit(buffer, 0, metadata_size)) == commit
