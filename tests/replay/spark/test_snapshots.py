"""States at many moments in one pass, against a state for each of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import exhume
from exhume import spark as exhume_spark
from exhume.codecs.log_directory import discover
from exhume.errors import RequestError
from exhume.replay.snapshot_times import snapshot_times
from exhume.replay.spark.wide import plain_schema
from tests.compared import Compared
from tests.judges import corpus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLES = ("groups", "members", "assignments", "offsets", "pending_offsets", "open_transactions", "loads")


def _rows(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(map(repr, rows))


def assert_same(spark: SparkSession, place: Path, **options: Any) -> int:
    with exhume.open(place) as topic:
        times = [time_ms for time_ms in topic.batches().read_all()["max_timestamp_ms"].to_pylist() if time_ms is not None]
    first, last = min(times), max(times)
    step = max(1, (last - first) // 5)
    found: dict[str, dict[int, list[dict[str, Any]]]] = {name: {} for name in _TABLES}
    with exhume_spark.snapshots(
        spark,
        place,
        every=step,
        from_time_ms=first - 1,
        to_time_ms=last + step,
        tables=_TABLES,
        least_bytes=0,
        stretch_bytes=3000,
        **options,
    ) as states:
        for name in _TABLES:
            for row in states[name].toArrow().to_pylist():
                time_ms = row["at_time_ms"] if name == "loads" else row.pop("at_time_ms")
                found[name].setdefault(time_ms, []).append(row)
        ways = set(states.ways.values())
    assert "fold" in ways
    moments = 0
    for time_ms in snapshot_times([], step, first - 1, last + step):
        with exhume.open(place) as topic:
            state = topic.state(at_time_ms=time_ms, **options)
        for name in _TABLES:
            table = state.tables[name]
            assert _rows(found[name].get(time_ms, [])) == _rows(table.cast(plain_schema(table.schema)).to_pylist()), (time_ms, name)
        moments += 1
    return moments


@pytest.mark.parametrize(
    ("story", "release"), [("4.3.0-transactions", "4.3.0"), ("2.4.1-transactions", "2.8.2"), ("4.3.0-consumer-groups", "4.3.0")]
)
def test_each_moment_is_a_state_of_its_own(spark: SparkSession, story: str, release: str, compared: Compared) -> None:
    data = min(data for case in corpus.cases() if case.name == story for data in case.data_directories.values())

    compared["moments of snapshots", "a state for each"] += assert_same(spark, data, release=release)


def test_moments_lie_at_even_steps() -> None:
    partitions = discover([corpus.BUNDLED / "4.3.0-transactions" / "data"]).partitions
    times = snapshot_times(partitions, "10s")

    assert all(time_ms % 10_000 == 0 for time_ms in times)
    assert times == list(range(times[0], times[-1] + 1, 10_000))
    assert snapshot_times(partitions, "1h", 0, 7_200_000) == [0, 3_600_000, 7_200_000]
    with pytest.raises(RequestError, match="not a step"):
        snapshot_times(partitions, "soon")
    with pytest.raises(RequestError, match="moments"):
        snapshot_times(partitions, 1, 0, 10**9)
