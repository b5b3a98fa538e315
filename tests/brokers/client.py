"""A raw protocol client, enough to ask a broker of our own what it holds.

`answers` puts everything together in the form that `tests.judges.broker_answers` reads: responses with Kafka's own field names, errors by
name, bytes in hexadecimal.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Any, Self

from exhume.codecs.wire import Reader, Writer
from tests.judges.broker_answers import offsets_partition_of

from .kafka import Broker
from .protocol import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    DESCRIBE_PRODUCERS,
    FIND_COORDINATOR,
    HEARTBEAT,
    LIST_GROUPS,
    METADATA,
    OFFSET_FETCH,
    Api,
)

ERRORS = {
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
#: How both coordinators log that a load failed, with the offsets partition.
_FAILED_LOAD = re.compile(r"(?:Error loading offsets from|Failed to load metadata from) \[?__consumer_offsets-(\d+)")
_ANSWER_SECONDS = 30

#: (topic, partition)
TopicPartition = tuple[str, int]


class Client:
    """A connection to the broker on this port of the loopback. Use it in a `with` statement."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), _ANSWER_SECONDS)
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._socket.close()

    def call(self, api: Api, **request: Any) -> dict[str, Any]:
        """The response to this request, of the newest version that `api` has."""
        return self.call_version(api, api.request.versions[-1], **request)

    def call_version(self, api: Api, version: int, **request: Any) -> dict[str, Any]:
        """The response to this request of this version; every `error_code` by its name."""
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
        assert not reader.remaining, f"{reader.remaining} bytes behind {api.response.name}"
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


def create_topic(broker: Broker, topic: str) -> None:
    """Make a running broker create this topic, and the offsets topic beside it; wait until it leads them."""

    def is_led() -> bool:
        with Client(broker.port) as client:
            coordinator = client.call(FIND_COORDINATOR, key="any")
            found = client.call(METADATA, topics=[topic, "__consumer_offsets"], allow_auto_topic_creation=1)["topics"]
        led = [one["error_code"] == "none" and all(partition["leader_id"] == 1 for partition in one["partitions"]) for one in found]
        return coordinator["error_code"] == "none" and all(led)

    broker.wait_until(is_led, f"creating {topic} and __consumer_offsets")


def await_loads(broker: Broker, offsets_partitions: int) -> None:
    """Wait until every offsets partition is loaded or its load has failed."""
    probes = {partition: group_in(partition, offsets_partitions, "probe") for partition in range(offsets_partitions)}

    def is_over() -> bool:
        failed = {int(match[1]) for match in map(_FAILED_LOAD.search, failure_lines(broker)) if match}
        with Client(broker.port) as client:
            waiting = [probe for partition, probe in probes.items() if partition not in failed]
            described = client.call(DESCRIBE_GROUPS, groups=waiting)["groups"]
        return all(group["error_code"] not in _NOT_LOADED for group in described)

    broker.wait_until(is_over, "loading the offsets partitions")


def group_in(offsets_partition: int, offsets_partitions: int, name: str) -> str:
    """A group id that begins with `name` and that coordinators look for in this offsets partition."""
    names = (f"{name}-{number}" for number in range(1000))
    return next(group for group in names if offsets_partition_of(group, offsets_partitions) == offsets_partition)


def failure_lines(broker: Broker) -> list[str]:
    """What the broker logged about loads that failed."""
    text = broker.output.read_text(encoding="utf-8", errors="replace")
    return [line for line in text.splitlines() if _FAILED_LOAD.search(line)]


def answers(client: Client, broker: Broker, offsets_partitions: int, asked: Mapping[str, Collection[TopicPartition]]) -> dict[str, Any]:
    """Everything that a broker tells of its groups, those of `asked` whether it lists them or not.

    `asked` maps groups to the partitions whose offsets are also asked for by name: that alone shows offsets that are pending and
    nothing else.
    """
    knows_types = broker.kafka.version >= (3, 8)
    listing = client.call_version(LIST_GROUPS, 5 if knows_types else 4, states_filter=[], types_filter=[])
    listed = {group["group_id"]: group for group in listing["groups"]}
    partitions = list(range(offsets_partitions))
    return {
        "version": broker.kafka.release,
        "list_error": listing["error_code"],
        "log_lines": failure_lines(broker),
        "groups": {group: _group(client, group, listed.get(group), asked.get(group, ())) for group in sorted({*listed, *asked})},
        "producers": client.call(DESCRIBE_PRODUCERS, topics=[{"name": "__consumer_offsets", "partition_indexes": partitions}]),
    }


def _group(client: Client, group: str, listed: dict[str, Any] | None, asked: Collection[TopicPartition]) -> dict[str, Any]:
    answer: dict[str, Any] = {"listed": listed}
    if listed is not None and listed.get("group_type") == "consumer":
        answer["consumer_describe"] = client.call(CONSUMER_GROUP_DESCRIBE, group_ids=[group], include_authorized_operations=0)
    else:
        answer["describe"] = client.call(DESCRIBE_GROUPS, groups=[group], include_authorized_operations=0)
        for member in answer["describe"]["groups"][0]["members"]:
            for name in ("member_metadata", "member_assignment"):
                member[name] = member[name].hex()
    answer["offsets"] = _offsets(client, group, None, require_stable=0)
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


def heartbeat(client: Client, group: str, generation: int, member_id: str) -> str:
    """What the coordinator says to a member of this generation: `none`, `illegal_generation`, …"""
    error: str = client.call(HEARTBEAT, group_id=group, generation_id=generation, member_id=member_id)["error_code"]
    return error
