"""The user data of Kafka Streams in subscriptions and assignments (protocol `stream`, classic groups).

    SubscriptionInfo   version int32 | 3: latest_supported_version int32 | process_id uuid
                       1-6: previous_tasks [task], standby_tasks [task] | 2: user_endpoint bytes, "host:port", empty for none
                       7-9: task_offset_sums [subtopology, [partition, offset_sum int64]]
                       10: task_offset_sums [subtopology, partition, offset_sum int64, named_topology nullable string]
                       8: unique_field int8 | 9: error_code int32 | 11: client_tags [key bytes, value bytes]
    AssignmentInfo     version int32 | 3: commonly_supported_version int32 | active_tasks [task]
                       standby_tasks [task, partitions [topic utf, partition int32]] | 5: topics [topic_index int32, topic utf]
                       2: partitions_by_host [host utf, port int32, partitions [topic utf or, since 5, topic_index int32; partition]]
                       6: standby_partitions_by_host, the same | 4: error_code int32 | 7: next_rebalance_ms int64
    task               subtopology int32 | partition int32 | in an AssignmentInfo since 10: named_topology int32 + UTF-16, 0 for none
    utf                uint16 size + Java's modified UTF-8

offset_sum -2 is a running active task, -3 an unknown sum. Active task number i belongs to partition number i of the assignment
that contains it. next_rebalance_ms is an epoch time, 0 for "at once", 2^63-1 for none. In a version above the newest known one only the
second field may be read.

Source: SubscriptionInfoData.json and AssignmentInfo, Kafka Streams 0.10 to 4.3.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from exhume.codecs.embedded.payload import Kind, Payload, leading_fields, mark_invalid_utf8
from exhume.codecs.layout import INT8, INT32, INT64, STRING, Array, Field, Message, Scalar, Struct
from exhume.codecs.wire import InvalidUtf8, Reader, Writer, decode_utf8, encode_utf8
from exhume.errors import DecodeError, EncodeError, UnknownVersion

NO_NEXT_REBALANCE_MS = 2**63 - 1


def _read_process_id(reader: Reader) -> str:
    return str(uuid.UUID(bytes=reader.raw(16)))


def _write_process_id(writer: Writer, value: str) -> None:
    try:
        writer.raw(uuid.UUID(value).bytes)
    except ValueError as error:
        raise EncodeError(f"{value!r} is no UUID") from error


def _read_endpoint(reader: Reader) -> str | None:
    raw = reader.blob()
    return decode_utf8(raw) if raw else None


def _write_endpoint(writer: Writer, value: str | None) -> None:
    writer.blob(b"" if value is None else encode_utf8(value))


def _read_java_utf(reader: Reader) -> str:
    return decode_java_utf(reader.raw(reader.uint16()))


def _write_java_utf(writer: Writer, value: str) -> None:
    raw = encode_java_utf(value)
    writer.uint16(len(raw))
    writer.raw(raw)


def _read_named_topology(reader: Reader) -> str | None:
    start = reader.position
    size = reader.int32()
    if size < 0:
        raise DecodeError(f"a named topology of {size} characters", byte_position=start)
    try:
        return reader.raw(2 * size).decode("utf-16-be") if size else None
    except UnicodeDecodeError as error:
        raise DecodeError(f"a named topology that is no valid UTF-16: {error}", byte_position=start) from error


def _write_named_topology(writer: Writer, value: str | None) -> None:
    try:
        raw = (value or "").encode("utf-16-be")
    except UnicodeEncodeError as error:
        raise EncodeError(f"{value!r} cannot be written as UTF-16") from error
    writer.int32(len(raw) // 2)
    writer.raw(raw)


def decode_java_utf(raw: bytes) -> str:
    """Text in Java's modified UTF-8 (NUL in two bytes, a character above U+FFFF as two surrogates of three bytes each).

    `InvalidUtf8` if Java would not have written these bytes.
    """
    try:
        units = raw.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
        text = units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeDecodeError:
        return InvalidUtf8(raw)
    return text if encode_java_utf(text) == raw else InvalidUtf8(raw)


def encode_java_utf(text: str) -> bytes:
    """This text in Java's modified UTF-8; for an `InvalidUtf8` the bytes that it was decoded from."""
    if isinstance(text, InvalidUtf8):
        return text.raw
    utf_16 = text.encode("utf-16-be", "surrogatepass")
    units = "".join(map(chr, struct.unpack(f">{len(utf_16) // 2}H", utf_16)))
    return units.encode("utf-8", "surrogatepass").replace(b"\x00", b"\xc0\x80")


#: In the usual spelling with dashes, as Kafka Streams logs it, not as Kafka prints topic ids.
PROCESS_ID = Scalar("uuid", pa.string(), lambda r, _: _read_process_id(r), lambda w, v, _: _write_process_id(w, v), str(uuid.UUID(int=0)))
ENDPOINT = Scalar("bytes", pa.string(), lambda r, _: _read_endpoint(r), lambda w, v, _: _write_endpoint(w, v), None)
TEXT_BYTES = Scalar("bytes", pa.string(), lambda r, _: decode_utf8(r.blob()), lambda w, v, _: w.blob(encode_utf8(v)), "")
JAVA_UTF = Scalar("utf", pa.string(), lambda r, _: _read_java_utf(r), lambda w, v, _: _write_java_utf(w, v), "")
NAMED_TOPOLOGY = Scalar("utf16", pa.string(), lambda r, _: _read_named_topology(r), lambda w, v, _: _write_named_topology(w, v), None)

_SUBTOPOLOGY = Field("subtopology", INT32, "topicGroupId")
_PARTITION = Field("partition", INT32, "partition")
_TASK_ID = Struct((_SUBTOPOLOGY, _PARTITION))
_TASK_OFFSET_SUM = Struct(
    (
        _SUBTOPOLOGY,
        Field("partition", INT32, "partition", since=10),
        Field("offset_sum", INT64, "offsetSum", since=10),
        Field("named_topology", STRING, "namedTopology", since=10, nullable=True, default=None),
        Field(
            "partition_to_offset_sum",
            Array(Struct((_PARTITION, Field("offset_sum", INT64, "offsetSum")))),
            "partitionToOffsetSum",
            until=9,
        ),
    )
)

SUBSCRIPTION_INFO = Message(
    "SubscriptionInfo",
    range(1, 12),
    Struct(
        (
            Field("latest_supported_version", INT32, "latestSupportedVersion", since=3, default=-1),
            Field("process_id", PROCESS_ID, "processId"),
            Field("previous_tasks", Array(_TASK_ID), "prevTasks", until=6),
            Field("standby_tasks", Array(_TASK_ID), "standbyTasks", until=6),
            Field("user_endpoint", ENDPOINT, "userEndPoint", since=2),
            Field("task_offset_sums", Array(_TASK_OFFSET_SUM), "taskOffsetSums", since=7),
            Field("unique_field", INT8, "uniqueField", since=8),
            Field("error_code", INT32, "errorCode", since=9),
            Field(
                "client_tags", Array(Struct((Field("key", TEXT_BYTES, "key"), Field("value", TEXT_BYTES, "value")))), "clientTags", since=11
            ),
        )
    ),
)

_TASK = Struct((*_TASK_ID.fields, Field("named_topology", NAMED_TOPOLOGY, "namedTopology", since=10)))
_NAMED_PARTITION = Struct((Field("topic", JAVA_UTF, "topic"), _PARTITION))
_PARTITIONS_BY_HOST = Array(
    Struct(
        (
            Field("host", JAVA_UTF, "host"),
            Field("port", INT32, "port"),
            Field(
                "partitions",
                Array(Struct((Field("topic", JAVA_UTF, "topic", until=4), Field("topic_index", INT32, "topicIndex", since=5), _PARTITION))),
                "partitions",
            ),
        )
    )
)

ASSIGNMENT_INFO = Message(
    "AssignmentInfo",
    range(1, 12),
    Struct(
        (
            Field("commonly_supported_version", INT32, "commonlySupportedVersion", since=3, default=-1),
            Field("active_tasks", Array(_TASK), "activeTasks"),
            Field(
                "standby_tasks", Array(Struct((*_TASK.fields, Field("partitions", Array(_NAMED_PARTITION), "partitions")))), "standbyTasks"
            ),
            Field(
                "topics",
                Array(Struct((Field("topic_index", INT32, "topicIndex"), Field("topic", JAVA_UTF, "topic")))),
                "topicDictionary",
                since=5,
            ),
            Field("partitions_by_host", _PARTITIONS_BY_HOST, "partitionsByHost", since=2),
            Field("standby_partitions_by_host", _PARTITIONS_BY_HOST, "standbyPartitionsByHost", since=6),
            Field("error_code", INT32, "errCode", since=4),
            Field("next_rebalance_ms", INT64, "nextRebalanceMs", since=7, default=NO_NEXT_REBALANCE_MS),
        )
    ),
)


def read_streams_subscription_info(data: bytes) -> Payload:
    """Read the user data that a Streams instance sends to the leader. Raises DecodeError."""
    return _read("streams_subscription_info", SUBSCRIPTION_INFO, data)


def read_streams_assignment_info(data: bytes) -> Payload:
    """Read the user data that the leader sends to a Streams instance. Raises DecodeError."""
    return _read("streams_assignment_info", ASSIGNMENT_INFO, data)


def _read(kind: Kind, message: Message, data: bytes) -> Payload:
    reader = Reader(data)
    version = reader.int32()
    payload = Payload(kind, data, version)
    newest = message.versions.stop - 1
    if version < message.versions.start:
        raise UnknownVersion(f"{message.name} has no version {version}")
    if version > newest:
        payload.mark("newer_version")
        payload.value = leading_fields(message, newest, 1).read(reader, newest)
        return payload
    payload.value = message.read(reader, version)
    if reader.remaining:
        payload.mark("trailing_bytes")
    mark_invalid_utf8(payload)
    return payload


def encode_streams_subscription_info(version: int, value: Mapping[str, Any]) -> bytes:
    """The bytes of a SubscriptionInfo, version 1 to 11."""
    return _write(SUBSCRIPTION_INFO, version, value)


def encode_streams_assignment_info(version: int, value: Mapping[str, Any]) -> bytes:
    """The bytes of an AssignmentInfo, version 1 to 11."""
    return _write(ASSIGNMENT_INFO, version, value)


def _write(message: Message, version: int, value: Mapping[str, Any]) -> bytes:
    writer = Writer()
    writer.int32(version)
    message.write(writer, version, value)
    return writer.to_bytes()
