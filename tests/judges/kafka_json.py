"""Our decoded records in the words of Kafka's own tool, so that equality with its dump leaves nothing out.

From 3.8 the tool prints what Kafka's schema compiler makes of a message: the fields of the version in the order of the schema, tagged
fields only where they are not the default, bytes as base64, a topic id as 22 characters. One thing is the tool's own: in a group of
protocol type `consumer` it decodes subscription and assignment, and where it cannot they stay base64. Before 3.8 it prints a text of
a few fields, see `kafka_dump`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from exhume.codecs.layout import BYTES, INT32, STRING, UUID, Array, Field, Message, Scalar, Struct
from exhume.codecs.record_types import Decoded, RecordType, ValueLayout
from exhume.codecs.wire import Reader, format_uuid
from exhume.errors import DecodeError

from .kafka_dump_text import (
    GroupMetadataKey,
    GroupMetadataPayload,
    MemberText,
    OffsetCommitKey,
    OffsetCommitPayload,
    TextKey,
    TextPayload,
    UnknownKey,
)

NO_UUID = format_uuid(bytes(16))

_TOPIC_PARTITIONS = Array(Struct((Field("topic", STRING, "topic"), Field("partitions", Array(INT32), "partitions"))))
SUBSCRIPTION = Message(
    "ConsumerProtocolSubscription",
    range(4),
    Struct(
        (
            Field("topics", Array(STRING), "topics"),
            Field("user_data", BYTES, "userData", nullable=True, default=None),
            Field("owned_partitions", _TOPIC_PARTITIONS, "ownedPartitions", since=1),
            Field("generation_id", INT32, "generationId", since=2, default=-1),
            Field("rack_id", STRING, "rackId", since=3, nullable=True, default=None),
        )
    ),
)
ASSIGNMENT = Message(
    "ConsumerProtocolAssignment",
    range(4),
    Struct(
        (
            Field("assigned_partitions", _TOPIC_PARTITIONS, "assignedPartitions"),
            Field("user_data", BYTES, "userData", nullable=True, default=None),
        )
    ),
)


def to_kafka_json(record_type: RecordType, value_version: int, value: Mapping[str, Any], layout: ValueLayout) -> dict[str, Any]:
    """This value as 3.8 and later print it: `{"version": "N", "data": {…}}`."""
    data = _struct_json(layout.message.struct, value_version, value)
    if record_type.name == "group_metadata" and value["protocol_type"] == "consumer":
        for printed, member in zip(data["members"], value["members"], strict=True):
            printed["subscription"] = _embedded_json(SUBSCRIPTION, member["subscription"])
            printed["assignment"] = _embedded_json(ASSIGNMENT, member["assignment"])
    return {"version": str(value_version), "data": data}


def key_to_kafka_json(record_type: RecordType, key: Mapping[str, Any]) -> dict[str, Any]:
    """This key as 3.8 and later print it: `{"type": "N", "data": {…}}`."""
    return {"type": str(record_type.number), "data": _struct_json(record_type.key, 0, key)}


def to_text(decoded: Decoded, *, knows_modern_types: bool) -> tuple[TextKey, TextPayload | None]:
    """Key and payload as releases before 3.8 print them; `knows_modern_types` is true from 3.4, whose text names other types by number."""
    assert decoded.record_type is not None
    value = decoded.value
    if decoded.record_type.name == "offset_commit":
        key = OffsetCommitKey(decoded.key["group"], decoded.key["topic"], decoded.key["partition"])
        return key, None if value is None else OffsetCommitPayload(value["committed_offset"], value["metadata"])
    if decoded.record_type.name == "group_metadata":
        return GroupMetadataKey(decoded.key["group"]), None if value is None else _group_text(value)
    assert knows_modern_types
    return UnknownKey(decoded.record_type.number), None


def _struct_json(struct: Struct, version: int, value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        field.kafka_name: _field_json(field.type, version, value[field.name])
        for field in struct.fields
        if field.is_in(version) and (field.tag is None or value[field.name] != field.default_value(version))
    }


def _field_json(field_type: Scalar | Array | Struct, version: int, value: Any) -> Any:
    if field_type is UUID:
        return value or NO_UUID
    if value is None:
        return None
    if isinstance(field_type, Array):
        return [_field_json(field_type.element, version, element) for element in value]
    if isinstance(field_type, Struct):
        return _struct_json(field_type, version, value)
    return base64.b64encode(value).decode() if field_type is BYTES else value


def decode_embedded(message: Message, payload: bytes) -> tuple[int, dict[str, Any]] | None:
    """A version and a message of it. The tool reads any later version as the newest it knows, as clients do."""
    reader = Reader(payload)
    try:
        version = min(reader.int16(), message.versions.stop - 1)
        return version, message.read(reader, version)
    except DecodeError:
        return None


def _embedded_json(message: Message, payload: bytes) -> Any:
    decoded = decode_embedded(message, payload)
    return base64.b64encode(payload).decode() if decoded is None else _struct_json(message.struct, *decoded)


def _group_text(value: Mapping[str, Any]) -> GroupMetadataPayload:
    is_consumer = value["protocol_type"] == "consumer"
    members = {member["member_id"]: _member_text(member["assignment"], is_consumer) for member in value["members"]}
    return GroupMetadataPayload(value["protocol_type"], value["protocol"], value["generation"], members)


def _member_text(assignment: bytes, is_consumer: bool) -> MemberText:
    if not is_consumer:
        return MemberText(None, _hexadecimal(assignment))
    decoded = decode_embedded(ASSIGNMENT, assignment)
    if decoded is None:
        return MemberText((), "")
    _, fields = decoded
    partitions = tuple(f"{topic['topic']}-{partition}" for topic in fields["assigned_partitions"] for partition in topic["partitions"])
    return MemberText(partitions, _hexadecimal(fields["user_data"] or b""))


def _hexadecimal(raw: bytes) -> str:
    return format(int.from_bytes(raw), "X") if raw else ""
