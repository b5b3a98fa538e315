"""Threads of a load in columns: what interrupts or breaks one of them ends all of them soon, and reaches who asked."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from exhume.replay.survivors import run
from exhume.topic import OffsetsTopic

_BATCHES = 40
_BLOCK_SECONDS = 0.05


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
def test_an_interrupt_ends_a_load_within_a_second(
    threads: int, partitions: int, segments: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_BLOCK_BATCHES", 1)
    write(tmp_path, partitions, segments)
    assert load(tmp_path, threads) == partitions * _BATCHES
    before = threading.active_count()
    timer = threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))

    def slowly(done: int, total: int) -> None:
        if not timer.is_alive() and not timer.finished.is_set():
            timer.start()
        time.sleep(_BLOCK_SECONDS)

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        load(tmp_path, threads, slowly)

    # A whole segment would take two.
    assert time.monotonic() - begun < 1.3
    assert threading.active_count() == before


@_SHAPES
def test_an_error_in_a_thread_is_raised(
    threads: int, partitions: int, segments: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, partitions, segments)
    fold_segment = run._fold_segment
    asked: list[int] = []

    def breaks(log: Any, number: int, *arguments: Any) -> Any:
        asked.append(number)
        if len(asked) == 2 or segments == 1:
            raise MemoryError("no room")
        return fold_segment(log, number, *arguments)

    monkeypatch.setattr(run, "_fold_segment", breaks)
    before = threading.active_count()

    with pytest.raises(MemoryError, match="no room"):
        load(tmp_path, threads)
    assert threading.active_count() == before
