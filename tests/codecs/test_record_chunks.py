"""Chapters of a log that kernels read, against those of the plain reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exhume.codecs import schemas
from exhume.codecs.log_directory import discover
from exhume.codecs.record_chunks import record_chunks
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.findings import Findings
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit, tombstone

_NEVER = 1 << 60


def told(directory: Path, least_bytes: int) -> list[list[dict[str, Any]]]:
    """All commits and all other records, as rows."""
    found: list[list[dict[str, Any]]] = [[], []]
    with discover([str(directory)]) as evidence:
        for chunk in record_chunks(SegmentReader(evidence, ReadOptions(least_compiled_bytes=least_bytes), Findings())):
            found[0] += chunk.commits.cast(schemas.decoded()["offset_commit"]).to_pylist()
            found[1] += chunk.others.to_pylist()
    return found


def test_kernels_and_the_plain_reading_tell_the_same(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        for number in range(40):
            group, topics = f"group-{number % 3}", ("orders", "größe", "x" * 70)
            commits = [offset_commit(group, topic, each, number, commit_timestamp_ms=5) for topic in topics for each in range(3)]
            log.append([*commits, group_metadata(group, {"protocol_type": "consumer", "generation": number})])
            if number % 7 == 0:
                key, value = commits[0]
                assert key is not None
                # A group that is no UTF-8, a version that nobody knows, a key that is cut.
                log.append(
                    [
                        (key.replace(b"group", b"gr\xffup"), value),
                        (key, b"\0\x63" + (value or b"")),
                        (key[:-1], value),
                        tombstone(commits[1]),
                    ]
                )

    by_kernels, plainly = told(tmp_path, 0), told(tmp_path, _NEVER)

    assert by_kernels == plainly
    assert len(plainly[0]) == 40 * 9 + 6 * 4
