"""Subscriptions and assignments of `consumer` groups: the embedded protocol of ordinary consumers.

    subscription   version int16 | topics [string] | user_data nullable bytes | 1: owned_partitions [topic, partitions [int32]]
                   2: generation int32, -1 unknown | 3: rack_id nullable string
    assignment     version int16 | assigned_partitions [topic, partitions [int32]] | user_data nullable bytes
                   versions 1 to 3 differ in the number alone

One topic may come twice among the owned partitions (Java 2.4 to 2.8.0), so they stay a list. kafka-go writes version 1, faust
version 4, over a body of version 0; old sarama writes -1 for "no elements". The broker itself reads topics and user data only.

Source: ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json, Kafka 0.9 to 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from exhume.codecs.embedded.payload import Kind, Payload, leading_fields, mark_invalid_utf8, read_versioned, undecoded, write_versioned
from exhume.codecs.embedded.streams import read_streams_assignment_info, read_streams_subscription_info
from exhume.codecs.embedded.user_data import (
    read_cooperative_sticky_user_data,
    read_faust_user_data,
    read_rack,
    read_sticky_user_data,
)
from exhume.codecs.layout import BYTES, INT32, STRING, Array, Field, Fields, Message, Struct
from exhume.codecs.wire import Reader
from exhume.errors import DecodeError, UnexpectedNull, UnknownVersion

#: The generation that a member without one writes.
NO_GENERATION = -1

# Kafka's schemas do not allow null arrays, but some clients write -1 for "no elements".
TOPIC_PARTITIONS = Struct((Field("topic", STRING, "topic"), Field("partitions", Array(INT32), "partitions", nullable=True)))

SUBSCRIPTION = Message(
    "ConsumerProtocolSubscription",
    range(4),
    Struct(
        (
            Field("topics", Array(STRING), "topics", nullable=True),
            Field("user_data", BYTES, "userData", nullable=True, default=None),
            Field("owned_partitions", Array(TOPIC_PARTITIONS), "ownedPartitions", since=1, nullable=True),
            Field("generation", INT32, "generationId", since=2, default=NO_GENERATION),
            Field("rack_id", STRING, "rackId", since=3, nullable=True, default=None),
        )
    ),
)
ASSIGNMENT = Message(
    "ConsumerProtocolAssignment",
    range(4),
    Struct(
        (
            Field("assigned_partitions", Array(TOPIC_PARTITIONS), "assignedPartitions", nullable=True),
            Field("user_data", BYTES, "userData", nullable=True, default=None),
        )
    ),
)

UserDataReader = Callable[[bytes], Payload]


@dataclass(frozen=True, slots=True)
class ConsumerPayload:
    """One of the two payloads: its layout, and how each protocol reads the user data in it."""

    kind: Kind
    message: Message
    user_data_readers: Mapping[str, UserDataReader]


CONSUMER_SUBSCRIPTION = ConsumerPayload(
    "consumer_subscription",
    SUBSCRIPTION,
    {
        "sticky": read_sticky_user_data,
        "cooperative-sticky": read_cooperative_sticky_user_data,
        "stream": read_streams_subscription_info,
        "rack-affinity": read_rack,
        "faust": read_faust_user_data,
    },
)
CONSUMER_ASSIGNMENT = ConsumerPayload(
    "consumer_assignment",
    ASSIGNMENT,
    {
        # librdkafka copies the user data of the member's subscription; sarama writes a sticky struct.
        "sticky": read_sticky_user_data,
        "cooperative-sticky": read_cooperative_sticky_user_data,
        "stream": read_streams_assignment_info,
        "faust": read_faust_user_data,
    },
)


def read_consumer_payload(form: ConsumerPayload, protocol: str | None, data: bytes) -> Payload:
    """Read the whole payload, user data included. Raises DecodeError, but not for damaged user data: the user data is then undecoded."""
    return _finished(form, protocol, read_versioned(form.kind, form.message, data))


def read_consumer_prefix(form: ConsumerPayload, protocol: str | None, data: bytes, at_least: int) -> Payload:
    """Read the fields that every version begins with: the topics or assigned partitions, and the user data if `at_least` is 2 or it fits.

    Ignore all later bytes. Raises DecodeError if fewer than `at_least` fields can be read.
    """
    version = Reader(data).int16()
    if version < 0:
        raise UnknownVersion(f"{form.message.name} has no version {version}")
    payload = Payload(form.kind, data, version, marks=["prefix_only"])
    try:
        payload.value = leading_fields(form.message, 0, 2).read(Reader(data, 2), 0)
    except DecodeError as error:
        if at_least == 2:
            raise
        payload.value = leading_fields(form.message, 0, 1).read(Reader(data, 2), 0)
        payload.reason = f"only the first field can be read: {error}"
    mark_invalid_utf8(payload)
    return _finished(form, protocol, payload)


def _finished(form: ConsumerPayload, protocol: str | None, payload: Payload) -> Payload:
    if _fill_null_arrays(form.message.struct, payload.value):
        payload.mark("null_array")
    user_data = payload.value.get("user_data")
    read = form.user_data_readers.get(protocol or "")
    if user_data and read is not None:
        try:
            payload.user_data = read(user_data)
        except DecodeError as error:
            payload.user_data = undecoded(user_data, f"not user data of {protocol}: {error}")
    return payload


def _fill_null_arrays(struct: Struct, value: Fields) -> bool:
    """Replace null arrays by empty ones, at any depth; True if there was one."""
    found = False
    for field in struct.fields:
        if not isinstance(field.type, Array) or field.name not in value:
            continue
        if value[field.name] is None:
            value[field.name] = []
            found = True
        elif isinstance(field.type.element, Struct):
            for element in value[field.name]:
                found |= _fill_null_arrays(field.type.element, element)
    return found


def encode_subscription(version: int, value: Mapping[str, Any], *, body_version: int | None = None) -> bytes:
    """The bytes of a subscription. Missing fields take their defaults, None for an array writes -1.

    `body_version` is the version of the body if it is not the stated one: 0 for kafka-go's 1 and faust's 4.
    """
    return write_versioned(SUBSCRIPTION, version, value, body_version)


def encode_assignment(version: int, value: Mapping[str, Any], *, body_version: int | None = None) -> bytes:
    """The bytes of an assignment; as `encode_subscription`."""
    return write_versioned(ASSIGNMENT, version, value, body_version)


def assigned_partitions(payload: Payload) -> list[tuple[str, int]]:
    """The (topic, partition) pairs of a consumer assignment, each once, in the order written; none for any other payload."""
    pairs = ((entry["topic"], partition) for entry in payload.value.get("assigned_partitions", ()) for partition in entry["partitions"])
    return list(dict.fromkeys(pairs)) if payload.kind == "consumer_assignment" else []


def subscribed_topics(payload: Payload) -> list[str] | None:
    """The topics of a consumer subscription, each once, in the order written; None for any other payload."""
    return list(dict.fromkeys(payload.value["topics"])) if payload.kind == "consumer_subscription" else None


def broker_subscription_topics(data: bytes) -> list[str]:
    """The topics that a broker finds in the subscription of a member whose protocol type is `consumer`.

    A broker skips the version without a check, and reads the body as version 0: topics, then user data, whose content it ignores. It does
    not read later bytes. A negative length of the user data means null.

    Raises:
        DecodeError: they cannot be read. Brokers up to 2.6, 4.2.2, and from 4.4 on treat every failure as "topics unknown".
        Underflow: the bytes end inside the version, the count or a length. Every broker treats that as "topics unknown".
        UnexpectedNull: a negative topic count, or a negative length of a name. Other brokers abort the load of the partition.
        LengthOverrun: a count, name or user data longer than the bytes that are left. Other brokers abort the load, from 2.8.2,
            3.0.2, 3.1.2, 3.2.3 and 3.3.0 on; those before treat it as an Underflow.

    Source: GroupMetadata.computeSubscribedTopics (2.4 to 3.9), ClassicGroup.computeSubscribedTopics (3.7 to 4.4), and tests
    of such bytes with brokers of those releases.
    """
    reader = Reader(data)
    reader.int16()
    count = reader.nullable_count()
    if count is None:
        raise UnexpectedNull("the topics are null where null is not allowed", byte_position=2)
    topics = [reader.string() for _ in range(count)]
    reader.nullable_blob()
    return topics
