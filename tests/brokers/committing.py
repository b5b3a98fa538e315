"""A client that commits offsets on a broker while a test goes on."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Self

from kafka import KafkaAdminClient, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from tests.patience import PATIENCE_SECONDS

GROUPS = ("billing", "audit", "x y", "gäste", "returns", "checkout")
PARTITIONS = 3


def create_topic(server: str, topic: str = "orders", *, replicas: int = 1) -> None:
    admin = KafkaAdminClient(bootstrap_servers=server)
    try:
        admin.create_topics([NewTopic(topic, PARTITIONS, replicas)])
    finally:
        admin.close()


def commit(server: str, group: str, rounds: int, *, first: int = 0, topic: str = "orders") -> None:
    """Commit `rounds` times for each partition of the topic."""
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer: Any = KafkaConsumer(bootstrap_servers=server, group_id=group, enable_auto_commit=False)
    try:
        consumer.assign(places)
        for offset in range(first, first + rounds):
            consumer.commit(dict.fromkeys(places, OffsetAndMetadata(offset, "", -1)))
    finally:
        consumer.close()


class Committer:
    """Commits for all groups, round after round, until the end of the `with` block; errors of a broker that restarts are skipped."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.rounds = 0

    def _run(self) -> None:
        while not self._ended.is_set():
            for group in GROUPS:
                try:
                    commit(self._server, group, 10, first=10 * self.rounds)
                except KafkaError:
                    time.sleep(0.5)
            self.rounds += 1

    def wait_for(self, rounds: int) -> None:
        """Return after so many more rounds."""
        end, wanted = time.monotonic() + PATIENCE_SECONDS, self.rounds + rounds
        while self.rounds < wanted:
            assert time.monotonic() < end
            time.sleep(0.05)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
