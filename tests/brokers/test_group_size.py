"""A real broker loads a group with more members than `group.max.size`."""

from __future__ import annotations

from pathlib import Path

import pytest

import exhume
from exhume.codecs.embedded import encode_assignment, encode_subscription
from exhume.fixtures.log_writer import PartitionWriter, group_metadata
from exhume.replay.reading import LoadInputs

from .broker import Broker
from .client import Client, answers, await_loads, create_topics
from .stories import TOPIC

pytestmark = pytest.mark.broker

HALF_AN_HOUR_MS = 1_800_000


def member(member_id: str) -> dict[str, object]:
    return {
        "member_id": member_id,
        "client_id": "app",
        "client_host": "/127.0.0.1",
        "rebalance_timeout_ms": HALF_AN_HOUR_MS,
        "session_timeout_ms": HALF_AN_HOUR_MS,
        "subscription": encode_subscription(1, {"topics": [TOPIC], "owned_partitions": []}),
        "assignment": encode_assignment(1, {"assigned_partitions": [{"topic": TOPIC, "partitions": [0]}]}),
    }


def write_groups(directory: Path) -> list[Path]:
    with PartitionWriter(directory, 0) as log:
        for name, size in (("just-right", 1), ("oversized", 2)):
            members = [member(f"{name}-{number}") for number in range(size)]
            value = {
                "protocol_type": "consumer",
                "generation": 4,
                "protocol": "range",
                "leader": f"{name}-0",
                "current_state_timestamp_ms": 1_700_000_000_000,
                "members": members,
            }
            log.append([group_metadata(name, value)])
    return [log.directory]


@pytest.mark.parametrize("release", ["2.8.2", "4.4.0"])
def test_a_broker_begins_a_rebalance_of_a_group_that_is_loaded_with_too_many_members(release: str, tmp_path: Path) -> None:
    with Broker(release, tmp_path, offsets_partitions=1, settings={"group.max.size": 1}) as broker:
        broker.start()
        create_topics(broker, TOPIC)
        await_loads(broker)
        broker.stop()
        broker.put(write_groups(tmp_path / "written"))
        with exhume.open(broker.log_directory) as topic:
            state = topic.state(release=release, inputs=LoadInputs(group_max_size=1))
        broker.start()
        await_loads(broker)
        with Client(broker.port) as client:
            answer = answers(client, broker, {})

    ours = {row["group"]: row["group_state"] for row in state.groups.to_pylist()}
    assert ours == {"just-right": "Stable", "oversized": "PreparingRebalance"}
    assert ours == {name: said["listed"]["group_state"] for name, said in answer["groups"].items()}
    described = {name: said["describe"]["groups"][0] for name, said in answer["groups"].items()}
    assert ours == {name: group["group_state"] for name, group in described.items()}
    members = {(row["group"], row["member_id"]) for row in state.members.to_pylist()}
    assert members == {(name, member["member_id"]) for name, group in described.items() for member in group["members"]}
