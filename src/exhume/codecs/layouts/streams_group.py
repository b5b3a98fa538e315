"""Streams groups (KIP-1071): record types 17 and 19 to 23 (18 was dropped before any release).

4.1 wrote types 17, 20 and 22 without the tags that 4.2 and 4.4 added; one layout reads both, because an absent tag has a default.

Source: StreamsGroup*.json, Kafka 4.1 to 4.4.
"""

from __future__ import annotations

from exhume.codecs.layout import INT8, INT16, INT32, INT64, STRING, UINT16, Array, Field, Struct
from exhume.codecs.layouts.consumer_group import flexible

KEY_VALUE = Struct((Field("key", STRING, "key"), Field("value", STRING, "value")))
ENDPOINT = Struct((Field("host", STRING, "host"), Field("port", UINT16, "port")))
TASK = Struct((Field("subtopology_id", STRING, "subtopologyId"), Field("partitions", Array(INT32), "partitions")))
TASK_WITH_EPOCHS = Struct((*TASK.fields, Field("assignment_epochs", Array(INT32), "assignmentEpochs", tag=0, nullable=True)))
TOPIC_INFO = Struct(
    (
        Field("name", STRING, "name"),
        Field("partition_count", INT32, "partitions"),
        Field("replication_factor", INT16, "replicationFactor"),
        Field("topic_configs", Array(KEY_VALUE), "topicConfigs"),
    )
)
COPARTITION_GROUP = Struct(
    (
        Field("source_topics", Array(INT16), "sourceTopics"),
        Field("source_topic_regex", Array(INT16), "sourceTopicRegex"),
        Field("repartition_source_topics", Array(INT16), "repartitionSourceTopics"),
    )
)
SUBTOPOLOGY = Struct(
    (
        Field("subtopology_id", STRING, "subtopologyId"),
        Field("source_topics", Array(STRING), "sourceTopics"),
        Field("source_topic_regex", Array(STRING), "sourceTopicRegex"),
        Field("state_changelog_topics", Array(TOPIC_INFO), "stateChangelogTopics"),
        Field("repartition_sink_topics", Array(STRING), "repartitionSinkTopics"),
        Field("repartition_source_topics", Array(TOPIC_INFO), "repartitionSourceTopics"),
        Field("copartition_groups", Array(COPARTITION_GROUP), "copartitionGroups"),
    )
)

GROUP_METADATA = flexible(
    "StreamsGroupMetadataValue",
    Field("group_epoch", INT32, "epoch"),
    Field("metadata_hash", INT64, "metadataHash"),
    Field("validated_topology_epoch", INT32, "validatedTopologyEpoch", tag=0, default=-1),
    Field("last_assignment_configs", Array(KEY_VALUE), "lastAssignmentConfigs", tag=1, nullable=True),
    Field("stored_description_topology_epoch", INT32, "storedDescriptionTopologyEpoch", tag=2, default=-1),
    Field("failed_description_topology_epoch", INT32, "failedDescriptionTopologyEpoch", tag=3, default=-1),
)

MEMBER_METADATA = flexible(
    "StreamsGroupMemberMetadataValue",
    Field("group_instance_id", STRING, "instanceId", nullable=True, default=None),
    Field("rack_id", STRING, "rackId", nullable=True, default=None),
    Field("client_id", STRING, "clientId"),
    Field("client_host", STRING, "clientHost"),
    Field("rebalance_timeout_ms", INT32, "rebalanceTimeoutMs", default=-1),
    Field("topology_epoch", INT32, "topologyEpoch"),
    Field("process_id", STRING, "processId"),
    Field("user_endpoint", ENDPOINT, "userEndpoint", nullable=True, default=None),
    Field("client_tags", Array(KEY_VALUE), "clientTags"),
)

TARGET_ASSIGNMENT_METADATA = flexible(
    "StreamsGroupTargetAssignmentMetadataValue",
    Field("assignment_epoch", INT32, "assignmentEpoch"),
    Field("assignment_timestamp_ms", INT64, "assignmentTimestamp", tag=0),
)

TARGET_ASSIGNMENT_MEMBER = flexible(
    "StreamsGroupTargetAssignmentMemberValue",
    Field("active_tasks", Array(TASK), "activeTasks"),
    Field("standby_tasks", Array(TASK), "standbyTasks"),
    Field("warmup_tasks", Array(TASK), "warmupTasks"),
)

CURRENT_MEMBER_ASSIGNMENT = flexible(
    "StreamsGroupCurrentMemberAssignmentValue",
    Field("member_epoch", INT32, "memberEpoch"),
    Field("previous_member_epoch", INT32, "previousMemberEpoch"),
    Field("member_state", INT8, "state"),
    Field("active_tasks", Array(TASK_WITH_EPOCHS), "activeTasks"),
    Field("standby_tasks", Array(TASK_WITH_EPOCHS), "standbyTasks"),
    Field("warmup_tasks", Array(TASK_WITH_EPOCHS), "warmupTasks"),
    Field("active_tasks_pending_revocation", Array(TASK_WITH_EPOCHS), "activeTasksPendingRevocation"),
    Field("standby_tasks_pending_revocation", Array(TASK_WITH_EPOCHS), "standbyTasksPendingRevocation"),
    Field("warmup_tasks_pending_revocation", Array(TASK_WITH_EPOCHS), "warmupTasksPendingRevocation"),
)

TOPOLOGY = flexible(
    "StreamsGroupTopologyValue",
    Field("topology_epoch", INT32, "epoch"),
    Field("subtopologies", Array(SUBTOPOLOGY), "subtopologies"),
)
