"""Committed offsets: record types 0 and 1.

Source: OffsetCommitKey.json, OffsetCommitValue.json, LegacyOffsetCommitKey.json and LegacyOffsetCommitValue.json, Kafka 0.8.2 to 4.4.
"""

from __future__ import annotations

from exhume.codecs.layout import INT32, INT64, STRING, UUID, Field, Message, Struct

OFFSET_COMMIT_KEY = Struct(
    (
        Field("group", STRING, "group"),
        Field("topic", STRING, "topic"),
        Field("partition", INT32, "partition"),
    )
)

#: The first version with compact forms and tagged fields.
COMMIT_FLEXIBLE_SINCE = 4
#: The first version with the topic id.
TOPIC_ID_SINCE = 4

OFFSET_COMMIT_VALUE = Message(
    "OffsetCommitValue",
    range(5),
    Struct(
        (
            Field("committed_offset", INT64, "offset"),
            # After the offset, not at the end: version 3 put it between offset and metadata.
            Field("leader_epoch", INT32, "leaderEpoch", since=3, default=-1),
            Field("metadata", STRING, "metadata"),
            Field("commit_timestamp_ms", INT64, "commitTimestamp"),
            Field("expire_timestamp_ms", INT64, "expireTimestamp", since=1, until=1, default=-1),
            Field("topic_id", UUID, "topicId", since=TOPIC_ID_SINCE, tag=0),
        )
    ),
    flexible_since=COMMIT_FLEXIBLE_SINCE,
)

LEGACY_OFFSET_COMMIT_VALUE = Message("LegacyOffsetCommitValue", range(1), OFFSET_COMMIT_VALUE.struct)
