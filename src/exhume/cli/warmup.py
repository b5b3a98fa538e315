"""`exhume warmup`."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import typer

from exhume.cli.escape import printable


def warmup_command() -> None:
    """Compile ahead what makes large logs fast, and keep it.

    Without it, the first large log waits for that: about half a minute. Compiled code is kept in the cache directory of the user
    (XDG_CACHE_HOME, or ~/.cache) for this release of exhume; where that cannot be written, every process compiles for itself.

    Example: exhume warmup
    """
    from exhume.codecs import kernel_cache
    from exhume.codecs.log_directory import discover
    from exhume.codecs.segment_reader import ReadOptions
    from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit
    from exhume.topic import OffsetsTopic

    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="exhume-warmup-") as scratch:
        with PartitionWriter(Path(scratch), 0) as log:
            for number in range(2):
                log.append([offset_commit("group", "topic", 0, number, commit_timestamp_ms=1, metadata="text")], codec=4 * number)
                log.append([group_metadata("group", {"protocol_type": "consumer", "generation": 1})])
                log.roll()
        for threads in (1, 2):
            with OffsetsTopic(discover([scratch]), ReadOptions(least_compiled_bytes=0, threads=threads)) as topic:
                topic.state()
                topic.history("group")
                for reader in (topic.batches(), topic.records(), topic.offset_commits(), topic.group_metadata(), topic.dump()):
                    reader.read_all()
    place = kernel_cache.directory() if kernel_cache.is_warm() else None
    where = f"kept in {printable(str(place))}" if place else "and could not be kept: there is no cache directory that can be written"
    typer.echo(f"compiled in {time.monotonic() - start:.0f} s, {where}", err=True)
