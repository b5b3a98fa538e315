"""States by Spark against those of the local engine: every table and every finding."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import exhume
from exhume import spark as exhume_spark
from exhume.errors import EvidenceError, RequestError
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from tests.compared import Compared
from tests.judges import corpus
from tests.replay.spark.states import differences, locally, on_spark, some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Folds of tiny stretches, and loads of whole logs.
WAYS: tuple[dict[str, Any], ...] = ({"least_bytes": 0, "stretch_bytes": 2000}, {})


def assert_same(spark: SparkSession, places: Path | list[Path], way: dict[str, Any], **options: Any) -> dict[str, int]:
    """Compares a state; gives how many logs went which way."""
    expected = locally(places, **options)
    with exhume_spark.reconstruct(spark, places, **options, **way) as state:
        assert differences(on_spark(state), expected) == {}
        ways = [*state.ways.values()]
    return {name: ways.count(name) for name in set(ways)}


@pytest.mark.parametrize(
    ("release", "turn", "way"), [("2.8.2", 0, 0), ("3.7.2-new", 1, 0), ("4.3.0", 2, 0), ("4.3.0", 3, 1), ("0.9.0.1", 4, 0)]
)
def test_bundled_logs(spark: SparkSession, release: str, turn: int, way: int, compared: Compared) -> None:
    ways = assert_same(spark, some(turn, 12), WAYS[way], release=release)

    compared["logs on Spark", "the local engine"] += sum(ways.values())
    assert set(ways) <= {"whole", "refused"} if way or release == "0.9.0.1" else ways["fold"] > 5


@pytest.mark.parametrize("clock", ["append", "commit"])
def test_moments(spark: SparkSession, clock: str, compared: Compared) -> None:
    places = some(5, 12)
    with exhume.open(places) as topic:
        times = topic.batches().read_all()["max_timestamp_ms"].to_pylist()
    middle = sorted(time_ms for time_ms in times if time_ms is not None)[len(times) // 2]
    ways = assert_same(spark, places, WAYS[0], at_time_ms=middle, clock=clock)

    compared["logs on Spark", "the local engine"] += sum(ways.values())
    assert ways["fold"] > 3


def test_record_offsets(spark: SparkSession) -> None:
    place = corpus.BUNDLED / "4.3.0-transactions" / "data"
    ways = assert_same(spark, place, WAYS[0], at_offset={0: 40, 2: 7}, release="4.3.0")

    assert ways["fold"] > 0


def test_grades_of_a_past_state(spark: SparkSession) -> None:
    place = corpus.BUNDLED / "4.3.0-transactions" / "data"
    at = {0: 40, 2: 7}
    with exhume.open(place) as topic:
        expected = topic.completeness(topic.state(at_offset=at)).to_pylist()
    with exhume_spark.reconstruct(spark, place, at_offset=at, **WAYS[0]) as state:
        found = exhume_spark.completeness(state).toArrow().to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_lenient_and_unclean(spark: SparkSession) -> None:
    assert_same(spark, some(0, 12), WAYS[0], mode="lenient", release="4.3.0")
    assert_same(spark, some(1, 12), WAYS[0], stop="unclean", release="2.8.2")


def damaged(directory: Path, position: int) -> Path:
    """A log directory of two offsets partitions, one byte of the second one not what it was."""
    for partition in (0, 1):
        with PartitionWriter(directory, partition) as writer:
            for number in range(300):
                writer.append(
                    [offset_commit(f"group-{partition}", "topic", number % 7, number, commit_timestamp_ms=1000 + number)],
                    timestamp_ms=1000 + number,
                )
    segment = next((directory / "__consumer_offsets-1").glob("*.log"))
    content = bytearray(segment.read_bytes())
    content[position] ^= 0x55
    segment.write_bytes(bytes(content))
    return directory


def test_damage_is_a_finding_and_strictly_an_error(spark: SparkSession, tmp_path: Path) -> None:
    directory = damaged(tmp_path / "data", 5000)
    ways = assert_same(spark, directory, WAYS[0])

    assert ways == {"fold": 2}
    with pytest.raises(EvidenceError, match="partial"):
        exhume_spark.reconstruct(spark, directory, strict=True)


def test_one_bad_partition_refuses_the_directory(spark: SparkSession, tmp_path: Path) -> None:
    directory = damaged(tmp_path / "data", 5000)
    segment = next((directory / "__consumer_offsets-1").glob("*.log"))
    for index in segment.parent.glob("*.index"):
        index.unlink()
    content = bytearray(segment.read_bytes())
    # The size of the first batch, which the broker walks over when it looks for the end of its log.
    content[8:12] = (3).to_bytes(4, "big")
    segment.write_bytes(bytes(content))
    ways = assert_same(spark, directory, WAYS[0])

    assert ways == {"refused": 2}


def test_some_groups_and_tables(spark: SparkSession) -> None:
    place = corpus.BUNDLED / "4.3.0-transactions" / "data"
    with exhume.open(place) as topic:
        state = topic.state()
        group = state.offsets["group"][0].as_py()
        expected = state.only([group]).offsets.to_pylist()
    with exhume_spark.reconstruct(spark, place, groups=[group], tables=["offsets", "open_transactions"]) as found:
        assert list(found) == ["offsets", "open_transactions", "findings"]
        assert sorted(map(repr, found["offsets"].toArrow().to_pylist())) == sorted(map(repr, expected))
    with pytest.raises(RequestError, match="no table 'owners'"):
        exhume_spark.reconstruct(spark, place, tables=["owners"])


@pytest.mark.corpus
@pytest.mark.skipif(corpus.WHOLE is None, reason="EXHUME_CORPUS does not name a larger set of logs")
@pytest.mark.parametrize("release", ["2.8.2", "3.7.2-new", "4.3.0"])
def test_the_whole_corpus(spark: SparkSession, release: str, compared: Compared) -> None:
    assert corpus.WHOLE is not None
    ways = assert_same(spark, corpus.data_directories(corpus.WHOLE), WAYS[0], release=release)

    compared["logs of the corpus on Spark", "the local engine"] += sum(ways.values())
