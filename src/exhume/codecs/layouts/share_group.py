"""Share groups (KIP-932): record types 9 to 15.

4.1 added an ordinary field to type 11, and the first field to type 15, under the same version 0. Type 9 had another meaning in 3.9 and
no longer exists since 4.1.

Source: ShareGroup*.json, Kafka 3.9, 4.0 and 4.1 to 4.4.
"""

from __future__ import annotations

from exhume.codecs.layout import INT8, INT32, INT64, STRING, UUID, Array, Field, Struct
from exhume.codecs.layouts.consumer_group import TOPIC_METADATA, TOPIC_PARTITIONS, flexible

TOPIC_ID_AND_NAME = Struct((Field("topic_id", UUID, "topicId"), Field("topic", STRING, "topicName")))
SHARE_TOPIC = Struct((*TOPIC_ID_AND_NAME.fields, Field("partitions", Array(INT32), "partitions")))

PARTITION_METADATA_4_0 = flexible("ShareGroupPartitionMetadataValue", Field("topics", Array(TOPIC_METADATA), "topics"))
PARTITION_METADATA_3_9 = flexible(
    "ShareGroupPartitionMetadataValue",
    Field("initialized", Array(SHARE_TOPIC), "initializedTopics"),
    Field("deleting", Array(TOPIC_ID_AND_NAME), "deletingTopics"),
)

MEMBER_METADATA = flexible(
    "ShareGroupMemberMetadataValue",
    Field("rack_id", STRING, "rackId", nullable=True, default=None),
    Field("client_id", STRING, "clientId"),
    Field("client_host", STRING, "clientHost"),
    Field("subscribed_topics", Array(STRING), "subscribedTopicNames"),
)

GROUP_METADATA = flexible(
    "ShareGroupMetadataValue",
    Field("group_epoch", INT32, "epoch"),
    # An ordinary field; type 3 has a tagged field of the same name.
    Field("metadata_hash", INT64, "metadataHash"),
)
GROUP_METADATA_4_0 = flexible("ShareGroupMetadataValue", Field("group_epoch", INT32, "epoch"))

TARGET_ASSIGNMENT_METADATA = flexible(
    "ShareGroupTargetAssignmentMetadataValue",
    Field("assignment_epoch", INT32, "assignmentEpoch"),
    Field("assignment_timestamp_ms", INT64, "assignmentTimestamp", tag=0),
)

TARGET_ASSIGNMENT_MEMBER = flexible(
    "ShareGroupTargetAssignmentMemberValue",
    Field("topic_partitions", Array(TOPIC_PARTITIONS), "topicPartitions"),
)

CURRENT_MEMBER_ASSIGNMENT = flexible(
    "ShareGroupCurrentMemberAssignmentValue",
    Field("member_epoch", INT32, "memberEpoch"),
    Field("previous_member_epoch", INT32, "previousMemberEpoch"),
    Field("member_state", INT8, "state"),
    Field("assigned", Array(TOPIC_PARTITIONS), "assignedPartitions"),
)

STATE_PARTITION_METADATA = flexible(
    "ShareGroupStatePartitionMetadataValue",
    Field("initializing", Array(SHARE_TOPIC), "initializingTopics"),
    Field("initialized", Array(SHARE_TOPIC), "initializedTopics"),
    Field("deleting", Array(TOPIC_ID_AND_NAME), "deletingTopics"),
)
STATE_PARTITION_METADATA_4_0 = flexible("ShareGroupStatePartitionMetadataValue", *STATE_PARTITION_METADATA.struct.fields[1:])
