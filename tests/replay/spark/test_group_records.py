"""Rebalances and owners on Spark: the rows of one machine, from logs of every kind of group."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import exhume
from exhume import spark as exhume_spark
from exhume.errors import RequestError
from exhume.replay.spark.source_options import SourceOptions
from exhume.replay.spark.wide import plain_schema
from exhume.spark import records
from tests.judges import corpus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASSIC = corpus.BUNDLED / "2.8.2-lifecycle" / "data"
LOGS = [
    CLASSIC,
    *(corpus.BUNDLED / name / "data" for name in ("4.0.0-conversion", "4.3.0-consumer-groups", "4.2.1-share-groups")),
    corpus.BUNDLED / "random" / "streams-4.3-107" / "data",
]


def rows_of(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.cast(plain_schema(table.schema)).to_pylist()))


def test_rows_are_those_of_one_machine(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    # Many tasks: what one group wrote lies in several of them.
    monkeypatch.setattr(records, "SourceOptions", partial(SourceOptions, bytes_per_partition=64 * 1024))
    with exhume.open(LOGS) as topic:
        rebalances, owners = topic.rebalances(), topic.owners()
    assert {"classic", "consumer", "share", "streams"} <= {*rebalances["group_type"].to_pylist()}
    assert {*owners["topic"].to_pylist()} - {None}
    assert rows_of(exhume_spark.rebalances(spark, LOGS).toArrow()) == rows_of(rebalances)
    assert rows_of(exhume_spark.owners(spark, LOGS).toArrow()) == rows_of(owners)


def test_only_groups_that_are_asked_for(spark: SparkSession) -> None:
    with exhume.open(CLASSIC) as topic:
        name = topic.rebalances()["group"].to_pylist()[0]
        expected = topic.rebalances([name])
    assert rows_of(exhume_spark.rebalances(spark, CLASSIC, groups=[name]).toArrow()) == rows_of(expected)
    assert exhume_spark.owners(spark, CLASSIC, groups=["nobody"]).count() == 0
    with pytest.raises(RequestError, match="no table 'groups' of records"):
        exhume_spark.record_table(spark, "groups", CLASSIC)


def test_no_rebalances_at_a_moment(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="rebalances cannot be exported at a moment"):
        exhume_spark.export_tables(spark, CLASSIC, tmp_path / "out", tables=["rebalances"], at_time_ms=0)
    assert not any(tmp_path.iterdir())


def test_the_command_writes_them(java17: None, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "exhume",
        "batch",
        str(CLASSIC),
        "--output-dir",
        str(tmp_path / "out"),
        "--tables",
        "rebalances,owners",
    ]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([*command, "--master", "local[1]"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with exhume.open(CLASSIC) as topic:
        for name, expected in (("rebalances", topic.rebalances()), ("owners", topic.owners())):
            found = ds.dataset(tmp_path / "out" / name, partitioning="hive").to_table().select(expected.schema.names)
            assert rows_of(found) == rows_of(expected)
