"""Commits of groups that nobody asks for, damaged byte by byte: what ends a fold of all groups ends that of others, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exhume.codecs.columns.blocks import readable
from exhume.codecs.kernels import scan
from exhume.codecs.record_types import LEGACY_OFFSET_COMMIT, OFFSET_COMMIT
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from exhume.int64 import LARGEST_INT64
from exhume.replay.fold.kernels.batches import fold
from exhume.replay.fold.kernels.chosen_groups import choose_groups, fold_chosen
from exhume.replay.fold.rules import BEYOND_OFFSET, DONE, rules_of
from exhume.replay.fold.tables import GROUPS, HAS_LEGACY_COMMITS, NEXT_OFFSET, RECORDS, STATUS, new_tables, with_room
from exhume.replay.reading import LoadInputs
from exhume.replay.releases import profile_for

_TOPICS = ("t", "orders.of-a-shop", "prod.eu-west-1.inventory.changed.avro.v1")
_METADATA = ("", "at 7", "", "", "checkpoint 12", "ünder way", "m" * 33, "")


def _log(directory: Path, topic: str, version: int, record_type: int = OFFSET_COMMIT) -> bytes:
    """Two batches of commits of a group."""
    with PartitionWriter(directory, 0) as log:
        for number in range(2):
            commits = [
                offset_commit("a-service", topic, partition, 100 * number, metadata=metadata, commit_timestamp_ms=5, version=version)
                for partition, metadata in enumerate(_METADATA)
            ]
            log.append([(record_type.to_bytes(2) + key[2:], value) for key, value in commits if key is not None])
    (segment,) = directory.glob("*/*.log")
    return segment.read_bytes()


def _folded(content: bytes, *, chosen: bool) -> tuple[int, ...]:
    rules = rules_of(profile_for("4.3.0"), LoadInputs(), 0, None)
    rules[BEYOND_OFFSET] = LARGEST_INT64
    tables = new_tables(7)
    if chosen:
        tables = choose_groups(["another"], tables, rules)
    tables = with_room(tables, 64, 4096, 4)
    rows = np.empty((4, scan.COLUMNS), np.int64)
    data = readable(content)
    count, _ = scan.scan(data, 0, len(data), False, rows)
    bodies = np.stack([rows[:, scan.POSITION] + scan.HEADER_BYTES, rows[:, scan.POSITION] + rows[:, scan.SIZE]], axis=1)
    if chosen:
        done = fold_chosen(rows, 0, count, data, bodies, 0, rules, tables, np.full(3, LARGEST_INT64))
    else:
        done = fold(rows, 0, count, data, bodies, 0, rules, tables)
    counts = tables.counts
    return (
        int(done),
        int(counts[STATUS]),
        int(counts[RECORDS]),
        int(counts[NEXT_OFFSET]),
        int(counts[GROUPS]) - chosen,
        int(counts[HAS_LEGACY_COMMITS]),
    )


@pytest.mark.one_of(12)
@pytest.mark.parametrize("topic", _TOPICS)
@pytest.mark.parametrize("version", [0, 1, 3])
def test_damage_is_seen_in_what_is_passed_over(topic: str, version: int, tmp_path: Path) -> None:
    whole = _log(tmp_path, topic, version)
    rows = np.empty((4, scan.COLUMNS), np.int64)
    scan.scan(readable(whole), 0, len(whole), False, rows)
    start = int(rows[1, scan.POSITION]) + scan.HEADER_BYTES
    assert _folded(whole, chosen=True) == _folded(whole, chosen=False) == (2, DONE, 2 * len(_METADATA), 2 * len(_METADATA), 1, 0)
    ended = 0
    for position in range(start, len(whole)):
        byte = whole[position]
        for changed in {byte ^ 1, byte ^ 2, byte ^ 0x80, byte - 2 & 0xFF, byte + 2 & 0xFF, 0, 0xFF} - {byte}:
            content = whole[:position] + bytes([changed]) + whole[position + 1 :]
            expected = _folded(content, chosen=False)
            assert _folded(content, chosen=True) == expected, (position - start, byte, changed)
            ended += expected[1] != DONE
    assert ended > 100


def test_commits_with_keys_of_version_0_are_noted_where_they_are_passed_over(tmp_path: Path) -> None:
    log = _log(tmp_path, "t", 0, LEGACY_OFFSET_COMMIT)

    assert _folded(log, chosen=True) == _folded(log, chosen=False) == (2, DONE, 2 * len(_METADATA), 2 * len(_METADATA), 1, 1)
