"""Real brokers fence the last member of the consumer protocol at the end of a load, and make its group classic if they can."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.codecs.embedded import encode_subscription
from exhume.codecs.record_types import encode_key, encode_value
from exhume.fixtures.log_writer import KeyValue, PartitionWriter
from exhume.replay.reading import LoadInputs

from .broker import Broker
from .client import Client, answers, await_loads, create_topics
from .loading import questions_of
from .stories import TOPIC

pytestmark = pytest.mark.broker

HALF_AN_HOUR_MS = 1_800_000
LARGEST = 3
SUBSCRIPTION = encode_subscription(1, {"topics": [TOPIC]})
CONSUMER, CLASSIC, STAYS = "consumer without n", "classic without n", "consumer with n"

#: Metadata of the other members by protocol, None for one of the consumer protocol; more fields of theirs; the outcome from 4.3 on, and
#: that of 4.0 to 4.2 if it differs. "targets" False: they have no target assignment.
GROUPS: dict[str, tuple[list[dict[str, bytes] | None], dict[str, Any], str, str]] = {
    "two": ([{"range": SUBSCRIPTION}] * 2, {}, CLASSIC, CLASSIC),
    "no-target": ([{"range": SUBSCRIPTION}], {"targets": False}, CLASSIC, STAYS),
    "only-version": ([{"range": b"\0\1"}], {}, CLASSIC, CLASSIC),
    "no-version": ([{"range": b"\0"}], {}, STAYS, STAYS),
    "negative-version": ([{"range": b"\xff\xfb" + SUBSCRIPTION[2:]}], {}, STAYS, STAYS),
    "no-protocol": ([{}], {}, STAYS, STAYS),
    "no-common-protocol": ([{"range": SUBSCRIPTION}, {"sticky": SUBSCRIPTION}], {}, STAYS, STAYS),
    "one-instance": ([{"range": SUBSCRIPTION}] * 2, {"group_instance_id": "i"}, STAYS, STAYS),
    "other-protocol": ([{"range": SUBSCRIPTION}, None], {}, CONSUMER, CONSUMER),
    "too-many": ([{"range": SUBSCRIPTION}] * (LARGEST + 1), {}, CONSUMER, CONSUMER),
}


def write_groups(directory: Path, topic_id: str) -> list[Path]:
    with PartitionWriter(directory, 0) as log:
        for name, (others, fields, _, _) in GROUPS.items():
            log.append([*_group(name, others, topic_id, **fields)])
    return [log.directory]


def _group(name: str, others: list[dict[str, bytes] | None], topic_id: str, *, targets: bool = True, **fields: Any) -> Iterator[KeyValue]:
    def record(number: int, value: dict[str, Any], member_id: str = "") -> KeyValue:
        return encode_key(number, {"group": name, "member_id": member_id}), encode_value(number, 0, value)

    member = {"client_id": "c", "client_host": "/h", "subscribed_topics": [TOPIC], "server_assignor": "uniform"}
    yield record(5, {**member, "rebalance_timeout_ms": 0, "classic_member_metadata": None}, "n")
    yield record(3, {"group_epoch": 5})
    for number, protocols in enumerate(others):
        classic = None
        if protocols is not None:
            supported = [{"name": protocol, "metadata": metadata} for protocol, metadata in protocols.items()]
            classic = {"session_timeout_ms": HALF_AN_HOUR_MS, "supported_protocols": supported}
        value = {**member, **fields, "rebalance_timeout_ms": HALF_AN_HOUR_MS, "classic_member_metadata": classic}
        yield record(5, value, f"other-{number}")
        if targets:
            yield record(7, {"topic_partitions": []}, f"other-{number}")
    yield record(6, {"assignment_epoch": 5})
    held = [{"topic_id": topic_id, "partitions": [0]}]
    yield record(8, {"member_epoch": 5, "previous_member_epoch": 4, "member_state": 1, "assigned": [], "pending_revocation": held}, "n")


def _outcome(group_type: str, members: set[str]) -> str:
    return f"{group_type} {'with' if 'n' in members else 'without'} n"


def _told(answer: dict[str, Any]) -> dict[str, str]:
    """The outcome for each group by a broker: a group without an answer is absent."""
    told = {}
    for name, said in answer["groups"].items():
        (described,) = (said.get("consumer_describe") or said["describe"])["groups"]
        told[name] = _outcome(said["listed"]["group_type"], {member["member_id"] for member in described["members"]})
    return told


@pytest.mark.parametrize("coordinator", ["3.9.1-new", "4.0.0", "4.3.0", "4.4.0"])
def test_a_broker_fences_the_last_member_of_the_consumer_protocol_and_its_group_becomes_classic(coordinator: str, tmp_path: Path) -> None:
    with Broker(coordinator, tmp_path, offsets_partitions=1, settings={"group.max.size": LARGEST}) as broker:
        broker.start()
        create_topics(broker, TOPIC)
        await_loads(broker)
        broker.stop()
        broker.put(write_groups(tmp_path / "written", broker.topic_id(TOPIC)))
        with exhume.open(broker.log_directory) as topic:
            state = topic.state(release=coordinator, inputs=LoadInputs(group_max_size=LARGEST))
            questions = questions_of(topic)
        members = {name: {row["member_id"] for row in state.members.to_pylist() if row["group"] == name} for name in GROUPS}
        ours = {row["group"]: _outcome(row["group_type"], members[row["group"]]) for row in state.groups.to_pylist()}
        broker.start()
        await_loads(broker)
        with Client(broker.port) as client:
            # The load sets the timers, which end one after another.
            broker.wait_until(lambda: _told(answers(client, broker, questions)) == ours, "fencing members as exhume computes it")
            answer = answers(client, broker, questions)
        broker.stop()
        with exhume.open(broker.log_directory) as topic:
            written = topic.state(release=coordinator, inputs=LoadInputs(group_max_size=LARGEST)).groups.to_pylist()

    expected = {name: later if broker.kafka.version >= (4, 3) else earlier for name, (_, _, later, earlier) in GROUPS.items()}
    assert ours == (expected if broker.kafka.version >= (4,) else dict.fromkeys(GROUPS, CONSUMER))
    state_of = {row["group"]: row["group_state"] for row in state.groups.to_pylist() if row["group_type"] == "classic"}
    assert state_of == {name: answer["groups"][name]["listed"]["group_state"] for name in state_of}
    # The broker wrote the classic groups with the generation that exhume computed.
    generations = {row["group"]: row["generation"] for row in state.groups.to_pylist() if row["group_type"] == "classic"}
    assert generations == {row["group"]: row["generation"] for row in written if row["group_type"] == "classic"}
