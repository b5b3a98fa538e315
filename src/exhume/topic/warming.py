"""Compiling ahead what makes large logs fast."""

from __future__ import annotations

import tempfile
from pathlib import Path

from exhume.codecs import kernel_cache
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit
from exhume.topic import OffsetsTopic


def warm_up() -> Path | None:
    """Compile the kernels that are not compiled yet. Where they are kept; None where they could not be."""
    with tempfile.TemporaryDirectory(prefix="exhume-warmup-") as scratch:
        with PartitionWriter(Path(scratch), 0) as log:
            for number in range(2):
                log.append([offset_commit("group", "topic", 0, number, commit_timestamp_ms=1, metadata="text")], codec=4 * number)
                log.append([offset_commit("group", "topic", 0, number, commit_timestamp_ms=1, version=1)], magic=number)
                log.append([group_metadata("group", {"protocol_type": "consumer", "generation": 1})])
                log.roll()
        for threads in (1, 2):
            with OffsetsTopic(discover([scratch]), ReadOptions(least_compiled_bytes=0, threads=threads)) as topic:
                topic.state()
                topic.history("group")
                topic.diagnose()
                for reader in (topic.batches(), topic.records(), topic.offset_commits(), topic.group_metadata(), topic.dump()):
                    reader.read_all()
    return kernel_cache.directory() if kernel_cache.is_warm() else None
