"""The layouts of the requests to brokers, in all versions from the lowest to the highest in use.

Field names are Kafka's own in snake case. A request follows a header of api key, version, correlation id and client id; a response
follows its correlation id. Flexible versions end both headers with a tagged section.

Source: the message schemas of Kafka 4.4.0, and for versions that it no longer has those of 2.8.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from exhume.codecs.layout import BYTES, INT8, INT16, INT32, INT64, STRING, UINT16, UUID, Array, Field, Message, Scalar, Struct


@dataclass(frozen=True, slots=True)
class Api:
    """One kind of request, and its response."""

    key: int
    request: Message
    response: Message

    @property
    def versions(self) -> range:
        """The known versions."""
        return self.request.versions


def _api(key: int, name: str, versions: range, request: list[Field], response: list[Field], *, flexible_since: int | None = None) -> Api:
    def message(suffix: str, fields: list[Field]) -> Message:
        return Message(name + suffix, versions, Struct(tuple(fields)), flexible_since)

    return Api(key, message("Request", request), message("Response", response))


def _field(name: str, field_type: Scalar | Array | Struct, *, since: int = 0, nullable: bool = False) -> Field:
    return Field(name, field_type, name, since=since, nullable=nullable)


def _rows(name: str, *fields: Field, nullable: bool = False) -> Field:
    return _field(name, Array(Struct(fields)), nullable=nullable)


def _throttle(since: int = 0) -> Field:
    return _field("throttle_time_ms", INT32, since=since)


_ERROR = _field("error_code", INT16)
_ERROR_MESSAGE = _field("error_message", STRING, nullable=True)
_WITH_OPERATIONS = _field("include_authorized_operations", INT8)
_OPERATIONS = _field("authorized_operations", INT32)
_PARTITION = _field("partition_index", INT32)
_NAMED_PARTITIONS = (_field("name", STRING), _field("partition_indexes", Array(INT32)))
_NAMED_TOPIC = (_field("topic_name", STRING), _field("partitions", Array(INT32)))
_CLIENT = (_field("client_id", STRING), _field("client_host", STRING))
_STATE = _field("group_state", STRING)

API_VERSIONS = _api(
    18,
    "ApiVersions",
    range(1),
    [],
    [_ERROR, _rows("api_keys", _field("api_key", INT16), _field("min_version", INT16), _field("max_version", INT16))],
)

METADATA = _api(
    3,
    "Metadata",
    range(2, 5),
    [_field("topics", Array(STRING), nullable=True), _field("allow_auto_topic_creation", INT8, since=4)],
    [
        _throttle(3),
        _rows("brokers", _field("node_id", INT32), _field("host", STRING), _field("port", INT32), _field("rack", STRING, nullable=True)),
        _field("cluster_id", STRING, nullable=True),
        _field("controller_id", INT32),
        _rows(
            "topics",
            _ERROR,
            _field("name", STRING),
            _field("is_internal", INT8),
            _rows(
                "partitions",
                _ERROR,
                _PARTITION,
                _field("leader_id", INT32),
                _field("replica_nodes", Array(INT32)),
                _field("isr_nodes", Array(INT32)),
            ),
        ),
    ],
)

OFFSET_FETCH = _api(
    9,
    "OffsetFetch",
    range(2, 8),
    # No topics (null) means all offsets of the group.
    [_field("group_id", STRING), _rows("topics", *_NAMED_PARTITIONS, nullable=True), _field("require_stable", INT8, since=7)],
    [
        _throttle(3),
        _rows(
            "topics",
            _field("name", STRING),
            _rows(
                "partitions",
                _PARTITION,
                _field("committed_offset", INT64),
                _field("committed_leader_epoch", INT32, since=5),
                _field("metadata", STRING, nullable=True),
                _ERROR,
            ),
        ),
        _ERROR,
    ],
    flexible_since=6,
)

FIND_COORDINATOR = _api(
    10,
    "FindCoordinator",
    range(1),
    [_field("key", STRING)],
    [_ERROR, _field("node_id", INT32), _field("host", STRING), _field("port", INT32)],
)

HEARTBEAT = _api(
    12,
    "Heartbeat",
    range(1),
    [_field("group_id", STRING), _field("generation_id", INT32), _field("member_id", STRING)],
    [_ERROR],
)

DESCRIBE_GROUPS = _api(
    15,
    "DescribeGroups",
    range(5),
    [_field("groups", Array(STRING)), _field("include_authorized_operations", INT8, since=3)],
    [
        _throttle(1),
        _rows(
            "groups",
            _ERROR,
            _field("group_id", STRING),
            _STATE,
            _field("protocol_type", STRING),
            _field("protocol_data", STRING),
            _rows(
                "members",
                _field("member_id", STRING),
                _field("group_instance_id", STRING, since=4, nullable=True),
                *_CLIENT,
                _field("member_metadata", BYTES),
                _field("member_assignment", BYTES),
            ),
            _field("authorized_operations", INT32, since=3),
        ),
    ],
)

LIST_GROUPS = _api(
    16,
    "ListGroups",
    range(6),
    [_field("states_filter", Array(STRING), since=4), _field("types_filter", Array(STRING), since=5)],
    [
        _throttle(1),
        _ERROR,
        _rows(
            "groups",
            _field("group_id", STRING),
            _field("protocol_type", STRING),
            _field("group_state", STRING, since=4),
            _field("group_type", STRING, since=5),
        ),
    ],
    flexible_since=3,
)

DESCRIBE_PRODUCERS = _api(
    61,
    "DescribeProducers",
    range(1),
    [_rows("topics", *_NAMED_PARTITIONS)],
    [
        _throttle(),
        _rows(
            "topics",
            _field("name", STRING),
            _rows(
                "partitions",
                _PARTITION,
                _ERROR,
                _ERROR_MESSAGE,
                _rows(
                    "active_producers",
                    _field("producer_id", INT64),
                    _field("producer_epoch", INT32),
                    _field("last_sequence", INT32),
                    _field("last_timestamp", INT64),
                    _field("coordinator_epoch", INT32),
                    _field("current_txn_start_offset", INT64),
                ),
            ),
        ),
    ],
    flexible_since=0,
)

_ASSIGNMENT = Struct(
    (_rows("topic_partitions", _field("topic_id", UUID), _field("topic_name", STRING), _field("partitions", Array(INT32))),),
)

_GROUP_IDS = [_field("group_ids", Array(STRING)), _WITH_OPERATIONS]
_MODERN_GROUP = (
    _ERROR,
    _ERROR_MESSAGE,
    _field("group_id", STRING),
    _STATE,
    _field("group_epoch", INT32),
    _field("assignment_epoch", INT32),
)
_RACK = _field("rack_id", STRING, nullable=True)

CONSUMER_GROUP_DESCRIBE = _api(
    69,
    "ConsumerGroupDescribe",
    range(2),
    _GROUP_IDS,
    [
        _throttle(),
        _rows(
            "groups",
            *_MODERN_GROUP,
            _field("assignor_name", STRING),
            _rows(
                "members",
                _field("member_id", STRING),
                _field("instance_id", STRING, nullable=True),
                _RACK,
                _field("member_epoch", INT32),
                *_CLIENT,
                _field("subscribed_topic_names", Array(STRING)),
                _field("subscribed_topic_regex", STRING, nullable=True),
                _field("assignment", _ASSIGNMENT),
                _field("target_assignment", _ASSIGNMENT),
                _field("member_type", INT8, since=1),
            ),
            _OPERATIONS,
        ),
    ],
    flexible_since=0,
)

SHARE_GROUP_DESCRIBE = _api(
    77,
    "ShareGroupDescribe",
    range(1, 2),
    _GROUP_IDS,
    [
        _throttle(),
        _rows(
            "groups",
            *_MODERN_GROUP,
            _field("assignor_name", STRING),
            _rows(
                "members",
                _field("member_id", STRING),
                _RACK,
                _field("member_epoch", INT32),
                *_CLIENT,
                _field("subscribed_topic_names", Array(STRING)),
                _field("assignment", _ASSIGNMENT),
            ),
            _OPERATIONS,
        ),
    ],
    flexible_since=0,
)

DESCRIBE_SHARE_GROUP_OFFSETS = _api(
    90,
    "DescribeShareGroupOffsets",
    range(1),
    [_rows("groups", _field("group_id", STRING), _rows("topics", *_NAMED_TOPIC, nullable=True))],
    [
        _throttle(),
        _rows(
            "groups",
            _field("group_id", STRING),
            _rows(
                "topics",
                _field("topic_name", STRING),
                _field("topic_id", UUID),
                _rows("partitions", _PARTITION, _field("start_offset", INT64), _field("leader_epoch", INT32), _ERROR, _ERROR_MESSAGE),
            ),
            _ERROR,
            _ERROR_MESSAGE,
        ),
    ],
    flexible_since=0,
)

_KEY_VALUES = (_field("key", STRING), _field("value", STRING))
_TOPIC_INFO = (
    _field("name", STRING),
    _field("partitions", INT32),
    _field("replication_factor", INT16),
    _rows("topic_configs", *_KEY_VALUES),
)
_TASK_OFFSET = (_field("subtopology_id", STRING), _field("partition", INT32), _field("offset", INT64))
_TASKS = Struct(
    tuple(
        _rows(name, _field("subtopology_id", STRING), _field("partitions", Array(INT32)))
        for name in ("active_tasks", "standby_tasks", "warmup_tasks")
    )
)

STREAMS_GROUP_DESCRIBE = _api(
    89,
    "StreamsGroupDescribe",
    range(1),
    _GROUP_IDS,
    [
        _throttle(),
        _rows(
            "groups",
            *_MODERN_GROUP,
            _field(
                "topology",
                Struct(
                    (
                        _field("epoch", INT32),
                        _rows(
                            "subtopologies",
                            _field("subtopology_id", STRING),
                            _field("source_topics", Array(STRING)),
                            _field("repartition_sink_topics", Array(STRING)),
                            _rows("state_changelog_topics", *_TOPIC_INFO),
                            _rows("repartition_source_topics", *_TOPIC_INFO),
                            nullable=True,
                        ),
                    )
                ),
                nullable=True,
            ),
            _rows(
                "members",
                _field("member_id", STRING),
                _field("member_epoch", INT32),
                _field("instance_id", STRING, nullable=True),
                _RACK,
                *_CLIENT,
                _field("topology_epoch", INT32),
                _field("process_id", STRING),
                _field("user_endpoint", Struct((_field("host", STRING), _field("port", UINT16))), nullable=True),
                _rows("client_tags", *_KEY_VALUES),
                _rows("task_offsets", *_TASK_OFFSET),
                _rows("task_end_offsets", *_TASK_OFFSET),
                _field("assignment", _TASKS),
                _field("target_assignment", _TASKS),
                _field("is_classic", INT8),
            ),
            _OPERATIONS,
        ),
    ],
    flexible_since=0,
)
