"""A client that commits offsets on a broker while a test goes on."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kafka import KafkaAdminClient, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError

ROOT = Path(__file__).resolve().parents[2]
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
    """Commits for all groups, round after round, until the end of the `with` block; errors of a broker that restarts are skipped.

    It is a process of its own: the client leaves connections open that failed.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._process: subprocess.Popen[str] | None = None

    def wait_for(self, rounds: int) -> None:
        """Return after so many more rounds."""
        assert self._process is not None
        assert self._process.stdout is not None
        for _ in range(rounds):
            assert self._process.stdout.readline()

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.brokers.committing", self._server]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.communicate()


def main(server: str) -> None:
    """Commit until the process is killed, and print a line after each round."""
    number = 0
    while True:
        for group in GROUPS:
            try:
                commit(server, group, 10, first=10 * number)
            except KafkaError:
                time.sleep(0.5)
        number += 1
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
