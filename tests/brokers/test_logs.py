"""Real brokers load each log of `logs`, many in one start, and have the state that exhume computes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from exhume.codecs.compression import codec_name
from exhume.codecs.offsets_topic import offsets_partition_of
from tests.compared import Compared

from .kafka import COORDINATORS
from .loading import Loaded, fresh_broker, load, topic_ids
from .logs import SEED, Log, logs_to_load, rounds
from .random_logs import OFFSETS_PARTITIONS
from .reach import REACH, Reach, must_be_fetched

pytestmark = pytest.mark.broker

#: One start of a coordinator: the loaded logs, and the result.
Start = tuple[Sequence[Log], Loaded]


@pytest.fixture(scope="module", params=COORDINATORS)
def starts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Start]:
    coordinator = request.param
    with fresh_broker(coordinator, tmp_path_factory.mktemp("broker"), offsets_partitions=OFFSETS_PARTITIONS) as broker:
        logs = list(logs_to_load(tmp_path_factory.mktemp("logs"), coordinator, topic_ids(broker)))
        return [
            (together, load(broker, [directory for log in together for directory in log.partitions], stop="unclean"))
            for together in rounds(logs)
        ]


def test_a_broker_holds_what_we_say_it_holds(starts: list[Start], compared: Compared) -> None:
    differences = []
    counts: Counter[tuple[str, str]] = Counter()
    for logs, loaded in starts:
        comparison = _comparable(loaded).compare()
        names = {partition.name: log.name for log in logs for partition in log.partitions}
        differences += [f"{_log_of(difference, names, loaded)}: {difference}" for difference in comparison.differences]
        counts += comparison.counts
        loaded.count(comparison, compared, "our logs")
        compared["logs", f"broker {loaded.coordinator}, our logs"] += len(logs)

    assert not differences, f"EXHUME_RANDOM_SEED={SEED}\n" + "\n".join(differences)
    assert _must_be_compared(REACH[starts[0][1].coordinator]) <= {pair for pair, rows in counts.items() if rows}


def _comparable(loaded: Loaded) -> Loaded:
    """Remove the open transactions of the log layer of a broker with the Java coordinator: they differ from those of the coordinator.

    The log layer begins a transaction with its first batch. This coordinator begins it with the first commit that is still pending, and
    takes any producer's for one; here are transactions that begin with tombstones, and idempotent producers without a transaction.
    """
    if loaded.expectation.coordinator == "classic":
        return loaded
    return replace(loaded, expectation=replace(loaded.expectation, open_transactions=None))


def _log_of(difference: str, names: dict[str, str], loaded: Loaded) -> str:
    """Return the name of the log of a difference, if the difference shows it."""
    groups = {row["group"] for row in loaded.tables["groups"]} | set(loaded.expectation.groups)
    about = [group for group in groups if difference.startswith(f"group {group!r}")]
    found = re.match(r"offsets partition (\d+)", difference)
    partition = int(found[1]) if found else offsets_partition_of(max(about, key=len), OFFSETS_PARTITIONS) if about else -1
    return names.get(f"__consumer_offsets-{partition}", "unknown log")


def _must_be_compared(reach: Reach) -> set[tuple[str, str]]:
    tables = {
        ("loads", "any"),
        *must_be_fetched(reach),
        *((table, group_type) for table in ("groups", "members", "assignments") for group_type in reach.group_types),
    }
    tables |= {("offsets", group_type) for group_type in reach.group_types - {"share"}}
    tables |= {("pending_offsets", "classic")} if reach.tells_pending else set()
    tables |= {("open_transactions", "any")} if reach.tells_transactions and "consumer" not in reach.group_types else set()
    return tables | ({("streams_topologies", "streams")} if "streams" in reach.group_types else set())


def test_some_logs_cannot_be_loaded_and_most_can(starts: list[Start]) -> None:
    outcomes = Counter(row["outcome"] for _, loaded in starts for row in loaded.tables["loads"])

    assert outcomes["loaded"] > 15
    assert outcomes["aborted"] > 0
    assert not {"refused", "stalled"} & set(outcomes)


def test_the_loaded_logs_have_every_format_and_codec(starts: list[Start]) -> None:
    reach = REACH[starts[0][1].coordinator]

    found = {(batch["magic"], batch["codec"]) for _, loaded in starts for batch in loaded.batches}

    assert found == {(magic, codec_name(codec)) for magic in reach.formats for codec in reach.codecs(magic)}
