"""Loads from folds of parts against loads of whole logs: every table, every finding, at many moments."""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.log_directory import PartitionDirectory, discover
from exhume.moments import Clock
from exhume.replay.broker_log import Stop, list_log, salvaged_batches
from exhume.replay.broker_start import open_strictly
from exhume.replay.fold.log import FoldSettings, fold_listed_part
from exhume.replay.fold.merge import NotMerged
from exhume.replay.fold.part import PartFold
from exhume.replay.fold.plan import plan_parts
from exhume.replay.local import state_of_loads
from exhume.replay.moment import Moment, cut_log
from exhume.replay.part_loads import load_parts
from exhume.replay.partition_load import LoadOptions, PartitionLoad, load_log
from exhume.replay.reading import CompiledLoad
from exhume.replay.releases import profile_for
from exhume.replay.topic_names import TopicNames
from tests import strategies
from tests.compared import Compared
from tests.logs import logs_of_brokers
from tests.written_batches import Written, encode_log

RELEASES = ("2.8.2", "3.7.2-new", "4.3.0")


def in_parts(
    partition: PartitionDirectory, stop: Stop, moments: Sequence[Moment | None], options: LoadOptions, most_bytes: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The load at each moment, as plain values.

    Raises:
        NotMerged: it cannot be had so.
    """
    log = list_log(partition, stop)
    settings = FoldSettings(options, log.start_offset, secrets.randbits(62), moments)
    sizes = [segment.end for segment in log.segments]
    parts = plan_parts(sizes, max(1, sum(sizes) // most_bytes))
    folds: list[PartFold] = []
    for part in parts:
        folded = fold_listed_part(list_log(partition, stop), part, settings, CompiledLoad(), is_part=len(parts) > 1)
        if folded is None:
            raise NotMerged
        folds.append(pickle.loads(pickle.dumps(folded)))
    log.end_offset = folds[-1].end_offset or 0
    for at in load_parts(log, folds, [fold.clock for fold in folds if fold.clock is not None], settings):
        yield at.moment, values(at.load, options, at.names)


def values(load: PartitionLoad, options: LoadOptions, names: TopicNames) -> dict[str, Any]:
    state = state_of_loads([load], options, names)
    return {name: table.to_pylist() for name, table in state.tables.items()} | {"findings": sorted(map(repr, state.findings))}


def whole(partition: PartitionDirectory, stop: Stop, at: Moment | None, options: LoadOptions) -> dict[str, Any]:
    names = TopicNames()
    log = cut_log(open_strictly(partition, stop), at, lenient=False)
    return values(load_log(log, options, names), options, names)


def assert_same(partition: PartitionDirectory, stop: Stop, release: str, moments: Sequence[Moment | None], most_bytes: int) -> int:
    """Compares the loads at these moments; gives how many there were, 0 for a log that is not folded."""
    options = LoadOptions(profile_for(release))
    try:
        found = dict(in_parts(partition, stop, moments, options, most_bytes))
    except NotMerged:
        return 0
    assert sorted(found) == list(range(len(moments)))
    for number, at in enumerate(moments):
        assert found[number] == whole(partition, stop, at, options), (partition.path, release, at)
    return len(moments)


def times_of(partition: PartitionDirectory, count: int) -> list[int]:
    """Some times of this log, and one on either side of it."""
    times = sorted(
        {
            record.timestamp_ms
            for batch in salvaged_batches(partition)
            for record in batch.read()
            if record.timestamp_ms is not None and record.timestamp_ms > 0
        }
    )
    if not times:
        return [1]
    return sorted({times[0] - 1, *times[:: max(1, len(times) // count)], times[-1]})


@pytest.mark.slow
@pytest.mark.parametrize(("most_bytes", "turn"), [(300, 0), (100_000, 1)])
def test_bundled_logs_load_from_their_parts(most_bytes: int, turn: int, compared: Compared) -> None:
    count = 0
    logs = [found for found in logs_of_brokers() if sum(segment.size_bytes for segment in found.partition.segments) < 100_000]
    for number, found in enumerate(logs):
        partition, stop = found.partition, found.stop
        if number % 3 == turn:
            count += assert_same(partition, stop, RELEASES[number % 9 // 3], [None], most_bytes)
        if number % 6 == turn:
            clock: Clock = "commit" if number % 12 == turn else "append"
            moments = [Moment(time_ms=time_ms, clock=clock) for time_ms in times_of(partition, 2)]
            count += assert_same(partition, stop, "4.3.0", moments, most_bytes)
        if number % 6 == turn + 2:
            at = Moment(last_offsets={partition.offsets_partition: found.log.end_offset * 2 // 3})
            count += assert_same(partition, stop, "2.8.2", [at], most_bytes)

    assert count > 60
    compared["loads of parts", "loads of whole logs"] += count


@strategies.examples(25)
@given(
    batches=st.one_of(strategies.logs(strategies.healthy_batches()), strategies.transaction_logs(), strategies.old_logs()),
    most_bytes=st.sampled_from([100, 300, 5000]),
    release=st.sampled_from(RELEASES),
)
def test_a_generated_log_loads_from_its_parts_at_every_record(
    batches: list[Written], most_bytes: int, release: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("log") / "__consumer_offsets-0"
    directory.mkdir()
    content, headers = encode_log(batches)
    (directory / f"{0:020d}.log").write_bytes(content)
    (partition,) = discover([directory]).partitions

    assert_same(partition, "clean", release, [None], most_bytes)
    offsets = {record.record_offset for batch in salvaged_batches(partition) for record in batch.read()}
    ends = {header.last_offset for header in headers}
    for last_offset in sorted({0} | {beside for offset in offsets | ends for beside in (offset - 1, offset, offset + 1) if beside >= 0}):
        assert_same(partition, "clean", release, [Moment(last_offsets={0: last_offset})], most_bytes)
    times = times_of(partition, 50)
    assert_same(partition, "clean", release, [Moment(time_ms=time_ms) for time_ms in times], most_bytes)
