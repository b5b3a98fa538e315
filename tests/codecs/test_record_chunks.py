"""Chapters of a log that kernels read, against those of the plain reading."""

from __future__ import annotations

from pathlib import Path

from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit, tombstone
from tests.twins import COMPILED, PLAIN, chunk_rows


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

    by_kernels, plainly = chunk_rows(tmp_path, COMPILED), chunk_rows(tmp_path, PLAIN)

    assert by_kernels == plainly
    assert len(plainly[0]) == 40 * 9 + 6 * 4
