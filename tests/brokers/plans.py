"""Reset plans, carried out by Kafka's own tool."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from exhume.fixtures.log_writer import PartitionWriter

from .broker import Broker
from .client import Client
from .protocol import OFFSET_FETCH


def fill_topic(broker: Broker, topic: str, partitions: Sequence[int], records: int, *, timestamp_ms: int, directory: Path) -> None:
    """Give these partitions of a topic of a stopped broker so many records; `directory` is for writing them."""
    with PartitionWriter(directory, 0) as log:
        log.append([(None, b"bill")] * records, timestamp_ms=timestamp_ms)
    for partition in partitions:
        for file in log.directory.glob("0*"):
            shutil.copy(file, broker.log_directory / f"{topic}-{partition}")


def carry_out(broker: Broker, groups: Sequence[str], plan: Path) -> str:
    """Have Kafka's tool carry out this plan for these groups; what comes back is what it said."""
    main = (
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
        if broker.kafka.version >= (3, 9)
        else "kafka.admin.ConsumerGroupCommand"
    )
    asked = ("--bootstrap-server", f"127.0.0.1:{broker.port}", *(f"--group={group}" for group in groups))
    done = broker.kafka.run(main, *asked, "--reset-offsets", "--from-file", plan, "--execute", directory=plan.parent)
    return done.stdout + done.stderr


def positions(client: Client, group: str) -> dict[tuple[str, int], int]:
    """What a broker answers for all offsets of this group, by topic and partition."""
    fetched = client.call(OFFSET_FETCH, group_id=group, topics=None, require_stable=0)
    return {(topic["name"], row["partition_index"]): row["committed_offset"] for topic in fetched["topics"] for row in topic["partitions"]}
