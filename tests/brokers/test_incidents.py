"""Real brokers load the logs of all incidents, and have the state that exhume computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from exhume.fixtures import incidents
from tests.compared import Compared

from .incident_logs import IncidentLog, write_all
from .loading import Loaded, fresh_broker, load

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module", params=["2.8.2", "4.4.0"])
def start(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[IncidentLog], Loaded]:
    logs = write_all(tmp_path_factory.mktemp("incidents"))
    with fresh_broker(request.param, tmp_path_factory.mktemp("broker"), offsets_partitions=len(logs)) as broker:
        loaded = load(broker, [log.directory for log in logs], stop="unclean")
    if loaded.expectation.coordinator != "classic":
        # For the log layer of this broker an open transaction is something else: see `test_logs`.
        loaded = replace(loaded, expectation=replace(loaded.expectation, open_transactions=None))
    return logs, loaded


def test_a_broker_holds_what_we_say_it_holds(start: tuple[list[IncidentLog], Loaded], compared: Compared) -> None:
    logs, loaded = start

    comparison = loaded.compare()

    assert [f"{_title(difference, logs, loaded)}: {difference}" for difference in comparison.differences] == []
    loaded.count(comparison, compared, "incidents")
    compared["logs", f"broker {loaded.coordinator}, incidents"] += len(logs)
    for table in ("groups", "members", "assignments", "offsets"):
        assert comparison.counts[table, "classic"] > 100, table
    assert comparison.counts["members", "consumer"] > (10 if loaded.coordinator == "4.4.0" else -1)


def _title(difference: str, logs: Sequence[IncidentLog], loaded: Loaded) -> str:
    """Return the log of a difference, if it names a group in the state by exhume."""
    titles = {log.offsets_partition: log.title for log in logs}
    rows = [row for name in ("groups", "offsets") for row in loaded.tables[name]]
    return next((titles[row["offsets_partition"]] for row in rows if repr(row["group"]) in difference), "unknown log")


def test_all_incidents_are_there_and_most_logs_can_be_loaded(start: tuple[list[IncidentLog], Loaded]) -> None:
    logs, loaded = start
    outcomes = Counter(row["outcome"] for row in loaded.tables["loads"])

    assert {log.title.partition(",")[0] for log in logs} == {*incidents.INCIDENTS}
    assert outcomes["loaded"] > 200
    assert not {"refused", "stalled"} & {*outcomes}
