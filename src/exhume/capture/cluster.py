"""Requests to a running cluster. Only this module and `tokens` know the client library.

All requests read: metadata, configurations, offsets, groups and record batches. None of them joins a group, commits or creates a topic.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

import kafka.errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from exhume._version import __version__
from exhume.capture.client_properties import ClientProperties
from exhume.codecs.file_names import OFFSETS_TOPIC
from exhume.codecs.wire import format_uuid
from exhume.errors import EvidenceError

_Answer = TypeVar("_Answer")

#: The largest response to one fetch: it bounds the memory of a capture.
_FETCH_BYTES = 8 * 1024 * 1024
_PARTITION_BYTES = 4 * 1024 * 1024
_MAX_RESPONSE_BYTES = 256 * 1024 * 1024
#: The newest version of Fetch that names topics by name; all releases up to 4.4 answer it.
_FETCH_VERSION = 12
_BROKER_RESOURCE = 4
LATEST, EARLIEST = -1, -2
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
_NAMED_PER_REQUEST = 500

#: Error codes of Kafka that a new look at the metadata, or time, can cure.
RETRIABLE = frozenset({-1, 3, 5, 6, 7, 9, 13, 14, 15, 16, 56, 74, 75, 76, 78, 100, 103})
OUT_OF_RANGE, TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED = 1, 29, 30, 31


class Unreachable(Exception):
    """A broker gave no answer; another attempt may succeed."""


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of one partition; `node_id` is -1 while there is none."""

    node_id: int
    epoch: int
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic of the cluster: its id as Kafka spells it, and its leaders by partition. `error_code` is Kafka's."""

    name: str
    topic_id: str | None
    leaders: Mapping[int, Leader]
    error_code: int


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """Brokers by id, with their racks, and the topics that were asked for."""

    cluster_id: str | None
    brokers: Mapping[int, str]
    racks: Mapping[int, str | None]
    topics: Mapping[str, TopicInfo]


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer of a leader for one partition. `records` are raw batches, of which the last may be cut."""

    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging_offset: int | None
    records: memoryview


class _LastProblem(logging.Handler):
    """Remembers the last failed connection and a refused login: the library writes them to its log, and its errors do not name them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text: str | None = None
        # The attempts after a refused login may run into the time limit, which says less.
        self.refused_login: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        for error in record.args if isinstance(record.args, tuple) else ():
            if isinstance(error, kafka.errors.KafkaError) and not isinstance(error, kafka.errors.KafkaTimeoutError):
                self.text = str(error)
                if isinstance(error, kafka.errors.SaslAuthenticationFailedError | kafka.errors.UnsupportedSaslMechanismError):
                    self.refused_login = error


class Cluster:
    """Connections to the brokers of a cluster. Use it in a `with` statement.

    Args:
        servers: bootstrap servers, `host:port` each.
        properties: security and identity of the client.
        timeout_ms: how long a connection and a request may take.

    Raises:
        EvidenceError: no server answers, or they refuse the client; names the servers and the remedy.
    """

    def __init__(self, servers: Sequence[str], properties: ClientProperties, *, timeout_ms: int = 30_000) -> None:
        self.place = f"kafka://{','.join(servers)}"
        self._servers = list(servers)
        self._properties = properties
        self._timeout_ms = properties.request_timeout_ms or timeout_ms
        self._problem = _LastProblem()
        log = logging.getLogger("kafka")
        # Its log at DEBUG has requests with passwords in them.
        log.setLevel(max(log.getEffectiveLevel(), logging.INFO))
        log.propagate = False
        log.addHandler(self._problem)
        self._answers: queue.SimpleQueue[tuple[int, Any, BaseException | None]] = queue.SimpleQueue()
        self._connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        logging.getLogger("kafka").removeHandler(self._problem)
        self._disconnect()

    def reconnect(self) -> None:
        """Begin again with the bootstrap servers: every broker may have another address by now.

        Raises:
            Unreachable: no server answers.
        """
        self._disconnect()
        try:
            self._connect()
        except EvidenceError as error:
            raise Unreachable(error.message) from None

    def _connect(self) -> None:
        given = self._properties
        self._problem.refused_login = None
        settings: dict[str, Any] = {
            "bootstrap_servers": self._servers,
            "client_id": given.client_id or f"exhume-{__version__}",
            "request_timeout_ms": self._timeout_ms,
            "receive_message_max_bytes": _MAX_RESPONSE_BYTES,
            "reconnect_backoff_max_ms": 2000,
            "security_protocol": given.security_protocol,
            "ssl_context": given.ssl_context,
            "sasl_mechanism": given.mechanism,
        }
        if given.mechanism == "OAUTHBEARER":
            from exhume.capture.tokens import Tokens

            settings["sasl_oauth_token_provider"] = Tokens(given)
        elif given.mechanism is not None:
            settings |= {"sasl_plain_username": given.login["username"], "sasl_plain_password": given.login["password"]}
        self._net = NetworkSelector(**settings)
        self._manager = KafkaConnectionManager(self._net, **settings)
        self._net.start()
        try:
            self._manager.bootstrap(self._timeout_ms)
        except BaseException as error:
            self._disconnect()
            self._refuse(error)

    def _disconnect(self) -> None:
        self._net.call_soon_threadsafe(self._manager.close)
        self._net.stop(timeout_ms=2000)
        self._net.close()

    def _refuse(self, error: BaseException) -> NoReturn:
        error = self._problem.refused_login or error
        if isinstance(error, kafka.errors.SaslAuthenticationFailedError | kafka.errors.AuthorizationError):
            message, remedy = f"the brokers refuse the login: {error}", "Check user name, password and sasl.mechanism in --command-config"
        elif isinstance(error, kafka.errors.UnsupportedSaslMechanismError):
            message, remedy = f"the brokers do not offer this SASL mechanism: {error}", "Check sasl.mechanism in --command-config"
        elif isinstance(error, kafka.errors.KafkaError):
            why = f": {self._problem.text}" if self._problem.text else ""
            message = f"no broker answered within {self._timeout_ms // 1000} s{why}"
            remedy = "Check the addresses, and security.protocol in --command-config (TLS listeners need SSL or SASL_SSL)"
        else:
            raise error
        raise EvidenceError(message, path=self.place, remedy=remedy) from None

    def ask(self, node_id: int | None, request: Any) -> Any:
        """Return the response of this broker, or of any broker.

        Raises:
            Unreachable: no answer in time.
        """
        try:
            return self._manager.run(self._send, node_id, request)
        except (kafka.errors.KafkaError, OSError) as error:
            self._manager.cluster.request_update()
            raise Unreachable(str(error) or type(error).__name__) from None

    async def _send(self, node_id: int | None, request: Any) -> Any:
        wanted = self._manager.least_loaded_node() if node_id is None else node_id
        connection = await self._manager.get_connection(wanted)
        return await connection.send_request(request)

    def has_api(self, request: Any) -> bool:
        """True if the broker knows this kind of request."""
        try:
            self._manager.broker_version_data.api_version(request)
        except kafka.errors.IncompatibleBrokerVersion:
            return False
        return True

    def broker_version(self) -> str | None:
        """The release of the brokers as the versions of their requests show it, such as `4.3`."""
        version = self._manager.broker_version
        return None if version is None else ".".join(map(str, version))

    # Metadata

    def info(self, topics: Iterable[str] | None = ()) -> ClusterInfo:
        """Return the brokers, and these topics; None: all topics that the client may see.

        Raises:
            Unreachable: no answer in time.
        """
        names = sorted(set(topics or ()))
        response = None
        found: dict[str, TopicInfo] = {}
        for start in range(0, max(1, len(names)), _NAMED_PER_REQUEST):
            wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in names[start : start + _NAMED_PER_REQUEST]]
            request = MetadataRequest(
                topics=MetadataRequest.ALL_TOPICS if topics is None else wanted,
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=False,
                include_topic_authorized_operations=False,
            )
            response = self.ask(None, request)
            found |= {topic.name: _topic_info(topic) for topic in response.topics}
        assert response is not None
        return ClusterInfo(
            cluster_id=response.cluster_id,
            brokers={broker.node_id: f"{broker.host}:{broker.port}" for broker in response.brokers},
            racks={broker.node_id: broker.rack for broker in response.brokers},
            topics=found,
        )

    def config(self, node_id: int, name: str) -> str | None:
        """Return a setting of this broker; None if the client may not read it.

        Raises:
            Unreachable: no answer in time.
        """
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=_BROKER_RESOURCE, resource_name=str(node_id), configuration_keys=[name]
        )
        response = self.ask(node_id, DescribeConfigsRequest(resources=[resource], include_synonyms=False, include_documentation=False))
        values = [config.value for result in response.results if not result.error_code for config in result.configs if config.name == name]
        return values[0] if values else None

    def offsets(self, node_id: int, partitions: Mapping[str, Sequence[int]], which: int) -> dict[tuple[str, int], tuple[int, int]]:
        """Return error code and offset of these partitions of one leader: `LATEST` or `EARLIEST`.

        Raises:
            Unreachable: no answer in time.
        """
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=0,
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=number, timestamp=which)
                        for number in numbers
                    ],
                )
                for topic, numbers in partitions.items()
            ],
            timeout_ms=self._timeout_ms,
        )
        response = self.ask(node_id, request)
        return {(topic.name, one.partition_index): (one.error_code, one.offset) for topic in response.topics for one in topic.partitions}

    # Record batches

    def start_fetch(self, node_id: int, wanted: Sequence[tuple[int, int, int]], *, wait_ms: int) -> None:
        """Ask this leader for batches of the offsets topic: (partition, offset, leader epoch of the record before) each.

        The answer comes from `next_answer`.
        """
        partitions = [
            FetchRequest.FetchTopic.FetchPartition(
                partition=number,
                current_leader_epoch=-1,
                fetch_offset=offset,
                last_fetched_epoch=epoch,
                log_start_offset=-1,
                partition_max_bytes=_PARTITION_BYTES,
            )
            for number, offset, epoch in wanted
        ]
        request = FetchRequest(
            max_version=_FETCH_VERSION,
            replica_id=-1,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            isolation_level=0,
            topics=[FetchRequest.FetchTopic(topic=OFFSETS_TOPIC, partitions=partitions)],
        )
        future = self._manager.call_soon(self._send, node_id, request)
        future.add_callback(lambda response: self._answers.put((node_id, response, None)))
        future.add_errback(lambda error: self._answers.put((node_id, None, error)))

    def next_answer(self, timeout_s: float) -> tuple[int, list[Fetched]] | None:
        """Return leader and answers of the next fetch that ends; None if none ends in time.

        The answers are empty where the leader cannot be reached, or refuses the whole request.
        """
        try:
            node_id, response, error = self._answers.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if error is not None:
            if not isinstance(error, kafka.errors.KafkaError | OSError):
                raise error
            self._problem.text = str(error) or type(error).__name__
            self._manager.cluster.request_update()
            return node_id, []
        return node_id, [_fetched(one) for topic in response.responses for one in topic.partitions]

    @property
    def last_problem(self) -> str | None:
        """The last failed connection or request."""
        return self._problem.text


def _topic_info(topic: Any) -> TopicInfo:
    topic_id = None if topic.topic_id is None else format_uuid(topic.topic_id.bytes)
    return TopicInfo(
        name=topic.name,
        topic_id=None if topic_id == _NO_ID else topic_id,
        leaders={
            one.partition_index: Leader(one.leader_id, one.leader_epoch if one.leader_epoch is not None else -1, tuple(one.replica_nodes))
            for one in sorted(topic.partitions, key=lambda one: one.partition_index)
        },
        error_code=topic.error_code,
    )


def _fetched(one: Any) -> Fetched:
    diverging = getattr(one, "diverging_epoch", None)
    end = None if diverging is None or diverging.epoch < 0 else int(diverging.end_offset)
    return Fetched(
        partition=one.partition_index,
        error_code=one.error_code,
        high_watermark=one.high_watermark,
        last_stable_offset=one.last_stable_offset,
        log_start_offset=one.log_start_offset,
        diverging_offset=end,
        records=memoryview(one.records or b""),
    )


def patiently(ask: Callable[[], _Answer], timeout_s: float, place: str) -> _Answer:
    """Return what `ask` returns, after as many attempts as it needs.

    Raises:
        EvidenceError: no attempt within this time succeeded.
    """
    end, pause_s = time.monotonic() + timeout_s, 0.1
    while True:
        try:
            return ask()
        except Unreachable as error:
            if time.monotonic() + pause_s > end:
                remedy = "Check that the brokers run and that this machine reaches the addresses that they advertise"
                raise EvidenceError(f"no answer within {timeout_s:.0f} s: {error}", path=place, remedy=remedy) from None
        time.sleep(pause_s)
        pause_s = min(2.0, pause_s * 2)
