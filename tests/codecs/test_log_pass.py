"""Collectors on another thread take the same batches and records as collectors on the thread of the reader."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from exhume.codecs.columns import blocks
from exhume.codecs.columns.blocks import Block
from exhume.codecs.columns.following import Following
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.kernels import records, scan
from exhume.codecs.log_directory import PartitionDirectory, discover
from exhume.codecs.log_pass import Beside, LogCollector, collect
from exhume.codecs.salvage import Hole
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.findings import Findings
from exhume.fixtures.log_writer import PartitionWriter
from tests.analysis.group_records import classic

BATCHES = 40


class Places(LogCollector):
    """What it takes: the positions of batches, and the offset of each record with the position of its batch."""

    def __init__(self, wait_s: float = 0) -> None:
        self.taken: list[object] = []
        self._wait_s = wait_s

    def of(self, partition: PartitionDirectory) -> Iterable[LogCollector]:
        return [self]

    def add_hole(self, hole: Hole) -> None:
        self.taken.append(hole.byte_position)

    def add_block(self, block: Block) -> None:
        time.sleep(self._wait_s)
        self.taken.append(block.rows[:, scan.POSITION].tolist())

    def add_records(self, block: RecordBlock) -> None:
        positions = block.batches.columns[scan.POSITION][block.records[records.BATCH]]
        self.taken += zip(block.records[records.OFFSET].tolist(), positions.tolist(), strict=True)


@pytest.mark.parametrize("threads", [1, 2])
def test_collectors_beside_the_reader_take_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, threads: int) -> None:
    monkeypatch.setattr(blocks, "_BLOCK_BATCHES", 3)
    with PartitionWriter(tmp_path, 0) as log:
        for generation in range(1, BATCHES + 1):
            log.append([classic(generation, a=[0])])
    [path] = log.directory.glob("*.log")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content + bytes(100))
    here, beside = Places(), Places(wait_s=0.002)

    with Following(threads) as following:
        collect(SegmentReader(discover([str(tmp_path)]), ReadOptions(), Findings()), [here, Beside(following, [beside])])

    assert len(here.taken) > BATCHES
    assert beside.taken == here.taken
