"""A small protocol client that reads the state of a broker.

It asks in the newest version that both sides know, as every client does. `answers` puts everything together in the form that
`tests.judges.broker_answers` reads: responses with Kafka's own field names, errors by name, bytes in hexadecimal.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import count
from types import TracebackType
from typing import Any, Self

from exhume.capture.messages import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    SHARE_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
    Api,
)
from exhume.codecs.offsets_topic import offsets_partition_of
from exhume.codecs.wire import Reader, Writer
from tests.judges.broker_answers import FAILED_LOAD, LATE_ERROR
from tests.patience import PATIENCE_SECONDS

from .broker import Broker
from .protocol import (
    API_VERSIONS,
    DESCRIBE_GROUPS,
    DESCRIBE_PRODUCERS,
    FIND_COORDINATOR,
    HEARTBEAT,
    LIST_GROUPS,
    METADATA,
    OFFSET_FETCH,
)

ERRORS = {
    -1: "unknown_server_error",
    0: "none",
    14: "coordinator_load_in_progress",
    15: "coordinator_not_available",
    16: "not_coordinator",
    22: "illegal_generation",
    25: "unknown_member_id",
    69: "group_id_not_found",
    88: "unstable_offset_commit",
}
_NOT_LOADED = {"coordinator_load_in_progress", "coordinator_not_available", "not_coordinator"}

#: (topic, partition)
TopicPartition = tuple[str, int]


class Client:
    """A connection to the broker on this port of the loopback. Use it in a `with` statement."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)
        self._correlation_id = 0
        try:
            known = self._call(API_VERSIONS, 0, {})["api_keys"]
        except BaseException:
            self._socket.close()
            raise
        self._newest: dict[int, int] = {row["api_key"]: row["max_version"] for row in known}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._socket.close()

    def version(self, api: Api) -> int:
        """Return the version to use with this broker; -1 if it does not know the request."""
        return min(self._newest.get(api.key, -1), api.versions[-1])

    def call(self, api: Api, **request: Any) -> dict[str, Any]:
        """Return the response to this request, with error codes as names. Fields that its version lacks are left out."""
        return self._call(api, self.version(api), request)

    def _call(self, api: Api, version: int, request: Mapping[str, Any]) -> dict[str, Any]:
        self._correlation_id += 1
        is_flexible = api.request.is_flexible(version)
        writer = Writer()
        writer.int16(api.key)
        writer.int16(version)
        writer.int32(self._correlation_id)
        writer.nullable_string("exhume")
        if is_flexible:
            writer.tagged_section([])
        api.request.write(writer, version, request)
        self._socket.sendall(struct.pack(">i", len(writer.data)) + writer.data)
        reader = Reader(self._receive(struct.unpack(">i", self._receive(4))[0]))
        assert reader.int32() == self._correlation_id
        if is_flexible:
            reader.tagged_section()
        response = api.response.read(reader, version)
        assert not reader.remaining, f"{reader.remaining} bytes after {api.response.name}"
        _name_errors(response)
        return response

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return data


def _name_errors(value: object) -> None:
    if isinstance(value, dict):
        if "error_code" in value:
            value["error_code"] = ERRORS.get(value["error_code"], f"error {value['error_code']}")
        for item in value.values():
            _name_errors(item)
    elif isinstance(value, list):
        for item in value:
            _name_errors(item)


def create_topics(broker: Broker, *topics: str) -> None:
    """Create these topics and the offsets topic on a running broker, and wait until it leads them."""

    def is_led() -> bool:
        with Client(broker.port) as client:
            coordinator = client.call(FIND_COORDINATOR, key="any")
            found = client.call(METADATA, topics=[*topics, "__consumer_offsets"], allow_auto_topic_creation=1)["topics"]
        led = [one["error_code"] == "none" and all(partition["leader_id"] == 1 for partition in one["partitions"]) for one in found]
        return coordinator["error_code"] == "none" and all(led)

    broker.wait_until(is_led, f"creating {', '.join(topics)} and __consumer_offsets")


def await_loads(broker: Broker) -> None:
    """Wait until every offsets partition is loaded or its load has failed."""
    partitions = broker.offsets_partitions
    probes = {partition: group_in(partition, partitions, "probe") for partition in range(partitions)}

    def is_over() -> bool:
        failed = {int(match[1]) for match in map(FAILED_LOAD.search, _error_lines(broker)) if match}
        waiting = [probe for partition, probe in probes.items() if partition not in failed]
        with Client(broker.port) as client:
            described = client.call(DESCRIBE_GROUPS, groups=waiting)["groups"]
        return all(group["error_code"] not in _NOT_LOADED for group in described)

    broker.wait_until(is_over, "loading the offsets partitions")


def group_in(offsets_partition: int, offsets_partitions: int, name: str) -> str:
    """Return a group id that begins with `name` and belongs to this offsets partition."""
    assert offsets_partition < offsets_partitions
    names = (f"{name}-{number}" for number in count())
    return next(group for group in names if offsets_partition_of(group, offsets_partitions) == offsets_partition)


def _error_lines(broker: Broker) -> list[str]:
    """Return the log lines of the broker about loads that failed or ended in an error."""
    text = broker.output.read_text(encoding="utf-8", errors="replace")
    return [line for line in text.splitlines() if FAILED_LOAD.search(line) or LATE_ERROR.search(line)]


@dataclass(slots=True)
class Question:
    """The questions about one group that a broker answers only on request.

    Partitions with pending offsets only appear only on request, and a generation shows only in heartbeats.
    """

    partitions: set[TopicPartition] = field(default_factory=set)
    generations: set[int] = field(default_factory=set)


def answers(client: Client, broker: Broker, questions: Mapping[str, Question]) -> dict[str, Any]:
    """Return all that a broker answers about its groups, with those of `questions` even if it does not list them."""
    listing = client.call(LIST_GROUPS, states_filter=[], types_filter=[])
    listed = {group["group_id"]: group for group in listing["groups"]}
    groups = {
        group: _group(client, group, listed.get(group), questions.get(group, Question()).partitions)
        for group in sorted({*listed, *questions})
    }
    answer = {
        "version": broker.kafka.release,
        "coordinator": "new" if broker.is_java else "classic",
        "list_error": listing["error_code"],
        "log_lines": _error_lines(broker),
        "groups": groups,
        "probe": {group: {"generation": _generation(client, group, groups[group], question)} for group, question in questions.items()},
    }
    if client.version(DESCRIBE_PRODUCERS) >= 0:
        partitions = list(range(broker.offsets_partitions))
        answer["producers"] = client.call(DESCRIBE_PRODUCERS, topics=[{"name": "__consumer_offsets", "partition_indexes": partitions}])
    return answer


#: The key and the request of the description of each group type. All other groups are described as classic.
_DESCRIPTIONS = {
    "consumer": ("consumer_describe", CONSUMER_GROUP_DESCRIBE),
    "share": ("share_describe", SHARE_GROUP_DESCRIBE),
    "streams": ("streams_describe", STREAMS_GROUP_DESCRIBE),
}


def _group(client: Client, group: str, listed: dict[str, Any] | None, asked: Collection[TopicPartition]) -> dict[str, Any]:
    answer: dict[str, Any] = {"listed": listed}
    group_type = (listed or {}).get("group_type")
    if group_type in _DESCRIPTIONS:
        name, api = _DESCRIPTIONS[group_type]
        # Previews of a group type list the groups of a log, and do not describe them.
        if client.version(api) in api.versions:
            answer[name] = client.call(api, group_ids=[group], include_authorized_operations=0)
    else:
        answer["describe"] = client.call(DESCRIBE_GROUPS, groups=[group], include_authorized_operations=0)
        for member in answer["describe"]["groups"][0]["members"]:
            for name in ("member_metadata", "member_assignment"):
                member[name] = member[name].hex()
    if group_type == "share":
        if client.version(DESCRIBE_SHARE_GROUP_OFFSETS) >= 0:
            answer["share_offsets"] = client.call(DESCRIBE_SHARE_GROUP_OFFSETS, groups=[{"group_id": group, "topics": None}])
        return answer
    answer["offsets"] = _offsets(client, group, None, require_stable=0)
    if client.version(OFFSET_FETCH) >= 7:
        answer["offsets_stable"] = _offsets(client, group, None, require_stable=1)
        by_name = _offsets(client, group, asked, require_stable=1)["offsets"]
        found = {(row["topic"], row["partition_index"]) for row in answer["offsets_stable"]["offsets"]}
        answer["offsets_stable"]["offsets"] += [
            row for row in by_name if row["error_code"] == "unstable_offset_commit" and (row["topic"], row["partition_index"]) not in found
        ]
    return answer


def _offsets(client: Client, group: str, asked: Collection[TopicPartition] | None, *, require_stable: int) -> dict[str, Any]:
    topics: list[dict[str, Any]] | None = None
    if asked is not None:
        names = sorted({topic for topic, _ in asked})
        topics = [{"name": name, "partition_indexes": [partition for topic, partition in asked if topic == name]} for name in names]
    fetched = client.call(OFFSET_FETCH, group_id=group, topics=topics, require_stable=require_stable)
    rows = [{"topic": topic["name"]} | partition for topic in fetched["topics"] for partition in topic["partitions"]]
    return {"error_code": fetched["error_code"], "offsets": rows}


def _generation(client: Client, group: str, answer: Mapping[str, Any], question: Question) -> int | None:
    """Return the generation of a stable classic group: the one whose heartbeats its coordinator accepts. None for other groups.

    Those of `question` are tried, and the neighbours of each, which must be refused.
    """
    if "describe" not in answer or answer["describe"]["groups"][0]["group_state"] != "Stable":
        return None
    member_id = answer["describe"]["groups"][0]["members"][0]["member_id"]
    tried = sorted({generation + step for generation in question.generations for step in (-1, 0, 1)})
    taken = [
        generation
        for generation in tried
        if client.call(HEARTBEAT, group_id=group, generation_id=generation, member_id=member_id)["error_code"] == "none"
    ]
    assert len(taken) <= 1, f"group {group!r}: heartbeats of the generations {taken} are all taken"
    return taken[0] if taken else None
