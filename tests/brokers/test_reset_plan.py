"""A plan, given to Kafka's own tool: the positions that a real broker has afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import exhume
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, offset_commit, tombstone
from exhume.topic import OffsetsTopic

from .broker import Broker
from .client import Client, await_loads, create_topics
from .protocol import OFFSET_FETCH
from .stories import TOPIC

pytestmark = pytest.mark.broker

T0_MS = 1_700_000_000_000
#: What a spreadsheet, a shell or a careless reader of CSV would trip over.
ODD_NAMES = ("=1+1", 'say "no"', "a,b", " padded ", "käse", "return\rhere", "tab\there", "#hash", "back\\slash", "-dash", "'quoted'")
TWO_LINES = "two\nlines"
GROUPS = ("pay", TWO_LINES, *ODD_NAMES)
BEYOND = "beyond"


def commit(group: str, offset: int, partition: int = 0) -> KeyValue:
    return offset_commit(group, TOPIC, partition, offset, commit_timestamp_ms=T0_MS, version=1)


def write_log(directory: Path) -> None:
    """Every group stood at 3 and 4 and moved on to 7; the other offset was removed. One had come further than the topic does."""
    with PartitionWriter(directory, 0) as log:
        for group in GROUPS:
            log.append([commit(group, 3), commit(group, 4, 1)])
        log.append([commit(BEYOND, 50)])
        for group in (*GROUPS, BEYOND):
            log.append([commit(group, 7), tombstone(commit(group, 0, 1))])


def fill_topic(broker: Broker, directory: Path) -> None:
    """Give the topic of a stopped broker ten records in each of two partitions."""
    with PartitionWriter(directory, 0) as log:
        log.append([(None, b"bill")] * 10, timestamp_ms=T0_MS)
    for partition in (0, 1):
        for file in log.directory.glob("0*"):
            shutil.copy(file, broker.log_directory / f"{TOPIC}-{partition}")


def apply(broker: Broker, topic: OffsetsTopic, groups: list[str], plan: Path) -> str:
    """Make the plan for the time before all of that, and have Kafka's tool carry it out."""
    made = topic.reset_plan(groups, at_offset=2 * len(GROUPS))
    plan.write_bytes(made.text.encode())
    main = (
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
        if broker.kafka.version >= (3, 9)
        else "kafka.admin.ConsumerGroupCommand"
    )
    asked = ("--bootstrap-server", f"127.0.0.1:{broker.port}", *(f"--group={group}" for group in groups))
    done = broker.kafka.run(main, *asked, "--reset-offsets", "--from-file", plan, "--execute", directory=plan.parent)
    return done.stdout + done.stderr


def positions(client: Client, group: str) -> dict[int, int]:
    fetched = client.call(OFFSET_FETCH, group_id=group, topics=None, require_stable=0)
    return {row["partition_index"]: row["committed_offset"] for topic in fetched["topics"] for row in topic["partitions"]}


@pytest.mark.parametrize("release", ["2.8.2", "4.3.0"])
def test_kafkas_tool_takes_the_plan_and_the_broker_has_its_positions(release: str, tmp_path: Path) -> None:
    write_log(tmp_path / "written")
    with Broker(release, tmp_path, offsets_partitions=1) as broker, exhume.open(tmp_path / "written") as topic:
        broker.start()
        create_topics(broker, TOPIC)
        await_loads(broker)
        broker.stop()
        broker.put([tmp_path / "written" / "__consumer_offsets-0"])
        fill_topic(broker, tmp_path / "filling")
        broker.start()
        await_loads(broker)
        with Client(broker.port) as client:
            assert positions(client, "pay") == {0: 7}

            plans = {"one.csv": ["pay"], "two-lines.csv": [TWO_LINES], "several.csv": [*ODD_NAMES, BEYOND]}
            said = {name: apply(broker, topic, groups, tmp_path / name) for name, groups in plans.items()}
            found = {group: positions(client, group) for group in (*GROUPS, BEYOND)}

    # The tool takes an offset behind the end of a topic for its end.
    assert found == {group: {0: 3, 1: 4} for group in GROUPS} | {BEYOND: {0: 10}}, said
