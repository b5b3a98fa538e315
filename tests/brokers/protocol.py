"""The layouts of the other requests to brokers, in all versions from the lowest to the highest in use.

Field names are Kafka's own in snake case. A request follows a header of api key, version, correlation id and client id; a response
follows its correlation id. Flexible versions end both headers with a tagged section.

Source: the message schemas of Kafka 4.4.0, and for versions that it no longer has those of 2.8.2.
"""

from __future__ import annotations

from exhume.capture.messages import (
    api_of,
    field_of,
    rows_of,
    throttle,
)
from exhume.codecs.layout import BYTES, INT8, INT16, INT32, INT64, STRING, Array

_ERROR = field_of("error_code", INT16)
_ERROR_MESSAGE = field_of("error_message", STRING, nullable=True)
_WITH_OPERATIONS = field_of("include_authorized_operations", INT8)
_OPERATIONS = field_of("authorized_operations", INT32)
_PARTITION = field_of("partition_index", INT32)
_NAMED_PARTITIONS = (field_of("name", STRING), field_of("partition_indexes", Array(INT32)))
_NAMED_TOPIC = (field_of("topic_name", STRING), field_of("partitions", Array(INT32)))
_CLIENT = (field_of("client_id", STRING), field_of("client_host", STRING))
_STATE = field_of("group_state", STRING)

API_VERSIONS = api_of(
    18,
    "ApiVersions",
    range(1),
    [],
    [_ERROR, rows_of("api_keys", field_of("api_key", INT16), field_of("min_version", INT16), field_of("max_version", INT16))],
)

METADATA = api_of(
    3,
    "Metadata",
    range(2, 5),
    [field_of("topics", Array(STRING), nullable=True), field_of("allow_auto_topic_creation", INT8, since=4)],
    [
        throttle(3),
        rows_of(
            "brokers",
            field_of("node_id", INT32),
            field_of("host", STRING),
            field_of("port", INT32),
            field_of("rack", STRING, nullable=True),
        ),
        field_of("cluster_id", STRING, nullable=True),
        field_of("controller_id", INT32),
        rows_of(
            "topics",
            _ERROR,
            field_of("name", STRING),
            field_of("is_internal", INT8),
            rows_of(
                "partitions",
                _ERROR,
                _PARTITION,
                field_of("leader_id", INT32),
                field_of("replica_nodes", Array(INT32)),
                field_of("isr_nodes", Array(INT32)),
            ),
        ),
    ],
)

OFFSET_FETCH = api_of(
    9,
    "OffsetFetch",
    range(2, 8),
    # No topics (null) means all offsets of the group.
    [field_of("group_id", STRING), rows_of("topics", *_NAMED_PARTITIONS, nullable=True), field_of("require_stable", INT8, since=7)],
    [
        throttle(3),
        rows_of(
            "topics",
            field_of("name", STRING),
            rows_of(
                "partitions",
                _PARTITION,
                field_of("committed_offset", INT64),
                field_of("committed_leader_epoch", INT32, since=5),
                field_of("metadata", STRING, nullable=True),
                _ERROR,
            ),
        ),
        _ERROR,
    ],
    flexible_since=6,
)

FIND_COORDINATOR = api_of(
    10,
    "FindCoordinator",
    range(1),
    [field_of("key", STRING)],
    [_ERROR, field_of("node_id", INT32), field_of("host", STRING), field_of("port", INT32)],
)

HEARTBEAT = api_of(
    12,
    "Heartbeat",
    range(1),
    [field_of("group_id", STRING), field_of("generation_id", INT32), field_of("member_id", STRING)],
    [_ERROR],
)

DESCRIBE_GROUPS = api_of(
    15,
    "DescribeGroups",
    range(5),
    [field_of("groups", Array(STRING)), field_of("include_authorized_operations", INT8, since=3)],
    [
        throttle(1),
        rows_of(
            "groups",
            _ERROR,
            field_of("group_id", STRING),
            _STATE,
            field_of("protocol_type", STRING),
            field_of("protocol_data", STRING),
            rows_of(
                "members",
                field_of("member_id", STRING),
                field_of("group_instance_id", STRING, since=4, nullable=True),
                *_CLIENT,
                field_of("member_metadata", BYTES),
                field_of("member_assignment", BYTES),
            ),
            field_of("authorized_operations", INT32, since=3),
        ),
    ],
)

LIST_GROUPS = api_of(
    16,
    "ListGroups",
    range(6),
    [field_of("states_filter", Array(STRING), since=4), field_of("types_filter", Array(STRING), since=5)],
    [
        throttle(1),
        _ERROR,
        rows_of(
            "groups",
            field_of("group_id", STRING),
            field_of("protocol_type", STRING),
            field_of("group_state", STRING, since=4),
            field_of("group_type", STRING, since=5),
        ),
    ],
    flexible_since=3,
)

DESCRIBE_PRODUCERS = api_of(
    61,
    "DescribeProducers",
    range(1),
    [rows_of("topics", *_NAMED_PARTITIONS)],
    [
        throttle(),
        rows_of(
            "topics",
            field_of("name", STRING),
            rows_of(
                "partitions",
                _PARTITION,
                _ERROR,
                _ERROR_MESSAGE,
                rows_of(
                    "active_producers",
                    field_of("producer_id", INT64),
                    field_of("producer_epoch", INT32),
                    field_of("last_sequence", INT32),
                    field_of("last_timestamp", INT64),
                    field_of("coordinator_epoch", INT32),
                    field_of("current_txn_start_offset", INT64),
                ),
            ),
        ),
    ],
    flexible_since=0,
)
