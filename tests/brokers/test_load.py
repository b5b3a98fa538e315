"""Real brokers load a log that we wrote, and hold what we say they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.replay.state import CoordinatorState
from tests.conftest import Compared
from tests.judges.broker_answers import Expectation, read_answers
from tests.judges.state_comparison import compare_state

from .client import Client, answers, await_loads, create_topics, fetched_offsets, heartbeat
from .kafka import RELEASES, Broker, installed
from .stories import OFFSETS_PARTITIONS, TOPIC, UNKNOWN_VERSION, Stories, group, write_stories

pytestmark = pytest.mark.broker


@dataclass(frozen=True, slots=True)
class Loaded:
    """One release that has loaded the stories: what was written, what we say of it, and what the broker said."""

    release: str
    stories: Stories
    batches: list[dict[str, Any]]
    state: CoordinatorState
    expectation: Expectation
    failed_loads: set[int]
    #: By group of the partition that cannot be loaded: how many offsets are given out, or the error.
    not_loaded: dict[str, str | int]
    #: (group, member id, beats behind the generation of our state) -> the coordinator's word.
    heartbeats: dict[tuple[str, str, int], str]


@pytest.fixture(scope="module", params=RELEASES)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    kafka = installed(request.param)
    directory = tmp_path_factory.mktemp(f"broker-{kafka.release}")
    has_consumer_groups = kafka.version >= (4,)
    with Broker(kafka, directory, offsets_partitions=OFFSETS_PARTITIONS) as broker:
        broker.start()
        create_topics(broker, TOPIC)
        await_loads(broker, OFFSETS_PARTITIONS)
        broker.stop()
        stories = write_stories(
            directory / "written",
            newest_version=4 if has_consumer_groups else 3,
            topic_id=broker.topic_id(TOPIC) if has_consumer_groups else None,
        )
        broker.put(sorted(stories.directory.iterdir()))
        with exhume.open(broker.log_directory) as topic:
            state = topic.state(release=kafka.release)
            batches = topic.batches().read_all().to_pylist()
        broker.start()
        failed_loads = await_loads(broker, OFFSETS_PARTITIONS)
        with Client(broker.port) as client:
            answer = answers(client, broker, OFFSETS_PARTITIONS, stories.groups)
            not_loaded = fetched_offsets(client, [group(UNKNOWN_VERSION, name) for name in ("before", "unknown", "after")])
            heartbeats = dict(_heartbeats(client, state))
        expectation = read_answers(answer, f"after-{kafka.release}", "stories", {"partitions": OFFSETS_PARTITIONS})
        yield Loaded(kafka.release, stories, batches, state, expectation, failed_loads, not_loaded, heartbeats)


def _heartbeats(client: Client, state: CoordinatorState) -> Iterator[tuple[tuple[str, str, int], str]]:
    generations = {row["group"]: row["generation"] for row in state.groups.to_pylist() if row["group_type"] == "classic"}
    for member in state.members.to_pylist():
        generation = generations.get(member["group"])
        if generation is not None:
            for behind in (1, 0):
                word = heartbeat(client, member["group"], generation - behind, member["member_id"])
                yield (member["group"], member["member_id"], behind), word


def test_a_broker_holds_what_we_say_it_holds(loaded: Loaded, compared: Compared) -> None:
    tables = {name: table.to_pylist() for name, table in loaded.state.tables.items()}

    comparison = compare_state(loaded.expectation, tables, release=loaded.release)

    assert comparison.differences == []
    assert comparison.not_shown == []
    compared.update({(f"{table} ({kind})", f"broker {loaded.release}, our log"): rows for (table, kind), rows in comparison.counts.items()})
    print(comparison.counts)
