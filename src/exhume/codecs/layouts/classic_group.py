"""Classic group metadata: record type 2.

Source: GroupMetadataKey.json and GroupMetadataValue.json, Kafka 0.9 to 4.4.
"""

from __future__ import annotations

from exhume.codecs.layout import BYTES, INT32, INT64, STRING, Array, Field, Message, Struct

#: The first version with compact forms and tagged fields.
GROUP_FLEXIBLE_SINCE = 4
#: The first version with the time since when the group has been in its state.
STATE_TIMESTAMP_SINCE = 2

GROUP_METADATA_KEY = Struct((Field("group", STRING, "group"),))

MEMBER = Struct(
    (
        Field("member_id", STRING, "memberId"),
        Field("group_instance_id", STRING, "groupInstanceId", since=3, nullable=True, default=None),
        Field("client_id", STRING, "clientId"),
        Field("client_host", STRING, "clientHost"),
        Field("rebalance_timeout_ms", INT32, "rebalanceTimeout", since=1, default=-1),
        Field("session_timeout_ms", INT32, "sessionTimeout"),
        Field("subscription", BYTES, "subscription"),
        Field("assignment", BYTES, "assignment"),
    )
)

GROUP_METADATA_VALUE = Message(
    "GroupMetadataValue",
    range(5),
    Struct(
        (
            Field("protocol_type", STRING, "protocolType"),
            Field("generation", INT32, "generation"),
            Field("protocol", STRING, "protocol", nullable=True, default=None),
            Field("leader", STRING, "leader", nullable=True, default=None),
            Field("current_state_timestamp_ms", INT64, "currentStateTimestamp", since=STATE_TIMESTAMP_SINCE, default=-1),
            Field("members", Array(MEMBER), "members"),
        )
    ),
    flexible_since=GROUP_FLEXIBLE_SINCE,
)
