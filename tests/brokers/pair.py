"""Two brokers in one cluster, with both replicas of each partition of the offsets topic."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from exhume.codecs.file_names import OFFSETS_TOPIC

from .broker import Broker, Controller
from .client import Client
from .protocol import METADATA

_SETTINGS = {
    "offsets.topic.replication.factor": 2,
    "default.replication.factor": 2,
    "min.insync.replicas": 1,
    # A replica that is away leaves the in-sync replicas soon.
    "replica.lag.time.max.ms": 2000,
    "zookeeper.session.timeout.ms": 3000,
    "auto.leader.rebalance.enable": "false",
    "unclean.leader.election.enable": "true",
    "group.initial.rebalance.delay.ms": 0,
}


class Pair:
    """The brokers 1 and 2, and their controller, which keeps running. Use it in a `with` statement."""

    def __init__(self, release: str, directory: Path, *, offsets_partitions: int) -> None:
        self._stack = ExitStack()
        for name in ("controller", "1", "2"):
            (directory / name).mkdir()
        controller = Controller(release, directory / "controller", settings=_SETTINGS)
        self.brokers: dict[int, Broker] = {}
        for node_id in (1, 2):
            place = directory / str(node_id)
            self.brokers[node_id] = Broker(
                release, place, offsets_partitions=offsets_partitions, settings=_SETTINGS, node_id=node_id, joins=controller
            )
        self._members = [controller, *self.brokers.values()]
        self.servers = ",".join(map(self.server, self.brokers))

    def server(self, node_id: int) -> str:
        """The address of this broker."""
        return f"127.0.0.1:{self.brokers[node_id].port}"

    def __enter__(self) -> Self:
        with self._stack as stack:
            for member in self._members:
                stack.enter_context(member)
                member.start()
            self.brokers[1].wait_until(lambda: len(self._metadata()["brokers"]) == 2, "two brokers in the cluster")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def wait_for_leaders(self, nodes: set[int], *, in_sync: int) -> None:
        """Return once the leaders of the offsets partitions are these brokers and each partition has so many in-sync replicas."""

        def is_so() -> bool:
            (topic,) = self._metadata()["topics"]
            partitions = topic["partitions"]
            return {one["leader_id"] for one in partitions} == nodes and all(len(one["isr_nodes"]) == in_sync for one in partitions)

        self._running().wait_until(is_so, f"leaders {nodes}, {in_sync} in sync")

    def _metadata(self) -> dict[str, Any]:
        with Client(self._running().port) as client:
            return client.call(METADATA, topics=[OFFSETS_TOPIC], allow_auto_topic_creation=0)

    def _running(self) -> Broker:
        return next(broker for broker in self.brokers.values() if broker.is_running)
