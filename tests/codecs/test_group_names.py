"""The names of groups, against the dump of every record."""

from __future__ import annotations

from pathlib import Path

import pytest

import exhume
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit, tombstone
from tests.compared import Compared
from tests.judges import corpus


@pytest.mark.parametrize("share", corpus.SHARES)
def test_names_are_those_of_the_dump(share: int, compared: Compared) -> None:
    for directory in corpus.data_directories(share=share):
        with exhume.open(directory) as topic:
            names = {name for batch in topic.dump() for name in batch["group"].unique().to_pylist()}
            assert topic.group_names() == sorted(names - {None})
            compared["names of groups", "the dump"] += len(names)


def test_a_group_that_is_gone_has_a_name(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        log.append(
            [offset_commit("one", "orders", 0, 1, commit_timestamp_ms=1), offset_commit("two", "orders", 0, 1, commit_timestamp_ms=1)],
            timestamp_ms=1,
        )
        log.append([tombstone(group_metadata("three", {"members": []}))], timestamp_ms=1)
        log.append([tombstone(offset_commit("two", "orders", 0, 1, commit_timestamp_ms=1))], timestamp_ms=1)

    with exhume.open(tmp_path) as topic:
        assert topic.group_names() == ["one", "three", "two"]
