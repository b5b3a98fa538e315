"""How much of a log is there: against counting offset by offset, in parts, and what compaction, deletion and damage leave."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import exhume
from exhume.analysis.log_extent import CoveredOffsets, ExtentReader, LogExtent, LogExtents, log_extents
from exhume.analysis.log_gaps import Gap, GapReader, LogGaps
from exhume.arrow_rows import Origin
from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.batches import BatchWalk
from exhume.codecs.log_directory import Evidence, PartitionDirectory, discover
from exhume.codecs.log_pass import collect_segment
from exhume.codecs.segment_reader import ReadOptions, SegmentBatch, SegmentReader
from exhume.findings import Findings
from exhume.fixtures.log_writer import PartitionWriter, offset_commit, write_checkpoint
from tests.judges import corpus

_LOGS = ("2.8.2-compaction", "4.3.0-compaction", "0.10.2.2-compaction", "4.3.0-transactions", "2.8.2-lifecycle", "0.9.0.1-compression")


def extents_of(directory: Path) -> LogExtents:
    with discover([str(directory)]) as evidence:
        return log_extents(SegmentReader(evidence, ReadOptions(), Findings()))


def extent_of(directory: Path) -> LogExtent:
    (extent,) = extents_of(directory).values()
    return extent


def gaps_of(directory: Path) -> dict[Origin, LogGaps]:
    """The gaps of each log, from reading all of its records."""
    readers: dict[Origin, tuple[ExtentReader, GapReader]] = {}
    with discover([str(directory)]) as evidence:
        reader = SegmentReader(evidence, ReadOptions(), Findings())
        directories: dict[Origin, PartitionDirectory] = {(each.replica, each.offsets_partition): each for each in evidence.partitions}
        for partition, segment, behind in reader.segments():
            counters = readers.setdefault((partition.replica, partition.offsets_partition), (ExtentReader(), GapReader()))
            collect_segment(reader, partition, segment, behind, counters)
        return {origin: gaps.gaps(extent.extent(directories[origin])) for origin, (extent, gaps) in readers.items()}


# --- Offset by offset


@dataclass
class Counted:
    """One log, counted offset by offset."""

    highest: int = -1
    first: int | None = None
    missing: set[int] = field(default_factory=set)
    damaged_up_to: int = -1

    def meet(self, record_offset: int) -> None:
        self.missing.update(range(self.highest + 1, record_offset))
        self.highest = max(self.highest, record_offset)


def counted(directory: Path) -> dict[Origin, Counted]:
    with exhume.open(directory) as topic:
        batches, records = topic.batches().read_all().to_pylist(), topic.records().read_all().to_pylist()
    offsets: dict[tuple[str, int], list[int]] = {}
    for row in records:
        offsets.setdefault((row["path"], row["byte_position"]), []).append(row["record_offset"])
    found: dict[Origin, Counted] = {}
    for batch in batches:
        log = found.setdefault((batch["replica"], batch["offsets_partition"]), Counted())
        own = offsets.get((batch["path"], batch["byte_position"]), [])
        log.first = next(iter(own), None) if log.first is None else log.first
        for record_offset in own:
            log.meet(record_offset)
        log.missing.update(range(log.highest + 1, batch["last_offset"] + 1))
        log.highest = max(log.highest, batch["last_offset"])
        if batch["crc_status"] in ("mismatch", "unreadable"):
            log.damaged_up_to = max(log.damaged_up_to, batch["last_offset"])
    return found


def assert_counted(directory: Path) -> None:
    extents, gaps = extents_of(directory), gaps_of(directory)
    for origin, log in counted(directory).items():
        extent = extents[origin]
        missing = sorted({*log.missing, *range(log.highest + 1, extent.end_offset)})
        complete_from = max(max(log.missing, default=-1), log.damaged_up_to) + 1
        assert (extent.first_offset, extent.next_offset) == (log.first, log.highest + 1)
        assert (extent.missing_offsets, extent.complete_from_offset) == (len(missing), complete_from)
        assert gaps[origin].missing_offsets == len(missing)
        assert [offset for gap in gaps[origin] for offset in range(gap.first_offset, gap.last_offset + 1)] == missing


@pytest.mark.parametrize("name", _LOGS)
def test_logs_of_brokers_are_counted_as_offset_by_offset(name: str) -> None:
    assert_counted(corpus.BUNDLED / name / "data")


@pytest.mark.parametrize("seed", range(12))
def test_compacted_logs_are_counted_as_offset_by_offset(tmp_path: Path, seed: int) -> None:
    write_at_random(tmp_path, seed)

    assert_counted(tmp_path)


def write_at_random(directory: Path, seed: int) -> None:
    """Batches that lack records or all of them, gaps between them, several segments, offsets that go back, and a batch that is damaged."""
    rng = random.Random(seed)
    with PartitionWriter(directory, 7, first_offset=rng.choice([0, 0, 9])) as log:
        for _ in range(rng.randint(1, 30)):
            if rng.random() < 0.2:
                log.next_offset += rng.randint(1, 5)
            if seed % 3 == 0 and rng.random() < 0.1:
                log.next_offset = max(log.next_offset - rng.randint(1, 6), 0)
            append_thin(log, rng.randint(1, 5), lambda _: rng.random() < 0.7)
            base_offset = log.next_offset + rng.choice([0, 3])
            if rng.random() < 0.1 and not (log.directory / f"{base_offset:020d}.log").exists():
                log.roll(base_offset)
    if seed % 4 == 0:
        damage(next(path for path in sorted(directory.rglob("*.log")) if path.stat().st_size), rng)


def append_thin(log: PartitionWriter, count: int, is_kept: Callable[[int], bool], codec: int = 0) -> None:
    """A batch that a cleaner has been at: its header has the offsets of all records, and some of these are left."""
    key, value = offset_commit("g", "t", 0, 1, commit_timestamp_ms=5)
    base, last = log.next_offset, log.next_offset + count - 1
    kept = [NewRecord(offset, 5, key, value) for offset in range(base, last + 1) if is_kept(offset)]
    log.append_bytes(encode_batch(kept, base_offset=base, last_offset_delta=count - 1, codec=codec), last, 5)


def damage(segment: Path, rng: random.Random) -> None:
    content = bytearray(segment.read_bytes())
    batch = rng.choice([*BatchWalk(bytes(content))])
    content[batch.end_position - 1] ^= 1
    segment.write_bytes(content)


# --- In parts


@pytest.mark.parametrize("seed", range(12))
def test_parts_of_a_log_joined_are_the_whole(tmp_path: Path, seed: int) -> None:
    write_at_random(tmp_path, seed)
    with discover([str(tmp_path)]) as evidence:
        (directory,) = evidence.partitions
        whole = read(evidence, 0, None).extent(directory)
        for at in range(len([*items(evidence)]) + 1):
            first, second = read(evidence, 0, at), read(evidence, at, None)
            first.join(pickle.loads(pickle.dumps(second)))
            joined = first.extent(directory)
            assert joined.complete_from_offset == whole.complete_from_offset
            assert (joined.first_offset, joined.next_offset, joined.end_offset) == (whole.first_offset, whole.next_offset, whole.end_offset)
            assert (joined.first_damage_offset, joined.last_timestamp_ms) == (whole.first_damage_offset, whole.last_timestamp_ms)
            assert seed % 3 == 0 or joined == whole


def items(evidence: Evidence) -> Iterator[SegmentBatch]:
    return SegmentReader(evidence, ReadOptions(), Findings()).batches()


def read(evidence: Evidence, first: int, behind: int | None) -> ExtentReader:
    """The extent of some batches of the log."""
    reader = ExtentReader()
    for each in islice(items(evidence), first, behind):
        reader.add_batch(each)
    return reader


# --- What takes records


@pytest.mark.parametrize("codec", [0, 3])
def test_the_last_gap_may_lie_in_a_batch(tmp_path: Path, codec: int) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        append_thin(log, 5, lambda offset: offset != 1, codec)
        append_thin(log, 5, lambda offset: offset in (6, 8, 9), codec)
        append_thin(log, 5, lambda _: True, codec)

    extent = extent_of(tmp_path)

    assert (extent.complete_from_offset, extent.missing_offsets, extent.next_offset) == (8, 3, 15)
    assert not extent.is_complete_after(6)
    assert extent.is_complete_after(8)


def test_the_header_of_the_last_batch_tells_of_records_that_it_lacks_at_its_end(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        append_thin(log, 5, lambda offset: offset < 3)

    extent = extent_of(tmp_path)

    assert (extent.first_offset, extent.next_offset, extent.complete_from_offset, extent.missing_offsets) == (0, 5, 5, 2)


def test_records_of_a_batch_whose_end_is_cut_off_are_missing_and_damaged(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        append_thin(log, 5, lambda offset: offset != 1)
        append_thin(log, 1, lambda _: True)
    segment = next(tmp_path.rglob("*.log"))
    segment.write_bytes(segment.read_bytes()[:-10])

    extent = extent_of(tmp_path)

    assert (extent.missing_offsets, extent.damaged_offsets, extent.first_damage_offset, extent.complete_from_offset) == (2, 1, 5, 6)


def test_an_empty_newest_segment_that_begins_later_lacks_the_tail_before_it(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        append_thin(log, 3, lambda _: True)
        log.roll(10)

    extent = extent_of(tmp_path)

    assert (extent.next_offset, extent.end_offset, extent.complete_from_offset, extent.missing_offsets) == (3, 10, 0, 7)


def test_a_log_without_a_batch_begins_and_ends_where_its_segment_does(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7, first_offset=4):
        pass

    extent = extent_of(tmp_path)

    assert (extent.first_offset, extent.start_offset, extent.next_offset, extent.end_offset) == (None, 4, 4, 4)
    assert (extent.complete_from_offset, extent.missing_offsets) == (4, 4)


def test_nothing_up_to_a_damaged_batch_can_be_relied_on(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        for _ in range(3):
            append_thin(log, 2, lambda _: True)
    segment = next(tmp_path.rglob("*.log"))
    content = bytearray(segment.read_bytes())
    content[[*BatchWalk(bytes(content))][1].end_position - 3] ^= 1
    segment.write_bytes(content)

    extent = extent_of(tmp_path)

    assert (extent.first_damage_offset, extent.complete_from_offset, extent.missing_offsets) == (2, 4, 0)


def test_a_gap_says_what_took_its_records_as_far_as_the_log_shows_it(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        log.next_offset = 2
        append_thin(log, 3, lambda offset: offset != 3)
        log.next_offset = 8
        append_thin(log, 1, lambda _: True)
        log.next_offset = 12
        append_thin(log, 2, lambda _: True)
        append_thin(log, 2, lambda _: True)
    write_checkpoint(tmp_path / "log-start-offset-checkpoint", [("__consumer_offsets", 7, 2)])
    write_checkpoint(tmp_path / "cleaner-offset-checkpoint", [("__consumer_offsets", 7, 8)])
    segment = next(tmp_path.rglob("*.log"))
    content = bytearray(segment.read_bytes())
    batch = [*BatchWalk(bytes(content))][-1]
    content[batch.byte_position + 16] = 9
    segment.write_bytes(content[:-20])

    (gaps,) = gaps_of(tmp_path).values()

    assert [*gaps] == [
        Gap(0, 1, "deletion"),
        Gap(3, 3, "compaction"),
        Gap(5, 7, "compaction"),
        Gap(9, 11, "unknown"),
    ]
    assert (gaps.extent.log_start_offset, gaps.extent.cleaner_offset, gaps.first_damage_offset) == (2, 8, 14)
    assert [*gaps.between(1, 5)] == [Gap(1, 1, "deletion"), Gap(3, 3, "compaction"), Gap(5, 5, "compaction")]
    assert [gaps.first_after(offset) for offset in (-1, 0, 1, 5, 11)] == [0, 1, 3, 6, None]
    assert [gaps.has_any(*span) for span in ((2, 2), (2, 3), (4, 4), (10, 20), (12, 20))] == [False, True, False, True, False]


def test_offsets_that_lie_where_bytes_are_broken_were_lost_to_damage(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        for _ in range(4):
            append_thin(log, 2, lambda _: True)
    segment = next(tmp_path.rglob("*.log"))
    content = bytearray(segment.read_bytes())
    lost = [*BatchWalk(bytes(content))][2]
    content[lost.byte_position : lost.end_position] = bytes(lost.size_bytes)
    segment.write_bytes(content)

    (gaps,) = gaps_of(tmp_path).values()

    assert [*gaps] == [Gap(4, 5, "damage")]
    assert (gaps.first_damage_offset, gaps.extent.first_damage_offset) == (4, 4)


# --- Steps


@pytest.mark.parametrize("seed", range(10))
def test_gaps_are_what_steps_leave_out(seed: int) -> None:
    rng = random.Random(seed)
    steps = [(at - 1, at + rng.randint(0, 3)) for at in (rng.randint(0, 60) for _ in range(20))]
    highest, expected = -1, set()
    for before, last in steps:
        expected |= set(range(highest + 1, before + 1))
        highest = max(highest, last)

    covered = CoveredOffsets()
    found = set()
    for part in (steps[:7], steps[7:]):
        first, to, numbers = covered.gaps(*(np.array([step[column] for step in part], np.int64) for column in range(2)))
        assert [part[number][0] for number in numbers] == to.tolist()
        found |= {offset for start, end in zip(first.tolist(), to.tolist(), strict=True) for offset in range(start, end + 1)}

    assert (found, covered.highest) == (expected, highest)


def test_offsets_at_the_end_of_64_bits_leave_gaps_that_can_be_counted() -> None:
    most = 2**63 - 1
    covered = CoveredOffsets()

    first, last, _ = covered.gaps(np.array([-1, most - 1, most]), np.array([3, most, most]))

    assert (first.tolist(), last.tolist(), covered.highest) == ([4], [most - 1], most)
