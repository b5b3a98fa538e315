"""Requests that the client library does not have: the descriptions of groups of the newer types.

Field names are Kafka's own in snake case. A request follows a header of api key, version, correlation id and client id; a response
follows its correlation id. Flexible versions end both headers with a tagged section.

Source: the message schemas of Kafka 4.4.0.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from exhume.codecs.layout import INT8, INT16, INT32, INT64, STRING, UINT16, UUID, Array, Field, Message, Scalar, Struct
from exhume.codecs.wire import Reader, Writer

if TYPE_CHECKING:
    from exhume.capture.cluster import Cluster


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


def api_of(key: int, name: str, versions: range, request: list[Field], response: list[Field], *, flexible_since: int | None = None) -> Api:
    """Return the layouts of a kind of request; `flexible_since` is its first flexible version."""

    def message(suffix: str, fields: list[Field]) -> Message:
        return Message(name + suffix, versions, Struct(tuple(fields)), flexible_since)

    return Api(key, message("Request", request), message("Response", response))


def field_of(name: str, field_type: Scalar | Array | Struct, *, since: int = 0, nullable: bool = False) -> Field:
    """Return a field; `since` is its first version."""
    return Field(name, field_type, name, since=since, nullable=nullable)


def rows_of(name: str, *fields: Field, nullable: bool = False) -> Field:
    """Return an array of structures."""
    return field_of(name, Array(Struct(fields)), nullable=nullable)


def throttle(since: int = 0) -> Field:
    """Return the field of the time for which the broker throttled the client."""
    return field_of("throttle_time_ms", INT32, since=since)


_ERROR = field_of("error_code", INT16)
_ERROR_MESSAGE = field_of("error_message", STRING, nullable=True)
_WITH_OPERATIONS = field_of("include_authorized_operations", INT8)
_OPERATIONS = field_of("authorized_operations", INT32)
_NAMED_TOPIC = (field_of("topic_name", STRING), field_of("partitions", Array(INT32)))
_CLIENT = (field_of("client_id", STRING), field_of("client_host", STRING))
_STATE = field_of("group_state", STRING)

_ASSIGNMENT = Struct(
    (rows_of("topic_partitions", field_of("topic_id", UUID), field_of("topic_name", STRING), field_of("partitions", Array(INT32))),),
)

_GROUP_IDS = [field_of("group_ids", Array(STRING)), _WITH_OPERATIONS]
_MODERN_GROUP = (
    _ERROR,
    _ERROR_MESSAGE,
    field_of("group_id", STRING),
    _STATE,
    field_of("group_epoch", INT32),
    field_of("assignment_epoch", INT32),
)
_RACK = field_of("rack_id", STRING, nullable=True)

CONSUMER_GROUP_DESCRIBE = api_of(
    69,
    "ConsumerGroupDescribe",
    range(2),
    _GROUP_IDS,
    [
        throttle(),
        rows_of(
            "groups",
            *_MODERN_GROUP,
            field_of("assignor_name", STRING),
            rows_of(
                "members",
                field_of("member_id", STRING),
                field_of("instance_id", STRING, nullable=True),
                _RACK,
                field_of("member_epoch", INT32),
                *_CLIENT,
                field_of("subscribed_topic_names", Array(STRING)),
                field_of("subscribed_topic_regex", STRING, nullable=True),
                field_of("assignment", _ASSIGNMENT),
                field_of("target_assignment", _ASSIGNMENT),
                field_of("member_type", INT8, since=1),
            ),
            _OPERATIONS,
        ),
    ],
    flexible_since=0,
)

SHARE_GROUP_DESCRIBE = api_of(
    77,
    "ShareGroupDescribe",
    range(1, 2),
    _GROUP_IDS,
    [
        throttle(),
        rows_of(
            "groups",
            *_MODERN_GROUP,
            field_of("assignor_name", STRING),
            rows_of(
                "members",
                field_of("member_id", STRING),
                _RACK,
                field_of("member_epoch", INT32),
                *_CLIENT,
                field_of("subscribed_topic_names", Array(STRING)),
                field_of("assignment", _ASSIGNMENT),
            ),
            _OPERATIONS,
        ),
    ],
    flexible_since=0,
)

DESCRIBE_SHARE_GROUP_OFFSETS = api_of(
    90,
    "DescribeShareGroupOffsets",
    range(1),
    [rows_of("groups", field_of("group_id", STRING), rows_of("topics", *_NAMED_TOPIC, nullable=True))],
    [
        throttle(),
        rows_of(
            "groups",
            field_of("group_id", STRING),
            rows_of(
                "topics",
                field_of("topic_name", STRING),
                field_of("topic_id", UUID),
                rows_of(
                    "partitions",
                    field_of("partition_index", INT32),
                    field_of("start_offset", INT64),
                    field_of("leader_epoch", INT32),
                    _ERROR,
                    _ERROR_MESSAGE,
                ),
            ),
            _ERROR,
            _ERROR_MESSAGE,
        ),
    ],
    flexible_since=0,
)

_KEY_VALUES = (field_of("key", STRING), field_of("value", STRING))
_TOPIC_INFO = (
    field_of("name", STRING),
    field_of("partitions", INT32),
    field_of("replication_factor", INT16),
    rows_of("topic_configs", *_KEY_VALUES),
)
_TASK_OFFSET = (field_of("subtopology_id", STRING), field_of("partition", INT32), field_of("offset", INT64))
_TASKS = Struct(
    tuple(
        rows_of(name, field_of("subtopology_id", STRING), field_of("partitions", Array(INT32)))
        for name in ("active_tasks", "standby_tasks", "warmup_tasks")
    )
)

STREAMS_GROUP_DESCRIBE = api_of(
    89,
    "StreamsGroupDescribe",
    range(1),
    _GROUP_IDS,
    [
        throttle(),
        rows_of(
            "groups",
            *_MODERN_GROUP,
            field_of(
                "topology",
                Struct(
                    (
                        field_of("epoch", INT32),
                        rows_of(
                            "subtopologies",
                            field_of("subtopology_id", STRING),
                            field_of("source_topics", Array(STRING)),
                            field_of("repartition_sink_topics", Array(STRING)),
                            rows_of("state_changelog_topics", *_TOPIC_INFO),
                            rows_of("repartition_source_topics", *_TOPIC_INFO),
                            nullable=True,
                        ),
                    )
                ),
                nullable=True,
            ),
            rows_of(
                "members",
                field_of("member_id", STRING),
                field_of("member_epoch", INT32),
                field_of("instance_id", STRING, nullable=True),
                _RACK,
                *_CLIENT,
                field_of("topology_epoch", INT32),
                field_of("process_id", STRING),
                field_of("user_endpoint", Struct((field_of("host", STRING), field_of("port", UINT16))), nullable=True),
                rows_of("client_tags", *_KEY_VALUES),
                rows_of("task_offsets", *_TASK_OFFSET),
                rows_of("task_end_offsets", *_TASK_OFFSET),
                field_of("assignment", _TASKS),
                field_of("target_assignment", _TASKS),
                field_of("is_classic", INT8),
            ),
            _OPERATIONS,
        ),
    ],
    flexible_since=0,
)


#: The description of each group type but the classic one.
_DESCRIPTIONS = {"consumer": CONSUMER_GROUP_DESCRIBE, "share": SHARE_GROUP_DESCRIBE, "streams": STREAMS_GROUP_DESCRIBE}


def describe_modern_group(cluster: Cluster, group_type: str, group: str, node_id: int) -> dict[str, Any]:
    """Return the description of a consumer, share or streams group; share groups have their start offsets in `share_offsets`.

    Raises:
        Unreachable: the broker gave no answer.
    """
    api = _DESCRIPTIONS.get(group_type)
    if api is None or not cluster.has_api(Request(api)):
        return {"error_code": 0, "error_message": f"the broker does not describe groups of type {group_type}"}
    answer: dict[str, Any] = cluster.ask(node_id, Request(api, group_ids=[group], include_authorized_operations=0))["groups"][0]
    if group_type == "share" and cluster.has_api(Request(DESCRIBE_SHARE_GROUP_OFFSETS)):
        offsets = cluster.ask(node_id, Request(DESCRIBE_SHARE_GROUP_OFFSETS, groups=[{"group_id": group, "topics": None}]))
        answer["share_offsets"] = offsets["groups"][0]
    return answer


class Request:
    """A request of one of these layouts, in the form that the connections of the client library send."""

    #: The names that the library reads and sets. It chooses the version.
    API_VERSION: int | None = None
    _min_version = _max_version = None

    def __init__(self, api: Api, **fields: Any) -> None:
        self._api = api
        self._fields = fields
        self.API_KEY = api.key
        self.name = api.request.name
        self.min_version, self.max_version = api.versions[0], api.versions[-1]
        self.header: _Header | None = None

    def with_header(self, correlation_id: int, client_id: str) -> None:
        """Take the header of the request."""
        assert self.API_VERSION is not None
        self.header = _Header(self._api, self.API_VERSION, correlation_id, client_id)

    def encode(self, *, framed: bool, header: bool) -> bytes:
        """Return the bytes of the request."""
        assert framed
        assert header
        assert self.header is not None
        writer = Writer()
        self.header.write(writer)
        self._api.request.write(writer, self.header.version, self._fields)
        return struct.pack(">i", len(writer.data)) + writer.data

    def expect_response(self) -> bool:
        """Return True: each of them has a response."""
        return True


@dataclass(frozen=True, slots=True)
class _Header:
    api: Api
    version: int
    correlation_id: int
    client_id: str

    def write(self, writer: Writer) -> None:
        writer.int16(self.api.key)
        writer.int16(self.version)
        writer.int32(self.correlation_id)
        writer.nullable_string(self.client_id)
        if self.api.request.is_flexible(self.version):
            writer.tagged_section([])

    def get_response_class(self) -> _Header:
        return self

    def parse_header(self, stream: IO[bytes]) -> _ResponseHeader:
        found = _ResponseHeader(struct.unpack(">i", stream.read(4))[0])
        if self.api.request.is_flexible(self.version) and stream.read(1) != b"\0":
            raise ValueError("the header of the response has tagged fields")
        return found

    def decode(self, stream: IO[bytes]) -> dict[str, Any]:
        return self.api.response.read(Reader(stream.read()), self.version)


@dataclass(frozen=True, slots=True)
class _ResponseHeader:
    correlation_id: int
