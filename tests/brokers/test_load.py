"""Real brokers load a log of exhume, and have the state that exhume computes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from exhume.codecs.compression import codec_name
from exhume.replay.broker_log import Stop
from tests.compared import Compared

from .broker import Broker
from .kafka import COORDINATORS
from .loading import Loaded, fresh_broker, load, topic_ids
from .reach import REACH, Reach, must_be_fetched
from .stories import CONSUMER_GROUPS, OFFSETS_PARTITIONS, TOPIC, UNKNOWN_VERSION, Stories, group, write_stories

pytestmark = pytest.mark.broker

#: Groups of the partition that cannot be loaded: before the record of the unknown version, its own, and after it.
AROUND_UNKNOWN_VERSION = [group(UNKNOWN_VERSION, name) for name in ("before", "unknown", "after")]


@pytest.fixture(scope="module", params=COORDINATORS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with fresh_broker(request.param, tmp_path_factory.mktemp("broker"), offsets_partitions=OFFSETS_PARTITIONS) as broker:
        yield broker


@pytest.fixture(scope="module")
def stories(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Stories:
    return write_stories(tmp_path_factory.mktemp("stories"), REACH[broker.coordinator], topic_ids(broker).get(TOPIC))


@pytest.fixture(scope="module", params=["clean", "unclean"])
def loaded(request: pytest.FixtureRequest, broker: Broker, stories: Stories) -> Loaded:
    stop: Stop = request.param
    return load(broker, sorted(stories.directory.iterdir()), stop=stop)


def _must_be_compared(reach: Reach) -> set[tuple[str, str]]:
    classic = {"groups", "members", "assignments", "offsets"} | ({"pending_offsets"} if reach.tells_pending else set())
    consumer = {"groups", "members", "assignments", "offsets"} if "consumer" in reach.group_types else set()
    return {
        ("loads", "any"),
        *must_be_fetched(reach),
        *((table, "classic") for table in classic),
        *((table, "consumer") for table in consumer),
    }


def test_a_broker_holds_what_we_say_it_holds(loaded: Loaded, compared: Compared) -> None:
    comparison = loaded.compare()

    assert comparison.differences == []
    assert _must_be_compared(REACH[loaded.coordinator]) <= {pair for pair, rows in comparison.counts.items() if rows}
    loaded.count(comparison, compared, "stories")


def test_a_broker_shows_all_that_we_say_it_holds(loaded: Loaded) -> None:
    reach = REACH[loaded.coordinator]

    not_shown = [line for line in loaded.compare().not_shown if not line.endswith("not_coordinator")]

    if not reach.tells_pending:
        not_shown = [line for line in not_shown if not line.endswith("this release has no error for unstable offsets")]
    # The broker shows the assignor that it would choose for a group without members.
    of_the_broker = [f"group {group(CONSUMER_GROUPS, 'empty')!r}: assignor 'uniform': no member names one"]
    assert not_shown == (of_the_broker if "consumer" in reach.group_types else [])


def test_a_broker_takes_heartbeats_of_the_generation_we_read_and_of_no_other(loaded: Loaded) -> None:
    stable = {row["group"]: row["generation"] for row in loaded.tables["groups"] if row["group_state"] == "Stable"}

    taken = {name: answer.columns.get("generation") for name, answer in loaded.expectation.groups.items() if name in stable}

    assert taken == stable
    assert len(stable) > 10


def test_a_broker_that_recovers_its_log_finds_the_open_transactions(loaded: Loaded) -> None:
    reach = REACH[loaded.coordinator]
    ours = {(row["producer_id"], row["first_record_offset"]) for row in loaded.tables["open_transactions"]}

    assert len(ours) == (2 if reach.newest_format == 2 else 0)
    if loaded.stop == "unclean" and reach.tells_transactions:
        assert {(found[1], found[3]) for found in loaded.expectation.open_transactions or ()} == ours


def test_one_unknown_value_version_keeps_the_broker_from_loading_that_partition_alone(loaded: Loaded) -> None:
    said = [loaded.expectation.groups[name] for name in AROUND_UNKNOWN_VERSION]

    assert set(loaded.expectation.failed_loads) == {UNKNOWN_VERSION}
    if loaded.expectation.coordinator == "classic":
        # The Scala coordinator serves a partition without groups after a failed load.
        assert [answer.offsets for answer in said] == [{}, {}, {}]
    else:
        assert all("offsets: not_coordinator" in answer.silences for answer in said)


def test_we_say_at_which_record_the_load_ends(loaded: Loaded, stories: Stories) -> None:
    outcomes = {row["offsets_partition"]: (row["outcome"], row["record_offset"]) for row in loaded.tables["loads"]}

    assert outcomes.pop(UNKNOWN_VERSION) == ("aborted", stories.unknown_version_offset)
    assert set(outcomes.values()) == {("loaded", None)}


def test_the_loaded_log_has_every_format_and_codec(loaded: Loaded) -> None:
    reach = REACH[loaded.coordinator]

    found = {(batch["magic"], batch["codec"]) for batch in loaded.batches}

    assert found == {(magic, codec_name(codec)) for magic in reach.formats for codec in reach.codecs(magic)}


def test_the_loaded_log_has_every_value_version_of_offset_commits(loaded: Loaded) -> None:
    versions = {row["value_version"] for row in loaded.tables["offsets"]}

    assert versions == set(range(REACH[loaded.coordinator].offset_version + 1))
