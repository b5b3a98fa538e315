"""`exhume export`: what it writes, that it can be repeated, and what it says where something is missing."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

import exhume
from exhume import spark as exhume_spark
from exhume.analysis.summary import summarize_groups
from exhume.errors import RequestError
from exhume.replay.spark import output, session
from exhume.replay.spark.wide import plain_schema
from exhume.replay.state_tables import SCHEMAS
from tests.judges import corpus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLACE = corpus.BUNDLED / "4.3.0-transactions" / "data"
TABLES = ["groups", "offsets", "loads", "findings", "summary"]


def written(directory: Path, name: str) -> list[str]:
    table = ds.dataset(directory / name, partitioning="hive").to_table()
    return sorted(repr(sorted(row.items())) for row in table.to_pylist())


def files_in(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*.parquet")}


def test_tables_and_manifest(spark: SparkSession, tmp_path: Path) -> None:
    directory = tmp_path / "out"
    exhume_spark.export_tables(spark, PLACE, directory, tables=TABLES, release="4.3.0").close()

    with exhume.open(PLACE) as topic:
        state = topic.state(release="4.3.0")
        for name in ("groups", "offsets", "loads"):
            table = state.tables[name]
            expected = sorted(repr(sorted(row.items())) for row in table.cast(plain_schema(table.schema)).to_pylist())
            assert written(directory, name) == expected
        summary = summarize_groups(state)
    assert written(directory, "summary") == sorted(repr(sorted(row.items())) for row in summary.to_pylist())
    assert (directory / "offsets" / "offsets_partition=0").is_dir()
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["release"] == "4.3.0"
    assert manifest["tables"] == TABLES
    for row in manifest["inputs"]:
        content = Path(row["path"]).read_bytes()
        assert (row["size_bytes"], row["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
        assert row["crc_verdict"] == "ok"
    with exhume.open(PLACE) as topic:
        ends = [(row["first_offset"], row["last_offset"]) for row in topic.segments().to_pylist()]
    assert [(row["first_record_offset"], row["last_record_offset"]) for row in manifest["inputs"]] == ends


def test_a_table_without_rows_has_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    directory = tmp_path / "out"
    for _ in range(2):
        exhume_spark.export_tables(spark, PLACE, directory, tables=["groups"], at_time_ms=0).close()
        assert len(files_in(directory / "groups")) == 1
        table = pq.read_table(directory / "groups")
        assert (table.schema.names, table.num_rows) == (SCHEMAS["groups"].names, 0)
        assert spark.read.parquet(str(directory / "groups")).columns == table.schema.names

    exhume_spark.export_tables(spark, PLACE, directory, tables=["groups"]).close()
    assert all(path.startswith("offsets_partition=") for path in files_in(directory / "groups"))


def test_a_rerun_replaces_and_a_failed_one_does_not(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "out"
    exhume_spark.export_tables(spark, PLACE, directory, tables=["groups", "offsets"], at_time_ms=0).close()
    before = files_in(directory)
    with monkeypatch.context() as patch:

        def fails(*_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(output.OutputDirectory, "finish", fails)
        with pytest.raises(KeyboardInterrupt):
            exhume_spark.export_tables(spark, PLACE, directory, tables=["offsets"])
    assert files_in(directory) == before
    assert {path.name for path in tmp_path.iterdir()} == {"out"}

    exhume_spark.export_tables(spark, PLACE, directory, tables=["offsets"]).close()
    assert not (directory / "groups").exists()
    assert pq.read_table(directory / "offsets").num_rows > 0
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


class _Waits(DataSource):
    """A table whose plan says that it is being made, and waits until it may go on."""

    @classmethod
    def name(cls) -> str:
        return "waits"

    def schema(self) -> str:
        return "number int"

    def reader(self, schema: object) -> DataSourceReader:
        return _WaitingReader(Path(self.options["path"]))


class _WaitingReader(DataSourceReader):
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def partitions(self) -> list[InputPartition]:
        (self._directory / "begun").touch()
        while not (self._directory / "may_go_on").exists():
            time.sleep(0.02)
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (1,)


def test_an_interrupt_waits_for_a_call_that_has_not_begun_its_job(spark: SparkSession, tmp_path: Path) -> None:
    """Otherwise Spark would begin the job, and make directories, after they were taken away."""
    plan = tmp_path / "plan"
    plan.mkdir()
    has_returned, order = threading.Event(), []

    def interrupt() -> None:
        while not (plan / "begun").exists():
            time.sleep(0.02)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        has_returned.wait(1)
        order.append("the plan may go on")
        (plan / "may_go_on").touch()

    spark.dataSource.register(_Waits)
    directory = output.OutputDirectory(spark, str(tmp_path / "out"))
    frame = spark.read.format("waits").load(str(plan))
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        directory.write("numbers", frame)
    order.append("the call has returned")
    has_returned.set()
    directory.abandon()
    thread.join()

    assert order == ["the plan may go on", "the call has returned"]
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]


def test_what_a_killed_run_left_is_put_right(spark: SparkSession, tmp_path: Path) -> None:
    directory = tmp_path / "out"
    exhume_spark.export_tables(spark, PLACE, directory, tables=["offsets"]).close()
    before = files_in(directory)
    # Killed between the two renames, with its own output aside.
    directory.rename(tmp_path / "out.before")
    (tmp_path / "out.0123abcd.unfinished" / "offsets").mkdir(parents=True)
    output.OutputDirectory(spark, str(directory))

    assert files_in(directory) == before
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


def test_other_directories_are_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "letters").write_text("")
    with pytest.raises(RequestError, match="not an output of this command"):
        exhume_spark.export_tables(spark, PLACE, tmp_path, tables=["offsets"])
    with pytest.raises(RequestError, match="no table 'letters'"):
        exhume_spark.export_tables(spark, PLACE, tmp_path / "out", tables=["letters"])


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_spec", lambda _: None)
    with pytest.raises(RequestError, match="PySpark is not installed"):
        session.open_session("test")
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with pytest.raises(RequestError, match="Java 17"):
        session.open_session("test")
