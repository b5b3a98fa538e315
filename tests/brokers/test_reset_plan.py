"""Kafka's tool carries out a plan, and a real broker has its offsets afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

import exhume
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, offset_commit, tombstone
from exhume.topic import OffsetsTopic

from .broker import Broker
from .client import Client, await_loads, create_topics
from .plans import carry_out, fill_topic, positions
from .stories import TOPIC

pytestmark = pytest.mark.broker

T0_MS = 1_700_000_000_000
#: Names that a spreadsheet, a shell or a simple reader of CSV reads wrong.
UNUSUAL_NAMES = ("=1+1", 'say "no"', "a,b", " padded ", "käse", "return\rhere", "tab\there", "#hash", "back\\slash", "-dash", "'quoted'")
TWO_LINES = "two\nlines"
GROUPS = ("pay", TWO_LINES, *UNUSUAL_NAMES)
BEYOND = "beyond"


def commit(group: str, offset: int, partition: int = 0) -> KeyValue:
    return offset_commit(group, TOPIC, partition, offset, commit_timestamp_ms=T0_MS, version=1)


def write_log(directory: Path) -> None:
    """Each group was at 3 and 4 and went on to 7. The other offset was removed. One group was beyond the end of the topic."""
    with PartitionWriter(directory, 0) as log:
        for group in GROUPS:
            log.append([commit(group, 3), commit(group, 4, 1)])
        log.append([commit(BEYOND, 50)])
        for group in (*GROUPS, BEYOND):
            log.append([commit(group, 7), tombstone(commit(group, 0, 1))])


def apply(broker: Broker, topic: OffsetsTopic, groups: list[str], plan: Path) -> str:
    """Make the plan for the time before that, and carry it out with Kafka's tool."""
    plan.write_bytes(topic.reset_plan(groups, at_offset=2 * len(GROUPS)).text.encode())
    return carry_out(broker, groups, plan)


# The tools of 4.4.0 are not on Maven Central.
@pytest.mark.parametrize("release", ["2.8.2", "4.3.0"])
def test_kafkas_tool_takes_the_plan_and_the_broker_has_its_positions(release: str, tmp_path: Path) -> None:
    write_log(tmp_path / "written")
    with Broker(release, tmp_path, offsets_partitions=1) as broker, exhume.open(tmp_path / "written") as topic:
        broker.start()
        create_topics(broker, TOPIC)
        await_loads(broker)
        broker.stop()
        broker.put([tmp_path / "written" / "__consumer_offsets-0"])
        fill_topic(broker, TOPIC, (0, 1), 10, timestamp_ms=T0_MS, directory=tmp_path / "filling")
        broker.start()
        await_loads(broker)
        with Client(broker.port) as client:
            assert positions(client, "pay") == {(TOPIC, 0): 7}

            plans = {"one.csv": ["pay"], "two-lines.csv": [TWO_LINES], "several.csv": [*UNUSUAL_NAMES, BEYOND]}
            said = {name: apply(broker, topic, groups, tmp_path / name) for name, groups in plans.items()}
            found = {group: positions(client, group) for group in (*GROUPS, BEYOND)}

    # The tool replaces an offset beyond the end of a topic with the end.
    assert found == {group: {(TOPIC, 0): 3, (TOPIC, 1): 4} for group in GROUPS} | {BEYOND: {(TOPIC, 0): 10}}, said
