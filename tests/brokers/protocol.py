"""The requests that we ask brokers with, as layouts: one version of each, or one for old brokers and one for new.

Field names are Kafka's own in snake case. A request goes out behind a header of api key, version, correlation id and client id; a response
comes back behind its correlation id. Flexible versions end both headers with a tagged section.

Source: the message schemas of Kafka 2.8.2 and 4.3.0.
"""

from __future__ import annotations

from dataclasses import dataclass

from exhume.codecs.layout import BYTES, INT8, INT16, INT32, INT64, STRING, UUID, Array, Field, Message, Scalar, Struct


@dataclass(frozen=True, slots=True)
class Api:
    """One kind of request and its response. `versions` are those that are laid out here, `flexible_since` may lie beyond them."""

    key: int
    name: str
    versions: range
    flexible_since: int
    request: Message
    response: Message


def _api(key: int, name: str, versions: range, flexible_since: int, request: Struct, response: Struct) -> Api:
    def message(suffix: str, struct: Struct) -> Message:
        return Message(f"{name}{suffix}", versions, struct, flexible_since)

    return Api(key, name, versions, flexible_since, message("Request", request), message("Response", response))


def _field(name: str, field_type: Scalar | Array | Struct, *, since: int = 0, nullable: bool = False) -> Field:
    return Field(name, field_type, name, since=since, nullable=nullable)


def _struct(*fields: Field) -> Struct:
    return Struct(fields)


_ERROR = _field("error_code", INT16)
_THROTTLE = _field("throttle_time_ms", INT32)
_WITH_OPERATIONS = _field("include_authorized_operations", INT8)
_OPERATIONS = _field("authorized_operations", INT32)

METADATA = _api(
    3,
    "Metadata",
    range(4, 5),
    9,
    _struct(_field("topics", Array(STRING), nullable=True), _field("allow_auto_topic_creation", INT8)),
    _struct(
        _THROTTLE,
        _field(
            "brokers",
            Array(_struct(_field("node_id", INT32), _field("host", STRING), _field("port", INT32), _field("rack", STRING, nullable=True))),
        ),
        _field("cluster_id", STRING, nullable=True),
        _field("controller_id", INT32),
        _field(
            "topics",
            Array(
                _struct(
                    _ERROR,
                    _field("name", STRING),
                    _field("is_internal", INT8),
                    _field(
                        "partitions",
                        Array(
                            _struct(
                                _ERROR,
                                _field("partition_index", INT32),
                                _field("leader_id", INT32),
                                _field("replica_nodes", Array(INT32)),
                                _field("isr_nodes", Array(INT32)),
                            )
                        ),
                    ),
                )
            ),
        ),
    ),
)

OFFSET_FETCH = _api(
    9,
    "OffsetFetch",
    range(7, 8),
    6,
    _struct(
        _field("group_id", STRING),
        # Null asks for every offset of the group.
        _field("topics", Array(_struct(_field("name", STRING), _field("partition_indexes", Array(INT32)))), nullable=True),
        _field("require_stable", INT8),
    ),
    _struct(
        _THROTTLE,
        _field(
            "topics",
            Array(
                _struct(
                    _field("name", STRING),
                    _field(
                        "partitions",
                        Array(
                            _struct(
                                _field("partition_index", INT32),
                                _field("committed_offset", INT64),
                                _field("committed_leader_epoch", INT32),
                                _field("metadata", STRING, nullable=True),
                                _ERROR,
                            )
                        ),
                    ),
                )
            ),
        ),
        _ERROR,
    ),
)

FIND_COORDINATOR = _api(
    10,
    "FindCoordinator",
    range(1),
    3,
    _struct(_field("key", STRING)),
    _struct(_ERROR, _field("node_id", INT32), _field("host", STRING), _field("port", INT32)),
)

HEARTBEAT = _api(
    12,
    "Heartbeat",
    range(1),
    4,
    _struct(_field("group_id", STRING), _field("generation_id", INT32), _field("member_id", STRING)),
    _struct(_ERROR),
)

DESCRIBE_GROUPS = _api(
    15,
    "DescribeGroups",
    range(4, 5),
    5,
    _struct(_field("groups", Array(STRING)), _WITH_OPERATIONS),
    _struct(
        _THROTTLE,
        _field(
            "groups",
            Array(
                _struct(
                    _ERROR,
                    _field("group_id", STRING),
                    _field("group_state", STRING),
                    _field("protocol_type", STRING),
                    _field("protocol_data", STRING),
                    _field(
                        "members",
                        Array(
                            _struct(
                                _field("member_id", STRING),
                                _field("group_instance_id", STRING, nullable=True),
                                _field("client_id", STRING),
                                _field("client_host", STRING),
                                _field("member_metadata", BYTES),
                                _field("member_assignment", BYTES),
                            )
                        ),
                    ),
                    _OPERATIONS,
                )
            ),
        ),
    ),
)

LIST_GROUPS = _api(
    16,
    "ListGroups",
    range(4, 6),
    3,
    _struct(_field("states_filter", Array(STRING)), _field("types_filter", Array(STRING), since=5)),
    _struct(
        _THROTTLE,
        _ERROR,
        _field(
            "groups",
            Array(
                _struct(
                    _field("group_id", STRING),
                    _field("protocol_type", STRING),
                    _field("group_state", STRING),
                    _field("group_type", STRING, since=5),
                )
            ),
        ),
    ),
)

DESCRIBE_PRODUCERS = _api(
    61,
    "DescribeProducers",
    range(1),
    0,
    _struct(_field("topics", Array(_struct(_field("name", STRING), _field("partition_indexes", Array(INT32)))))),
    _struct(
        _THROTTLE,
        _field(
            "topics",
            Array(
                _struct(
                    _field("name", STRING),
                    _field(
                        "partitions",
                        Array(
                            _struct(
                                _field("partition_index", INT32),
                                _ERROR,
                                _field("error_message", STRING, nullable=True),
                                _field(
                                    "active_producers",
                                    Array(
                                        _struct(
                                            _field("producer_id", INT64),
                                            _field("producer_epoch", INT32),
                                            _field("last_sequence", INT32),
                                            _field("last_timestamp", INT64),
                                            _field("coordinator_epoch", INT32),
                                            _field("current_txn_start_offset", INT64),
                                        )
                                    ),
                                ),
                            )
                        ),
                    ),
                )
            ),
        ),
    ),
)

_ASSIGNMENT = _struct(
    _field(
        "topic_partitions", Array(_struct(_field("topic_id", UUID), _field("topic_name", STRING), _field("partitions", Array(INT32))))
    )
)

CONSUMER_GROUP_DESCRIBE = _api(
    69,
    "ConsumerGroupDescribe",
    range(1, 2),
    0,
    _struct(_field("group_ids", Array(STRING)), _WITH_OPERATIONS),
    _struct(
        _THROTTLE,
        _field(
            "groups",
            Array(
                _struct(
                    _ERROR,
                    _field("error_message", STRING, nullable=True),
                    _field("group_id", STRING),
                    _field("group_state", STRING),
                    _field("group_epoch", INT32),
                    _field("assignment_epoch", INT32),
                    _field("assignor_name", STRING),
                    _field(
                        "members",
                        Array(
                            _struct(
                                _field("member_id", STRING),
                                _field("instance_id", STRING, nullable=True),
                                _field("rack_id", STRING, nullable=True),
                                _field("member_epoch", INT32),
                                _field("client_id", STRING),
                                _field("client_host", STRING),
                                _field("subscribed_topic_names", Array(STRING)),
                                _field("subscribed_topic_regex", STRING, nullable=True),
                                _field("assignment", _ASSIGNMENT),
                                _field("target_assignment", _ASSIGNMENT),
                                _field("member_type", INT8),
                            )
                        ),
                    ),
                    _OPERATIONS,
                )
            ),
        ),
    ),
)
