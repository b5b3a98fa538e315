"""A real cluster: a master and two workers, each a process of its own. One file, so that it is started once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from exhume import spark as exhume_spark
from tests.compared import Compared
from tests.judges import corpus
from tests.replay.spark import cluster
from tests.replay.spark.cluster import Cluster
from tests.replay.spark.states import differences, locally, on_spark, some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IN_STRETCHES: dict[str, Any] = {"least_bytes": 0, "stretch_bytes": 2000}


@pytest.fixture(scope="module")
def machines(java17: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster.running(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def session(machines: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    patch = pytest.MonkeyPatch()
    patch.setenv("PYSPARK_PYTHON", sys.executable)
    patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    session = cluster.open_session(machines, tmp_path_factory.mktemp("warehouse"))
    yield session
    session.stop()
    patch.undo()


def test_states_are_those_of_the_local_engine(session: SparkSession, machines: Cluster, compared: Compared) -> None:
    places = some(6, 24)
    with exhume_spark.reconstruct(session, places, release="4.3.0", **_IN_STRETCHES) as state:
        assert differences(on_spark(state), locally(places, release="4.3.0")) == {}
        compared["logs on a cluster", "the local engine"] += len(state.ways)

    assert len(machines.executors()) == 2


def test_a_moment_is_that_of_the_local_engine(session: SparkSession) -> None:
    place = corpus.BUNDLED / "4.3.0-transactions" / "data"
    at = {0: 40, 1: 12}
    with exhume_spark.reconstruct(session, place, at_offset=at, **_IN_STRETCHES) as state:
        assert differences(on_spark(state), locally(place, at_offset=at)) == {}


def test_an_executor_that_dies_in_mid_job_changes_no_row(session: SparkSession, machines: Cluster) -> None:
    places = some(7, 24)
    expected = locally(places, release="4.3.0")
    killed: list[int] = []
    is_over = threading.Event()

    def kill() -> None:
        tracker = session.sparkContext.statusTracker()
        while not is_over.wait(0.05):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            if any(stage is not None and stage.numCompletedTasks > 0 for stage in stages):
                killed.append(machines.executors()[0])
                os.kill(killed[0], signal.SIGKILL)
                return

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with exhume_spark.reconstruct(session, places, release="4.3.0", **_IN_STRETCHES) as state:
            found = on_spark(state)
    finally:
        is_over.set()
        killer.join()

    assert killed
    assert killed[0] not in machines.executors()
    assert differences(found, expected) == {}


def test_the_command_writes_what_the_cluster_made(session: SparkSession, tmp_path: Path) -> None:
    place = corpus.BUNDLED / "4.3.0-transactions" / "data"
    with exhume_spark.export_tables(session, place, tmp_path / "out", tables=["offsets"]) as state:
        assert session.read.parquet(str(tmp_path / "out" / "offsets")).count() == state["offsets"].count()
