"""The one table of record types: the meaning of the first two bytes of a key, and the layouts of key and value.

    key   = record type int16, key body (never flexible)
    value = value version int16, value body; null = tombstone

Reading, writing, Arrow schemas, the dump, the fixtures and the documentation derive from `RECORD_TYPES` and `CONTROL_TYPES`.
To add a type or a layout, add a row. Unknown types and versions raise no error: the known fields at the start are decoded, and `marks`
names the deviation.

Source: CoordinatorRecordType of Kafka 4.4 and the schemas named in `layouts`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from exhume.codecs.layout import Fields, Message, Span, Struct
from exhume.codecs.layouts import classic_group, consumer_group, control, offsets, share_group, streams_group
from exhume.codecs.wire import Reader, Writer, has_invalid_utf8
from exhume.derived import derived_from
from exhume.errors import DecodeError, EncodeError

#: The owner of a record type: committed offsets of any group, or one kind of group.
Family = Literal["offsets", "classic", "consumer", "share", "streams"]
GroupFamily = Literal["classic", "consumer", "share", "streams"]
#: The content of a record.
Role = Literal[
    "offset_commit",
    "group",  # the group itself: its epoch, or its generation with all members
    "partition_metadata",  # the topics of a group and their partitions
    "member",  # the subscription and the settings of a member
    "target_epoch",  # the epoch of the target assignment
    "target",  # the partitions that a member shall own
    "current",  # the partitions that a member owns, and its epoch
    "regular_expression",  # the topics that an expression matches
    "share_state",  # the partitions of a share group that have a state
    "topology",  # the topology of a streams group
]

#: The families of the Java coordinator, which write several records for a group.
MODERN_FAMILIES: tuple[GroupFamily, ...] = ("consumer", "share", "streams")
#: The record types that both coordinators write, and compiled kernels know.
LEGACY_OFFSET_COMMIT, OFFSET_COMMIT, GROUP_METADATA = 0, 1, 2
OFFSET_COMMIT_TYPES = (LEGACY_OFFSET_COMMIT, OFFSET_COMMIT)

#: The marks of a record that deviates from its layout. A row with a mark keeps its raw key and value.
MARKS = {
    "null_key": "the key is null; every coordinator aborts its load here",
    "unknown_record_type": "no known release writes this record type",
    "undecodable_key": "the key is truncated, or contains a wrong length",
    "undecodable_value": "the value is truncated, or contains a wrong length",
    "unknown_value_version": "the value version is newer than any known: decoded with the newest known layout, as far as it fits",
    "trailing_key_bytes": "bytes after the last field of the key",
    "trailing_value_bytes": "bytes after the last field of the value",
    "unknown_tags": "tagged fields that no known release writes",
    "early_layout": "an earlier layout under the same value version",
    "invalid_utf8": "a string that is no valid UTF-8",
}


@dataclass(frozen=True, slots=True)
class ValueLayout:
    """One published layout of a value. `releases` names the releases that wrote it; the first layout of a type is the current one."""

    releases: str
    message: Message


@dataclass(frozen=True, slots=True)
class RecordType:
    """One row of the table. The key begins with `number` as int16; `family` is the owner of the record, `role` its content."""

    number: int
    name: str
    kafka_name: str
    family: Family
    role: Role
    key: Struct
    layouts: tuple[ValueLayout, ...]

    @property
    def message(self) -> Message:
        """The current layout of the value."""
        return self.layouts[0].message

    @property
    def key_message(self) -> Message:
        """The key body as a message; keys have one version and are never flexible."""
        return Message(f"{self.kafka_name}Key", range(1), self.key)


def _row(number: int, name: str, family: Family, role: Role, key: Struct, *layouts: tuple[str, Message]) -> RecordType:
    kafka_name = "LegacyOffsetCommit" if number == LEGACY_OFFSET_COMMIT else "".join(map(str.capitalize, name.split("_")))
    return RecordType(number, name, kafka_name, family, role, key, tuple(ValueLayout(*layout) for layout in layouts))


_GROUP, _MEMBER = consumer_group.GROUP_KEY, consumer_group.MEMBER_KEY

# fmt: off
RECORD_TYPES: dict[int, RecordType] = {
    row.number: row
    for row in (
        _row(LEGACY_OFFSET_COMMIT, "offset_commit", "offsets", "offset_commit", offsets.OFFSET_COMMIT_KEY,
             ("0.8.2", offsets.OFFSET_COMMIT_VALUE)),
        _row(OFFSET_COMMIT, "offset_commit", "offsets", "offset_commit", offsets.OFFSET_COMMIT_KEY,
             ("0.9+", offsets.OFFSET_COMMIT_VALUE)),
        _row(GROUP_METADATA, "group_metadata", "classic", "group", classic_group.GROUP_METADATA_KEY,
             ("0.9+", classic_group.GROUP_METADATA_VALUE)),
        _row(3, "consumer_group_metadata", "consumer", "group", _GROUP,
             ("3.7+", consumer_group.GROUP_METADATA)),
        _row(4, "consumer_group_partition_metadata", "consumer", "partition_metadata", _GROUP,
             ("3.8-4.0", consumer_group.PARTITION_METADATA), ("3.7", consumer_group.PARTITION_METADATA_3_7)),
        _row(5, "consumer_group_member_metadata", "consumer", "member", _MEMBER,
             ("3.8+", consumer_group.MEMBER_METADATA), ("3.7", consumer_group.MEMBER_METADATA_3_7)),
        _row(6, "consumer_group_target_assignment_metadata", "consumer", "target_epoch", _GROUP,
             ("3.7+", consumer_group.TARGET_ASSIGNMENT_METADATA)),
        _row(7, "consumer_group_target_assignment_member", "consumer", "target", _MEMBER,
             ("3.8+", consumer_group.TARGET_ASSIGNMENT_MEMBER), ("3.7", consumer_group.TARGET_ASSIGNMENT_MEMBER_3_7)),
        _row(8, "consumer_group_current_member_assignment", "consumer", "current", _MEMBER,
             ("3.8+", consumer_group.CURRENT_MEMBER_ASSIGNMENT), ("3.7", consumer_group.CURRENT_MEMBER_ASSIGNMENT_3_7)),
        _row(9, "share_group_partition_metadata", "share", "partition_metadata", _GROUP,
             ("4.0", share_group.PARTITION_METADATA_4_0), ("3.9", share_group.PARTITION_METADATA_3_9)),
        _row(10, "share_group_member_metadata", "share", "member", _MEMBER,
             ("4.0+", share_group.MEMBER_METADATA)),
        _row(11, "share_group_metadata", "share", "group", _GROUP,
             ("4.1+", share_group.GROUP_METADATA), ("4.0", share_group.GROUP_METADATA_4_0)),
        _row(12, "share_group_target_assignment_metadata", "share", "target_epoch", _GROUP,
             ("4.0+", share_group.TARGET_ASSIGNMENT_METADATA)),
        _row(13, "share_group_target_assignment_member", "share", "target", _MEMBER,
             ("4.0+", share_group.TARGET_ASSIGNMENT_MEMBER)),
        _row(14, "share_group_current_member_assignment", "share", "current", _MEMBER,
             ("4.0+", share_group.CURRENT_MEMBER_ASSIGNMENT)),
        _row(15, "share_group_state_partition_metadata", "share", "share_state", _GROUP,
             ("4.1+", share_group.STATE_PARTITION_METADATA), ("4.0", share_group.STATE_PARTITION_METADATA_4_0)),
        _row(16, "consumer_group_regular_expression", "consumer", "regular_expression", consumer_group.REGULAR_EXPRESSION_KEY,
             ("4.0+", consumer_group.REGULAR_EXPRESSION)),
        _row(17, "streams_group_metadata", "streams", "group", _GROUP,
             ("4.1+", streams_group.GROUP_METADATA)),
        _row(19, "streams_group_member_metadata", "streams", "member", _MEMBER,
             ("4.1+", streams_group.MEMBER_METADATA)),
        _row(20, "streams_group_target_assignment_metadata", "streams", "target_epoch", _GROUP,
             ("4.1+", streams_group.TARGET_ASSIGNMENT_METADATA)),
        _row(21, "streams_group_target_assignment_member", "streams", "target", _MEMBER,
             ("4.1+", streams_group.TARGET_ASSIGNMENT_MEMBER)),
        _row(22, "streams_group_current_member_assignment", "streams", "current", _MEMBER,
             ("4.1+", streams_group.CURRENT_MEMBER_ASSIGNMENT)),
        _row(23, "streams_group_topology", "streams", "topology", _GROUP,
             ("4.1+", streams_group.TOPOLOGY)),
    )
}
# fmt: on


def numbers(*, family: Family | Collection[Family] | None = None, role: Role | Collection[Role] | None = None) -> frozenset[int]:
    """The record types of these families and of these roles; None stands for all."""
    families = (family,) if isinstance(family, str) else family
    roles = (role,) if isinstance(role, str) else role
    return frozenset(
        row.number for row in RECORD_TYPES.values() if (families is None or row.family in families) and (roles is None or row.role in roles)
    )


def role_of(number: int | None) -> Role | None:
    """The role of this record type; None if the type is not known."""
    row = None if number is None else RECORD_TYPES.get(number)
    return None if row is None else row.role


def group_family(number: int | None) -> GroupFamily | None:
    """The kind of group that this record type belongs to; None for offset commits and for an unknown type."""
    row = None if number is None else RECORD_TYPES.get(number)
    return None if row is None or row.family == "offsets" else row.family


@derived_from(RECORD_TYPES)
def _by_role() -> Mapping[tuple[Family, Role], int]:
    return {(row.family, row.role): row.number for row in RECORD_TYPES.values()}


def number_of(family: Family, role: Role) -> int:
    """The record type of this family and role; for offset commits the one that brokers write today."""
    return _by_role()[family, role]


@dataclass(frozen=True, slots=True)
class ControlType:
    """One kind of control record. `message` is None if no layout is known."""

    number: int
    name: str
    message: Message | None


CONTROL_TYPES: dict[int, ControlType] = {
    row.number: row
    for row in (
        ControlType(0, "ABORT", control.END_TXN_MARKER),
        ControlType(1, "COMMIT", control.END_TXN_MARKER),
        ControlType(2, "LEADER_CHANGE", control.LEADER_CHANGE),
        ControlType(3, "SNAPSHOT_HEADER", control.SNAPSHOT_HEADER),
        ControlType(4, "SNAPSHOT_FOOTER", control.SNAPSHOT_FOOTER),
        ControlType(5, "KRAFT_VERSION", control.KRAFT_VERSION),
        ControlType(6, "KRAFT_VOTERS", control.KRAFT_VOTERS),
    )
}
_CONTROL_KEY = Message("ControlRecordKey", range(1), control.CONTROL_KEY)

ABORT, COMMIT = 0, 1


@dataclass(slots=True)
class Decoded:
    """A decoded record: the readable part of key and value, and its marks.

    `number` is the record type (for control records the control type), None if the key is null or shorter than two bytes.
    `value` is None for a tombstone, and if no field of the value could be read (`marks` has the difference).
    """

    number: int | None = None
    record_type: RecordType | None = None
    control_type: ControlType | None = None
    key: Fields = field(default_factory=dict)
    value_version: int | None = None
    layout: ValueLayout | None = None
    value: Fields | None = None
    marks: list[str] = field(default_factory=list)
    errors: list[DecodeError] = field(default_factory=list)

    def mark(self, name: str) -> None:
        if name not in self.marks:
            self.marks.append(name)

    @property
    def name(self) -> str:
        """The name of the record type, for people and filters."""
        if self.control_type is not None:
            return "end_txn_marker" if self.number in (ABORT, COMMIT) else "control"
        return self.record_type.name if self.record_type is not None else "unknown"


def decode_record(
    key: bytes | None, value: bytes | None, *, trace_key: list[Span] | None = None, trace_value: list[Span] | None = None
) -> Decoded:
    """Decode one data record as far as it goes; never raises. Traces, where given, receive the bytes of every field."""
    decoded = Decoded()
    if key is None:
        decoded.mark("null_key")
        return decoded
    reader = Reader(key)
    try:
        decoded.number = reader.int16()
        if trace_key is not None:
            trace_key.append(Span("record_type", "int16", 0, 2, decoded.number))
        decoded.record_type = RECORD_TYPES.get(decoded.number)
        if decoded.record_type is None:
            decoded.mark("unknown_record_type")
        else:
            decoded.record_type.key_message.read(reader, 0, trace_key, into=decoded.key)
            if reader.remaining:
                decoded.mark("trailing_key_bytes")
    except DecodeError as error:
        decoded.mark("undecodable_key")
        decoded.errors.append(error)
    if value is not None:
        _decode_value(decoded, value, trace_value)
    if has_invalid_utf8(decoded.key) or has_invalid_utf8(decoded.value):
        decoded.mark("invalid_utf8")
    return decoded


def _decode_value(decoded: Decoded, value: bytes, trace: list[Span] | None) -> None:
    reader = Reader(value)
    try:
        decoded.value_version = reader.int16()
    except DecodeError as error:
        decoded.mark("undecodable_value")
        decoded.errors.append(error)
        return
    if trace is not None:
        trace.append(Span("value_version", "int16", 0, 2, decoded.value_version))
    if decoded.record_type is None:
        return
    versions = decoded.record_type.message.versions
    if decoded.value_version not in versions:
        decoded.mark("unknown_value_version")
        if decoded.value_version < versions.start:
            return
    layout, fields, failure, spans, rest = _best_layout(
        decoded.record_type, value, min(decoded.value_version, versions.stop - 1), trace is not None
    )
    decoded.layout, decoded.value = layout, fields
    if trace is not None:
        trace.extend(spans)
    if failure is not None:
        decoded.mark("undecodable_value")
        decoded.errors.append(failure)
    elif rest:
        decoded.mark("trailing_value_bytes")
    if layout is not decoded.record_type.layouts[0]:
        decoded.mark("early_layout")
    if has_unknown_tags(fields):
        decoded.mark("unknown_tags")


_Attempt = tuple[ValueLayout, Fields, DecodeError | None, list[Span], int]


def _best_layout(record_type: RecordType, value: bytes, version: int, traced: bool) -> _Attempt:
    """Decode with the first layout that uses every byte of the value; else with the current one, as far as it goes.

    No byte identifies the layout of a version: the layout that uses all bytes is the right one.
    """
    first: _Attempt | None = None
    for layout in record_type.layouts:
        reader = Reader(value, 2)
        fields: Fields = {}
        spans: list[Span] = []
        error: DecodeError | None = None
        try:
            layout.message.read(reader, version, spans if traced else None, into=fields)
        except DecodeError as caught:
            error = caught
        attempt = (layout, fields, error, spans, reader.remaining)
        if error is None and not reader.remaining:
            return attempt
        first = first or attempt
    assert first is not None
    return first


def decode_control_record(
    key: bytes | None, value: bytes | None, *, trace_key: list[Span] | None = None, trace_value: list[Span] | None = None
) -> Decoded:
    """Decode one record of a control batch as far as it goes; never raises. `key` holds version and control_type. Traces as above."""
    decoded = Decoded()
    if key is None:
        decoded.mark("null_key")
        return decoded
    try:
        _CONTROL_KEY.read(Reader(key), 0, trace_key, into=decoded.key)
        decoded.number = decoded.key["control_type"]
    except DecodeError as error:
        decoded.mark("undecodable_key")
        decoded.errors.append(error)
        return decoded
    decoded.control_type = CONTROL_TYPES.get(decoded.number or 0, ControlType(decoded.number or 0, "UNKNOWN", None))
    message = decoded.control_type.message
    if message is None:
        decoded.mark("unknown_record_type")
    elif value is not None:
        reader = Reader(value)
        decoded.value = {}
        try:
            decoded.value_version = reader.int16()
            if trace_value is not None:
                trace_value.append(Span("value_version", "int16", 0, 2, decoded.value_version))
            message.read(reader, max(0, min(decoded.value_version, message.versions.stop - 1)), trace_value, into=decoded.value)
        except DecodeError as error:
            decoded.mark("undecodable_value")
            decoded.errors.append(error)
        else:
            if decoded.value_version not in message.versions:
                decoded.mark("unknown_value_version")
            elif reader.remaining:
                decoded.mark("trailing_value_bytes")
    return decoded


def encode_key(number: int, key: Mapping[str, Any]) -> bytes:
    """The key of a data record: record type, then its fields."""
    writer = Writer()
    writer.int16(number)
    _record_type(number).key_message.write(writer, 0, key)
    return writer.to_bytes()


def encode_value(number: int, version: int, value: Mapping[str, Any], *, layout: ValueLayout | None = None) -> bytes:
    """The value of a data record: value version, then its fields in this layout (default: the current one)."""
    writer = Writer()
    writer.int16(version)
    (layout.message if layout else _record_type(number).message).write(writer, version, value)
    return writer.to_bytes()


def encode_control_record(control_type: int, value: Mapping[str, Any], *, version: int = 0) -> tuple[bytes, bytes]:
    """Key and value of a control record, such as `encode_control_record(COMMIT, {"coordinator_epoch": 0})`."""
    message = CONTROL_TYPES[control_type].message
    if message is None:
        raise EncodeError(f"no layout is known for control type {control_type}")
    writer = Writer()
    writer.int16(version)
    message.write(writer, version, value)
    return _CONTROL_KEY.encode(0, {"version": 0, "control_type": control_type}), writer.to_bytes()


def _record_type(number: int) -> RecordType:
    if number not in RECORD_TYPES:
        raise EncodeError(f"no record type {number}; known are {', '.join(str(known) for known in RECORD_TYPES)}")
    return RECORD_TYPES[number]


def has_unknown_tags(value: Any) -> bool:
    """Return True if a decoded value has tags that no layout declares, at any depth."""
    if isinstance(value, dict):
        return "unknown_tags" in value or any(has_unknown_tags(item) for item in value.values())
    return isinstance(value, list) and any(has_unknown_tags(item) for item in value)
