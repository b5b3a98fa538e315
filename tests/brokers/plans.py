"""Carry out reset plans with Kafka's own tool."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from exhume.fixtures.log_writer import PartitionWriter

from .broker import Broker
from .client import Client
from .protocol import OFFSET_FETCH


def fill_topic(broker: Broker, topic: str, partitions: Sequence[int], records: int, *, timestamp_ms: int, directory: Path) -> None:
    """Write this many records to these partitions of a stopped broker. `directory` is for temporary files."""
    with PartitionWriter(directory, 0) as log:
        log.append([(None, b"bill")] * records, timestamp_ms=timestamp_ms)
    for partition in partitions:
        for file in log.directory.glob("0*"):
            shutil.copy(file, broker.log_directory / f"{topic}-{partition}")


def carry_out(broker: Broker, groups: Sequence[str], plan: Path) -> str:
    """Carry out this plan for these groups with Kafka's tool, and return its output."""
    main = (
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
        if broker.kafka.version >= (3, 9)
        else "kafka.admin.ConsumerGroupCommand"
    )
    asked = ("--bootstrap-server", f"127.0.0.1:{broker.port}", *(f"--group={group}" for group in groups))
    done = broker.kafka.run(main, *asked, "--reset-offsets", "--from-file", plan, "--execute", directory=plan.parent)
    return done.stdout + done.stderr


def positions(client: Client, group: str) -> dict[tuple[str, int], int]:
    """Return all committed offsets of this group from a broker, by topic and partition."""
    fetched = client.call(OFFSET_FETCH, group_id=group, topics=None, require_stable=0)
    return {(topic["name"], row["partition_index"]): row["committed_offset"] for topic in fetched["topics"] for row in topic["partitions"]}
