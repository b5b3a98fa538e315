"""Threads of a load in columns: what interrupts or breaks one of them ends all of them soon, and reaches the caller."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.kernels import scan
from exhume.codecs.log_directory import discover
from exhume.codecs.record_types import encode_value
from exhume.codecs.segment_reader import ReadOptions
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from exhume.replay import local
from exhume.replay.fold import log as log_folds
from exhume.replay.fold import merge
from exhume.replay.fold import part as part_folds
from exhume.replay.fold.part import _Folding
from exhume.replay.fold.rules import DONE, NOT_PLAIN_BATCH
from exhume.replay.fold.tables import STATUS
from exhume.topic import OffsetsTopic

_BATCHES = 40
_BLOCK_SECONDS = 0.05


class Results:
    """A function, and what it gave."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.results: list[Any] = []

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.results.append(self._function(*arguments, **options))
        return self.results[-1]


def write(directory: Path, partitions: int, segments: int) -> None:
    for number in range(partitions):
        with PartitionWriter(directory, number) as log:
            for segment in range(segments):
                if segment:
                    log.roll()
                for each in range(_BATCHES):
                    log.append([offset_commit("g", "t", each, 1, commit_timestamp_ms=1)], timestamp_ms=1)


def load(directory: Path, threads: int, progress: Any = None) -> int:
    options = ReadOptions(least_compiled_bytes=0, threads=threads, progress=progress)
    with OffsetsTopic(discover([str(directory)]), options) as topic:
        offsets: pa.Table = topic.state().offsets
        return int(offsets.num_rows)


#: In turn; the segments of one log side by side; many logs side by side.
_SHAPES = pytest.mark.parametrize(("threads", "partitions", "segments"), [(1, 1, 4), (2, 1, 6), (2, 6, 1)])


@_SHAPES
def test_an_interrupt_ends_a_load_soon(
    threads: int, partitions: int, segments: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "BLOCK_BATCHES", 1)
    write(tmp_path, partitions, segments)
    assert load(tmp_path, threads) == partitions * _BATCHES
    before = threading.active_count()
    is_interrupted, blocks = threading.Event(), itertools.count()

    def interrupt(*_: object) -> None:
        is_interrupted.set()
        raise KeyboardInterrupt

    def slowly(done: int, total: int) -> None:
        if next(blocks) == 4:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            is_interrupted.wait()
        time.sleep(_BLOCK_SECONDS)

    before_interrupt = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            load(tmp_path, threads, slowly)
    finally:
        signal.signal(signal.SIGINT, before_interrupt)

    assert next(blocks) < partitions * segments * _BATCHES / 2
    assert threading.active_count() == before


@_SHAPES
def test_an_error_in_a_thread_is_raised(
    threads: int, partitions: int, segments: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, partitions, segments)
    fold_range = _Folding._fold_range
    folded: list[int] = []

    def breaks(folding: _Folding, segment_range: Any) -> None:
        folded.append(segment_range.segment)
        if len(folded) == 2 or segments == 1:
            raise MemoryError("no room")
        fold_range(folding, segment_range)

    monkeypatch.setattr(_Folding, "_fold_range", breaks)
    before = threading.active_count()

    with pytest.raises(MemoryError, match="no room"):
        load(tmp_path, threads)
    assert threading.active_count() == before


@pytest.mark.parametrize("codec", [0, 4])
def test_a_segment_is_cut_between_batches(codec: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_folds, "_LEAST_BYTES", 500)
    monkeypatch.setattr(log_folds, "_LARGE_BYTES", 1000)
    with PartitionWriter(tmp_path, 0) as log:
        for each in range(_BATCHES):
            log.append([offset_commit("g", "t", each % 7, each, commit_timestamp_ms=1, metadata="m" * 50)], timestamp_ms=1, codec=codec)
    merges = Results(merge.merge)
    monkeypatch.setattr(merge, "merge", merges)

    assert [load(tmp_path, threads) for threads in (1, 2, 8)] == [7, 7, 7]
    assert len(merges.results) >= 2
    assert all(result is not None and result.is_done for result in merges.results)


def _inner(base_offset: int) -> bytes:
    return encode_batch([NewRecord(base_offset, 1, *offset_commit("x", "t", 0, 1, commit_timestamp_ms=1))], base_offset=base_offset)


def test_a_batch_within_a_record_is_no_place_to_cut_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks like any other: the part before it does not end there."""
    monkeypatch.setattr(log_folds, "_LEAST_BYTES", 100)
    with PartitionWriter(tmp_path, 0) as log:
        key, _ = offset_commit("g", "t", 0, 1, commit_timestamp_ms=1)
        value = encode_value(1, 1, {"committed_offset": 1, "metadata": "", "commit_timestamp_ms": 1, "expire_timestamp_ms": 1})
        log.append([(key, value + b"".join(map(_inner, range(1, 40))))], timestamp_ms=1)
        log.append([(key, value)], timestamp_ms=1)
    folds = Results(part_folds.fold_part)
    monkeypatch.setattr(log_folds, "fold_part", folds)

    assert load(tmp_path, 1) == load(tmp_path, 2) == 1
    statuses = [part.folds[-1].tables.counts[STATUS] for part in folds.results]
    assert NOT_PLAIN_BATCH in statuses
    assert statuses[-1] == DONE


@pytest.mark.parametrize("epochs", [(3, 2), (2, 3)])
@pytest.mark.parametrize("offsets", [(0, 40), (0, 20)])
def test_what_goes_back_where_a_segment_is_cut(
    epochs: tuple[int, int], offsets: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leader epochs and offsets that go back are found between parts, too."""
    monkeypatch.setattr(log_folds, "_LEAST_BYTES", 100)
    content = b"".join(
        encode_batch(
            [NewRecord(base + each, 1, *offset_commit("g", "t", each, 1, commit_timestamp_ms=1))],
            base_offset=base + each,
            partition_leader_epoch=epoch,
        )
        for base, epoch in zip(offsets, epochs, strict=True)
        for each in range(_BATCHES)
    )
    partition = tmp_path / "__consumer_offsets-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(content)
    loads = Results(local._load_in_columns)
    monkeypatch.setattr(local, "_load_in_columns", loads)

    assert load(tmp_path, 2) == _BATCHES
    assert len(loads.results) == (epochs == (2, 3) and offsets == (0, 40))
