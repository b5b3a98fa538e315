"""Real brokers load a log that we wrote, and hold what we say they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import exhume
from exhume.replay.state import CoordinatorState
from tests.conftest import Compared
from tests.judges.broker_answers import Expectation, read_answers
from tests.judges.fetch_comparison import compare_fetches
from tests.judges.state_comparison import compare_state

from .client import Client, answers, await_loads, create_topic, heartbeat
from .kafka import RELEASES, Broker, installed
from .stories import CONSUMER_GROUPS, OFFSETS_PARTITIONS, TOPIC, UNKNOWN_VERSION, Stories, group, write_stories

pytestmark = pytest.mark.broker


FETCHES = {("fetched_offsets", answer) for answer in ("plain", "require_stable", "errors")}
#: What must have been compared at least once, by release.
MUST_BE_COMPARED = {
    "2.8.2": {
        ("loads", "any"),
        *FETCHES,
        *((table, "classic") for table in ("groups", "members", "assignments", "offsets", "pending_offsets")),
    },
    "4.3.0": {
        ("loads", "any"),
        *FETCHES,
        *((table, "classic") for table in ("groups", "members", "assignments", "offsets", "pending_offsets")),
        *((table, "consumer") for table in ("groups", "members", "assignments", "offsets")),
    },
}
#: Groups of the partition that cannot be loaded: in front of the record that nobody knows, its own, and behind it.
AROUND_UNKNOWN_VERSION = [group(UNKNOWN_VERSION, name) for name in ("before", "unknown", "after")]


@dataclass(frozen=True, slots=True)
class Loaded:
    """One release that has loaded the stories, after a clean stop or after a kill: what we say of the log, and what the broker said."""

    release: str
    stop: str
    stories: Stories
    batches: list[dict[str, Any]]
    state: CoordinatorState
    expectation: Expectation
    #: (group, member id, generations behind that of our state) -> the coordinator's word.
    heartbeats: dict[tuple[str, str, int], str]

    @property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The tables of our state, as rows."""
        return {name: table.to_pylist() for name, table in self.state.tables.items()}


@pytest.fixture(scope="module", params=[(release, stop) for release in RELEASES for stop in ("clean", "killed")], ids="-".join)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    release, stop = request.param
    kafka = installed(release)
    directory = tmp_path_factory.mktemp(f"broker-{release}-{stop}")
    has_consumer_groups = kafka.version >= (4,)
    with Broker(kafka, directory, offsets_partitions=OFFSETS_PARTITIONS) as broker:
        broker.start()
        create_topic(broker, TOPIC)
        await_loads(broker, OFFSETS_PARTITIONS)
        broker.stop()
        stories = write_stories(
            directory / "written",
            newest_version=4 if has_consumer_groups else 3,
            topic_id=broker.topic_id(TOPIC) if has_consumer_groups else None,
        )
        broker.put(sorted(stories.directory.iterdir()))
        if stop == "killed":
            broker.forget_clean_stop()
        with exhume.open(broker.log_directory) as topic:
            state = topic.state(release=release)
            batches = topic.batches().read_all().to_pylist()
        broker.start()
        await_loads(broker, OFFSETS_PARTITIONS)
        with Client(broker.port) as client:
            answer = answers(client, broker, OFFSETS_PARTITIONS, stories.groups)
            heartbeats = dict(_heartbeats(client, state))
    if stop == "clean":
        # Of open transactions the log layer knows what the producer snapshots say, and a written log has none. Recovery reads the log.
        del answer["producers"]
    expectation = read_answers(answer, f"after-{release}", "stories", {"partitions": OFFSETS_PARTITIONS})
    return Loaded(release, stop, stories, batches, state, expectation, heartbeats)


def _heartbeats(client: Client, state: CoordinatorState) -> Iterator[tuple[tuple[str, str, int], str]]:
    generations = {row["group"]: row["generation"] for row in state.groups.to_pylist() if row["group_type"] == "classic"}
    for member in state.members.to_pylist():
        generation = generations.get(member["group"])
        if generation is not None:
            for behind in (1, 0):
                word = heartbeat(client, member["group"], generation - behind, member["member_id"])
                yield (member["group"], member["member_id"], behind), word


def test_a_broker_holds_what_we_say_it_holds(loaded: Loaded, compared: Compared) -> None:
    comparison = compare_state(loaded.expectation, loaded.tables, release=loaded.release)
    compare_fetches(loaded.expectation, loaded.tables, comparison)

    assert comparison.differences == []
    assert MUST_BE_COMPARED[loaded.release] <= {pair for pair, rows in comparison.counts.items() if rows}
    said_by = f"broker {loaded.release}, our log"
    compared.update({(f"{table} ({group_type})", said_by): rows for (table, group_type), rows in comparison.counts.items()})


def test_a_broker_shows_all_that_we_say_it_holds(loaded: Loaded) -> None:
    not_shown = compare_state(loaded.expectation, loaded.tables, release=loaded.release).not_shown

    # A group without members shows the assignor that the broker would choose.
    of_the_broker = (
        [] if loaded.release == "2.8.2" else [f"group {group(CONSUMER_GROUPS, 'empty')!r}: assignor 'uniform': no member names one"]
    )
    assert [line for line in not_shown if not line.endswith("not_coordinator")] == of_the_broker


def test_a_broker_takes_heartbeats_of_the_generation_we_read_and_of_no_other(loaded: Loaded) -> None:
    wrong = {beat: word for beat, word in loaded.heartbeats.items() if word != ("illegal_generation" if beat[2] else "none")}

    assert wrong == {}
    assert len(loaded.heartbeats) > 40


def test_a_broker_that_recovers_its_log_finds_the_open_transactions(loaded: Loaded) -> None:
    ours = {(row["producer_id"], row["first_record_offset"]) for row in loaded.tables["open_transactions"]}

    assert len(ours) == 2
    if loaded.stop == "killed":
        assert {(found[1], found[3]) for found in loaded.expectation.open_transactions or ()} == ours


def test_one_unknown_value_version_keeps_the_broker_from_loading_that_partition_alone(loaded: Loaded) -> None:
    said = [loaded.expectation.groups[name] for name in AROUND_UNKNOWN_VERSION]

    assert set(loaded.expectation.failed_loads) == {UNKNOWN_VERSION}
    if loaded.release == "2.8.2":
        # The Scala coordinator serves a partition whose load failed as if nothing were in it.
        assert [answer.offsets for answer in said] == [{}, {}, {}]
    else:
        assert all("offsets: not_coordinator" in answer.silences for answer in said)


def test_we_say_at_which_record_the_load_ends(loaded: Loaded) -> None:
    outcomes = {row["offsets_partition"]: (row["outcome"], row["record_offset"]) for row in loaded.tables["loads"]}

    assert outcomes.pop(UNKNOWN_VERSION) == ("aborted", loaded.stories.unknown_version_offset)
    assert set(outcomes.values()) == {("loaded", None)}


def test_the_loaded_log_has_every_format_and_codec(loaded: Loaded) -> None:
    found = {(batch["magic"], batch["codec"]) for batch in loaded.batches}

    old = {(magic, codec) for magic in (0, 1) for codec in ("none", "gzip", "snappy", "lz4")}
    assert found == old | {(2, codec) for codec in ("none", "gzip", "snappy", "lz4", "zstd")}


def test_the_loaded_log_has_every_value_version_of_offset_commits(loaded: Loaded) -> None:
    versions = {row["value_version"] for row in loaded.tables["offsets"]}

    assert versions == set(range(loaded.stories.newest_version + 1))
