"""What detectors find on Spark: the findings of one machine, on logs of real brokers and on logs in which something is wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import exhume
from exhume import spark as exhume_spark
from exhume.analysis.detectors import loading
from exhume.analysis.detectors.catalogue import DETECTORS
from exhume.analysis.detectors.inputs import Inputs, LiveOffset
from exhume.errors import RequestError
from exhume.fixtures import incidents, scenarios
from exhume.replay.spark.wide import plain_schema
from tests.compared import Compared
from tests.judges import corpus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGS = [corpus.BUNDLED / name / "data" for name in ("2.8.2-lifecycle", "4.3.0-transactions", "random/streams-4.3-107")]
_LIVE = [LiveOffset("billing", "orders", 0, 5, None)]


def rows_of(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.cast(plain_schema(table.schema)).to_pylist()))


def assert_same(
    spark: SparkSession, places: Path | list[Path], inputs: Inputs | None = None, codes: list[str] | None = None
) -> Counter[str]:
    """Compares the findings; gives how many there are that were decided, by code."""
    with exhume.open(places) as topic:
        expected = topic.diagnose(inputs, codes=codes).to_table()
    with exhume_spark.diagnose(spark, places, inputs, codes=codes) as diagnosis:
        found = diagnosis.findings().toArrow()
    assert found.schema.names == expected.schema.names
    assert rows_of(found) - rows_of(expected) == rows_of(expected) - rows_of(found) == Counter()
    return Counter(row["code"] for row in expected.select(["code", "confidence"]).to_pylist() if row["confidence"] != "undecidable")


def test_bundled_logs(spark: SparkSession, compared: Compared) -> None:
    codes = [detector.code for detector in DETECTORS if detector.code != "IC-06"]
    found = assert_same(spark, LOGS, codes=codes)

    assert {"IC-05a", "IC-23", "IC-26", "IC-34"} <= set(found)
    compared["findings on Spark", "the local engine"] += found.total()


@pytest.mark.parametrize("turn", range(2))
def test_drills(spark: SparkSession, tmp_path: Path, compared: Compared, turn: int) -> None:
    """Side by side, as replicas of one another: so there is more to find than in each alone."""
    places = [place for name in [*scenarios.ALL][turn::2] for place in scenarios.write(name, tmp_path / name).data_directories]
    found = assert_same(spark, places, Inputs(live=_LIVE, offsets_partitions=50))

    assert len(found) > 5
    compared["findings on Spark", "the local engine"] += found.total()


def test_what_is_found_in_files_of_large_logs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads by some releases, and how far the cleaner came, are found out side by side."""
    stopped = incidents.write("IC-03", tmp_path / "stopped", which="an open transaction stops it")
    owners = incidents.write("IC-06d", tmp_path / "owners")
    places = [stopped.directory, owners.directory]
    monkeypatch.setattr(loading, "_MOST_BYTES_FOR_ALL", 0)
    # The newest release completes the load that 4.1.1 aborts.
    monkeypatch.setattr(loading, "java_spans", lambda: [SimpleNamespace(last="4.1.1")])
    found = assert_same(spark, places, codes=["IC-03", "IC-06", "IC-08"])

    assert set(found) == {"IC-03", "IC-06d", "IC-08"}


def test_some_codes_and_groups(spark: SparkSession) -> None:
    place = corpus.BUNDLED / "2.8.2-lifecycle" / "data"
    with exhume.open(place) as topic:
        name = next(finding.group for finding in topic.diagnose(codes=["IC-34"]) if finding.group)
        expected = topic.diagnose(codes=["IC-34"], groups=[name]).to_table()
    with exhume_spark.diagnose(spark, place, codes=["IC-34"], groups=[name]) as diagnosis:
        assert rows_of(diagnosis.findings().toArrow()) == rows_of(expected)
    with pytest.raises(RequestError, match="no detector"):
        exhume_spark.diagnose(spark, place, codes=["IC-99"])


def test_the_table_of_a_batch_has_them_beside_those_of_the_load(spark: SparkSession, tmp_path: Path) -> None:
    place = corpus.BUNDLED / "4.3.0-transactions" / "data"
    exhume_spark.export_tables(spark, place, tmp_path / "out", tables=["findings"], release="4.3.0").close()
    with exhume.open(place) as topic:
        diagnosed = topic.diagnose().to_table()
        topic.state(release="4.3.0")
        expected = pa.concat_tables([topic.findings.to_table(), diagnosed])
    found = ds.dataset(tmp_path / "out" / "findings", partitioning="hive").to_table().select(expected.schema.names)
    assert rows_of(found) == rows_of(expected)
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["detectors"] == "run"


@pytest.mark.parametrize(("tables", "at_time_ms", "why"), [(["findings"], 1 << 42, "at a moment"), (["loads"], None, "not requested")])
def test_without_detectors_the_table_of_a_batch_has_what_loading_told(
    spark: SparkSession, tmp_path: Path, tables: list[str], at_time_ms: int | None, why: str
) -> None:
    place = scenarios.write("damaged", tmp_path / "damaged").data_directories
    exhume_spark.export_tables(spark, place, tmp_path / "out", tables=tables, at_time_ms=at_time_ms).close()
    with exhume.open(place) as topic:
        topic.state(at_time_ms=at_time_ms)
        expected = topic.findings.to_table()
    assert expected.num_rows
    found = ds.dataset(tmp_path / "out" / "findings", partitioning="hive").to_table().select(expected.schema.names)
    assert rows_of(found) == rows_of(expected)
    assert why in json.loads((tmp_path / "out" / "manifest.json").read_text())["detectors"]
