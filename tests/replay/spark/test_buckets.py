"""Logs that lie in a bucket: states and batches are those of the same logs on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest

import exhume
from exhume import spark as exhume_spark
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit
from exhume.replay.spark.wide import plain_schema
from tests.replay.spark.states import differences, locally, on_spark
from tests.s3_server import S3Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def uri(tmp_path: Path, s3: S3Server) -> str:
    """Two partitions of three segments each, of groups whose generations go back, in a bucket of their own."""
    directory = tmp_path / "data"
    for partition in range(2):
        with PartitionWriter(directory, partition) as log:
            for number in range(600):
                commit = offset_commit(f"g{partition}", "t", number % 40, number, commit_timestamp_ms=1000 + number)
                log.append([commit], timestamp_ms=1000 + number)
                if number % 200 == 150:
                    log.append(
                        [group_metadata(f"g{partition}", {"protocol_type": "consumer", "generation": 600 - number})],
                        timestamp_ms=1000 + number,
                    )
                if number % 250 == 249:
                    log.roll()
    return s3.upload(directory, "spark/state/data") + s3.query


@pytest.mark.parametrize("way", [{"least_bytes": 0, "stretch_bytes": 8000}, {}], ids=["in stretches", "whole"])
def test_a_state(spark: SparkSession, uri: str, s3: S3Server, way: dict[str, Any]) -> None:
    expected = locally(uri)
    s3.asked.clear()
    with exhume_spark.reconstruct(spark, uri, **way) as state:
        assert differences(on_spark(state), expected) == {}
        assert set(state.ways.values()) == {"fold" if way else "whole"}
    assert s3.ranges()


def test_a_batch(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    tables = ["offsets", "loads", "findings", "rebalances", "owners"]
    with exhume_spark.export_tables(spark, uri, tmp_path / "out", tables=tables) as state:
        assert set(state.ways.values()) == {"whole"}
    with exhume.open(uri) as topic:
        held = topic.state()
        expected = {"offsets": held.offsets, "loads": held.tables["loads"], "rebalances": topic.rebalances(), "owners": topic.owners()}
        diagnosed = [*topic.findings, *topic.diagnose()]
    codes = sorted(finding.code for finding in diagnosed)
    assert {finding.offsets_partition for finding in diagnosed} == {0, 1, None}
    assert expected["owners"].num_rows == 0
    for name, table in expected.items():
        found = ds.dataset(tmp_path / "out" / name, partitioning="hive").to_table().select(table.schema.names)
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, table.cast(plain_schema(table.schema)).to_pylist()))
    found = ds.dataset(tmp_path / "out" / "findings", partitioning="hive").to_table()
    assert sorted(found["code"].to_pylist()) == codes
