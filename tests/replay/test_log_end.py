"""The end of a log without index files: a kernel finds it where a walk from batch to batch does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from exhume.codecs.kernels import scan
from exhume.codecs.log_directory import PartitionDirectory, discover
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from exhume.replay import broker_log, broker_start
from exhume.replay.broker_log import Stop
from exhume.replay.broker_start import open_strictly


def partition_of(directory: Path) -> PartitionDirectory:
    return discover([directory]).log_directories[0].partitions[0]


def end_of(partition: PartitionDirectory, stop: Stop) -> object:
    log = open_strictly(partition, stop)
    return log.end_offset, [segment.end for segment in log.segments], str(log.refused), [str(loss) for loss in log.losses]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with PartitionWriter(tmp_path, 3) as log:
        for number in range(40):
            log.append(
                [offset_commit("g", "t", number, 1, commit_timestamp_ms=1)], magic=(0, 1, 2)[number % 3], codec=(0, 0, 4)[number % 3]
            )
        log.append_marker(producer_id=7, producer_epoch=0, timestamp_ms=1)
    for index in tmp_path.rglob("*.index"):
        index.unlink()
    return tmp_path


@pytest.mark.parametrize("stop", ["clean", "unclean"])
def test_the_end_of_a_damaged_log_is_where_a_walk_ends(directory: Path, monkeypatch: pytest.MonkeyPatch, stop: Stop) -> None:
    # Blocks of three batches: the last block may be full, or not.
    monkeypatch.setattr(scan, "BLOCK_BATCHES", 3)
    segment = next(directory.rglob("*.log"))
    whole = segment.read_bytes()
    chosen = random.Random(1)
    for number in range(30):
        content = bytearray(whole[: len(whole) - chosen.choice((0, 1, 20, 70, 200))] if number else whole)
        for _ in range(chosen.choice((0, 1, 2)) if number else 0):
            content[chosen.randrange(len(content))] = chosen.choice((0, 1, 2, 3, 0x7F, 0xFF))
        segment.write_bytes(content)
        found = end_of(partition_of(directory), stop)
        with monkeypatch.context() as walking:
            walking.setattr(broker_log, "_last_whole_batch", lambda _, position: position)
            walking.setattr(broker_start, "_valid_bytes", broker_start._valid_bytes_by_walk)
            expected = end_of(partition_of(directory), stop)

        assert found == expected, number
