"""A segment in parts: every row once, where the borders lie, and what damage at a border does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from exhume.codecs.columns.tables import record_batches
from exhume.codecs.log_directory import Evidence, SegmentFile, discover
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.codecs.segment_windows import windows
from exhume.findings import Findings
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from tests.twins import COMPILED, PLAIN, reading

TIME_MS = 1_700_000_000_000
CUTS = (15_000, 30_000, 45_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A segment of 80 batches with an offset index."""
    with PartitionWriter(tmp_path / "data", 3) as partition:
        for batch in range(80):
            commits = [offset_commit("g", "t", n, batch, commit_timestamp_ms=TIME_MS) for n in range(20)]
            partition.append(commits, timestamp_ms=TIME_MS + batch)
    return tmp_path / "data" / "__consumer_offsets-3" / "00000000000000000000.log"


def opened(path: Path) -> tuple[Evidence, SegmentFile]:
    evidence = discover([str(path.parent.parent)])
    return evidence, evidence.partitions[0].segments[0]


def offsets(evidence: Evidence, segment: SegmentFile, least_bytes: int = COMPILED) -> tuple[list[int], list[int], Findings]:
    """Record offsets and byte positions of one segment, or of its window."""
    [directory] = evidence.log_directories
    partition = replace(directory.partitions[0], segments=[segment])
    findings = Findings()
    reader = SegmentReader(Evidence([replace(directory, partitions=[partition])], findings), ReadOptions(), findings)
    with reading(least_bytes):
        rows = [row for batch in record_batches(reader, RecordFilter()) for row in batch.to_pylist()]
    return [row["record_offset"] for row in rows], [row["byte_position"] for row in rows], findings


@pytest.mark.parametrize("least_bytes", [PLAIN, COMPILED])
def test_parts_hold_every_record_once(path: Path, least_bytes: int) -> None:
    evidence, segment = opened(path)
    parts = [part for part in windows(segment, CUTS) if part is not None]
    whole = offsets(evidence, segment)
    assert len(parts) == 4
    found = [offsets(evidence, part, least_bytes) for part in parts]

    assert [offset for part in found for offset in part[0]] == whole[0]
    assert [position for part in found for position in part[1]] == whole[1]
    assert not any(len(part[2]) for part in found)


def test_borders_lie_at_the_first_batch_behind_what_was_wanted(path: Path) -> None:
    evidence, segment = opened(path)
    positions = sorted(set(offsets(evidence, segment)[1]))
    for cut, part in zip(CUTS, windows(segment, CUTS), strict=False):
        assert part is not None
        assert part.window is not None
        assert part.window.end == min(position for position in positions if position >= cut)


def test_cuts_behind_the_last_batch_leave_a_part_empty(path: Path) -> None:
    _, segment = opened(path)
    parts = windows(segment, (segment.size_bytes - 10,))

    assert [part is None for part in parts] == [False, True]


@pytest.mark.parametrize("index", ["missing", "nonsense", "of zeros"])
def test_an_index_that_is_no_help_costs_no_record(path: Path, index: str) -> None:
    beside = path.with_suffix(".index")
    if index == "missing":
        beside.unlink()
    else:
        beside.write_bytes(b"\0\0\0\1\0\0\2\2" * 40 if index == "nonsense" else bytes(800))
    evidence, segment = opened(path)
    found = [offset for part in windows(segment, CUTS) if part is not None for offset in offsets(evidence, part)[0]]

    assert found == offsets(evidence, segment)[0]


def test_damage_at_a_border_means_one_part(path: Path) -> None:
    _, segment = opened(path)
    border = windows(segment, CUTS)[1]
    assert border is not None
    assert border.window is not None
    content = bytearray(path.read_bytes())
    content[border.window.end + 70] ^= 1
    path.write_bytes(content)
    _, segment = opened(path)

    assert windows(segment, CUTS) == [segment, None, None, None]


def test_damage_inside_a_part_is_found_there(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[22_000:22_100] = b"\xff" * 100
    path.write_bytes(content)
    evidence, segment = opened(path)
    whole_offsets, _, whole_findings = offsets(evidence, segment)
    parts = [offsets(evidence, part) for part in windows(segment, CUTS) if part is not None]

    assert len(parts) == 4
    assert [offset for part in parts for offset in part[0]] == whole_offsets
    assert [finding for part in parts for finding in part[2]] == list(whole_findings)
    assert whole_findings.has_damage
