"""KIP-848 consumer groups: record types 3 to 8 and 16.

3.8 changed the layout of types 4, 5, 7 and 8 under the same version 0; this module has the layout of 3.7 too.

Source: ConsumerGroup*.json, Kafka 3.7.2 and 3.8.0 to 4.4.
"""

from __future__ import annotations

from exhume.codecs.layout import BYTES, INT8, INT16, INT32, INT64, STRING, UUID, Array, Field, Message, Struct

GROUP_KEY = Struct((Field("group", STRING, "groupId"),))
MEMBER_KEY = Struct((Field("group", STRING, "groupId"), Field("member_id", STRING, "memberId")))
REGULAR_EXPRESSION_KEY = Struct((Field("group", STRING, "groupId"), Field("regular_expression", STRING, "regularExpression")))

TOPIC_PARTITIONS = Struct((Field("topic_id", UUID, "topicId"), Field("partitions", Array(INT32), "partitions")))
TOPIC_PARTITIONS_WITH_EPOCHS = Struct(
    (*TOPIC_PARTITIONS.fields, Field("assignment_epochs", Array(INT32), "assignmentEpochs", tag=0, nullable=True)),
)
TOPIC_METADATA = Struct(
    (
        Field("topic_id", UUID, "topicId"),
        Field("topic", STRING, "topicName"),
        Field("partition_count", INT32, "numPartitions"),
        Field(
            "partition_metadata",
            Array(Struct((Field("partition", INT32, "partition"), Field("racks", Array(STRING), "racks")))),
            "partitionMetadata",
        ),
    )
)
CLASSIC_MEMBER_METADATA = Struct(
    (
        Field("session_timeout_ms", INT32, "sessionTimeoutMs"),
        Field(
            "supported_protocols",
            Array(Struct((Field("name", STRING, "name"), Field("metadata", BYTES, "metadata")))),
            "supportedProtocols",
        ),
    )
)


def flexible(name: str, *fields: Field) -> Message:
    """A message of version 0, flexible from the start: the form of every record of the Java coordinator."""
    return Message(name, range(1), Struct(fields), flexible_since=0)


GROUP_METADATA = flexible(
    "ConsumerGroupMetadataValue",
    Field("group_epoch", INT32, "epoch"),
    Field("metadata_hash", INT64, "metadataHash", tag=0),
)

PARTITION_METADATA = flexible("ConsumerGroupPartitionMetadataValue", Field("topics", Array(TOPIC_METADATA), "topics"))
PARTITION_METADATA_3_7 = flexible(
    "ConsumerGroupPartitionMetadataValue",
    Field("group_epoch", INT32, "epoch"),
    *PARTITION_METADATA.struct.fields,
)

_MEMBER_FIELDS = (
    Field("group_instance_id", STRING, "instanceId", nullable=True, default=None),
    Field("rack_id", STRING, "rackId", nullable=True, default=None),
    Field("client_id", STRING, "clientId"),
    Field("client_host", STRING, "clientHost"),
    Field("subscribed_topics", Array(STRING), "subscribedTopicNames"),
    Field("subscribed_regex", STRING, "subscribedTopicRegex", nullable=True, default=None),
    Field("rebalance_timeout_ms", INT32, "rebalanceTimeoutMs", default=-1),
    Field("server_assignor", STRING, "serverAssignor", nullable=True, default=None),
)
MEMBER_METADATA = flexible(
    "ConsumerGroupMemberMetadataValue",
    *_MEMBER_FIELDS,
    # Absent: a member that uses the classic protocol, without metadata. Null: a member that uses the consumer protocol.
    Field("classic_member_metadata", CLASSIC_MEMBER_METADATA, "classicMemberMetadata", tag=0, nullable=True),
)
MEMBER_METADATA_3_7 = flexible(
    "ConsumerGroupMemberMetadataValue",
    *_MEMBER_FIELDS,
    Field(
        "assignors",
        Array(
            Struct(
                (
                    Field("name", STRING, "name"),
                    Field("minimum_version", INT16, "minimumVersion"),
                    Field("maximum_version", INT16, "maximumVersion"),
                    Field("reason", INT8, "reason"),
                    Field("version", INT16, "version"),
                    Field("metadata", BYTES, "metadata"),
                )
            )
        ),
        "assignors",
    ),
)

TARGET_ASSIGNMENT_METADATA = flexible(
    "ConsumerGroupTargetAssignmentMetadataValue",
    Field("assignment_epoch", INT32, "assignmentEpoch"),
    Field("assignment_timestamp_ms", INT64, "assignmentTimestamp", tag=0),
)

TARGET_ASSIGNMENT_MEMBER = flexible(
    "ConsumerGroupTargetAssignmentMemberValue",
    Field("topic_partitions", Array(TOPIC_PARTITIONS), "topicPartitions"),
)
TARGET_ASSIGNMENT_MEMBER_3_7 = flexible(
    "ConsumerGroupTargetAssignmentMemberValue",
    Field("error", INT8, "error"),
    Field("topic_partitions", Array(TOPIC_PARTITIONS), "topicPartitions"),
    Field("metadata_version", INT16, "metadataVersion"),
    Field("metadata_bytes", BYTES, "metadataBytes"),
)

CURRENT_MEMBER_ASSIGNMENT = flexible(
    "ConsumerGroupCurrentMemberAssignmentValue",
    Field("member_epoch", INT32, "memberEpoch"),
    Field("previous_member_epoch", INT32, "previousMemberEpoch"),
    Field("member_state", INT8, "state"),
    Field("assigned", Array(TOPIC_PARTITIONS_WITH_EPOCHS), "assignedPartitions"),
    Field("pending_revocation", Array(TOPIC_PARTITIONS_WITH_EPOCHS), "partitionsPendingRevocation"),
)
CURRENT_MEMBER_ASSIGNMENT_3_7 = flexible(
    "ConsumerGroupCurrentMemberAssignmentValue",
    Field("member_epoch", INT32, "memberEpoch"),
    Field("previous_member_epoch", INT32, "previousMemberEpoch"),
    Field("target_member_epoch", INT32, "targetMemberEpoch"),
    Field("assigned", Array(TOPIC_PARTITIONS), "assignedPartitions"),
    Field("pending_revocation", Array(TOPIC_PARTITIONS), "partitionsPendingRevocation"),
    Field("pending_assignment", Array(TOPIC_PARTITIONS), "partitionsPendingAssignment"),
    Field("error", INT8, "error"),
    Field("metadata_version", INT16, "metadataVersion"),
    Field("metadata_bytes", BYTES, "metadataBytes"),
)

REGULAR_EXPRESSION = flexible(
    "ConsumerGroupRegularExpressionValue",
    Field("topics", Array(STRING), "topics"),
    Field("metadata_image_version", INT64, "version"),
    Field("resolved_timestamp_ms", INT64, "timestamp"),
)
