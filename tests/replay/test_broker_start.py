"""The start of a broker on a log. Real brokers of 0.10.2.2 to 4.3.0 gave each outcome."""

from __future__ import annotations

from pathlib import Path

import pytest

import exhume
from exhume.codecs.batches import BatchWalk
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, offset_commit
from exhume.replay.broker_log import Stop
from exhume.replay.reading import LoadInputs
from exhume.topic import OffsetsTopic

NOW_MS = 1_700_000_000_000
RELEASES = ["0.10.2.2", "2.8.2", "4.3.0"]
COPIES: list[Stop] = ["clean_copy", "unclean_copy"]
STOPS: list[Stop] = ["clean", "unclean", *COPIES]


def commit(number: int) -> KeyValue:
    return offset_commit("billing", "orders", number, number, commit_timestamp_ms=NOW_MS, version=1)


def formats_of(release: str) -> int:
    return 1 if release.startswith("0.10") else 2


def write_segments(directory: Path, *sizes: int, magic: int = 2) -> list[Path]:
    """Write segments of these numbers of batches; record N commits offset N of partition N."""
    with PartitionWriter(directory, 7) as log:
        for number, size in enumerate(sizes):
            if number:
                log.roll()
            for _ in range(size):
                log.append([commit(log.next_offset)], timestamp_ms=NOW_MS, magic=magic)
    return sorted(log.directory.glob("*.log"))


def damage(segment: Path, number: int) -> None:
    """Change the checksum of the batch with this number."""
    content = bytearray(segment.read_bytes())
    batch = list(BatchWalk(content))[number]
    content[batch.byte_position + (17 if batch.magic == 2 else 12)] ^= 0xFF
    segment.write_bytes(content)


def loaded(directory: Path, release: str, stop: Stop) -> tuple[list[int], set[str]]:
    """The committed offsets, and the codes of all findings."""
    with exhume.open(directory) as topic:
        state = topic.state(release=release, stop=stop)
        return sorted(row["committed_offset"] for row in state.offsets.to_pylist()), {finding.code for finding in topic.findings}


@pytest.mark.parametrize("compiled_from", [0, 1 << 30], ids=["columns", "records"])
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        (0, {"clean": range(9), "unclean": [0], "clean_copy": [0, *range(3, 9)], "unclean_copy": [0, *range(3, 9)]}),
        (1, {"clean": range(9), "unclean": range(4), "clean_copy": [*range(4), *range(6, 9)], "unclean_copy": [*range(4), *range(6, 9)]}),
        (2, {"clean": range(9), "unclean": range(7), "clean_copy": range(7), "unclean_copy": range(7)}),
    ],
)
def test_a_broker_cuts_a_damaged_segment_without_an_index_and_keeps_later_ones(
    tmp_path: Path, release: str, damaged: int, expected: dict[Stop, list[int]], compiled_from: int
) -> None:
    segments = write_segments(tmp_path, 3, 3, 3, magic=formats_of(release))
    damage(segments[damaged], 1)
    segments[damaged].with_suffix(".index").unlink()

    for stop in STOPS:
        with OffsetsTopic(discover([tmp_path]), ReadOptions(least_compiled_bytes=compiled_from)) as topic:
            offsets = topic.state(release=release, stop=stop).offsets.to_pylist()
            codes = {finding.code for finding in topic.findings}
        assert sorted(row["committed_offset"] for row in offsets) == list(expected[stop]), stop
        assert ("lost_without_index" in codes) == (stop in COPIES)
        assert ("missing_index_matters" in codes) == (stop not in COPIES)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("missing", [".timeindex", ""])
def test_a_missing_time_index_changes_nothing(tmp_path: Path, release: str, missing: str) -> None:
    segments = write_segments(tmp_path, 3, 3, 3, magic=formats_of(release))
    damage(segments[1], 1)
    if missing:
        segments[1].with_suffix(missing).unlink()

    for stop in ("clean", "clean_copy"):
        assert loaded(tmp_path, release, stop) == (list(range(9)), {"crc_mismatch", "no_checkpoints"} & loaded(tmp_path, release, stop)[1])
    assert loaded(tmp_path, release, "unclean")[0] == loaded(tmp_path, release, "unclean_copy")[0] == list(range(4))


@pytest.mark.parametrize("stop", STOPS)
def test_a_copy_of_sound_segments_without_indexes_is_loaded_whole(tmp_path: Path, stop: Stop) -> None:
    for segment in write_segments(tmp_path, 3, 3):
        segment.with_suffix(".index").unlink()

    offsets, codes = loaded(tmp_path, "4.3.0", stop)

    assert offsets == list(range(6))
    assert not {"missing_index_matters", "lost_without_index"} & codes


def test_the_finding_names_the_stop_of_a_broker_that_starts_on_these_files(tmp_path: Path) -> None:
    segments = write_segments(tmp_path, 3, 3)
    damage(segments[0], 1)
    segments[0].with_suffix(".index").unlink()
    with exhume.open(tmp_path) as topic:
        topic.state(release="4.3.0", stop="unclean")
        (finding,) = (each for each in topic.findings if each.code == "missing_index_matters")

    size = len(segments[0].read_bytes()) // 3
    assert (finding.path, finding.byte_position, finding.size_bytes) == (str(segments[0]), size, 2 * size)
    assert finding.remedy == "Use --stop unclean_copy for the answer of a broker that starts on these files"


def write_overlapping(directory: Path, *segments: tuple[int, dict[int, tuple[int, int]]], magic: int) -> None:
    """Write segments: the base offset, and the first and last record offset of each, by the committed offset. A batch has one record."""
    with PartitionWriter(directory, 7, first_offset=segments[0][0]) as log:
        for number, (base_offset, runs) in enumerate(segments):
            if number:
                log.roll(base_offset)
            for committed_offset, (first, last) in runs.items():
                for record_offset in range(first, last + 1):
                    log.next_offset = record_offset
                    record = offset_commit("billing", "orders", record_offset, committed_offset, commit_timestamp_ms=NOW_MS, version=1)
                    log.append([record], magic=magic)


OVERLAPS: dict[str, tuple[list[tuple[int, dict[int, tuple[int, int]]]], dict[int, str]]] = {
    "two segments": ([(0, {1: (0, 5)}), (3, {2: (3, 8)})], {1: "0-5", 2: "6-8"}),
    "three segments": ([(0, {1: (0, 9)}), (3, {2: (3, 5)}), (7, {3: (7, 12)})], {1: "0-9", 3: "10-12"}),
    "four segments": ([(0, {1: (0, 9)}), (3, {2: (3, 19)}), (7, {3: (7, 12)}), (20, {4: (20, 21)})], {1: "0-9", 3: "10-12", 4: "20-21"}),
    "below its base offset": ([(0, {1: (0, 3)}), (6, {2: (2, 8)})], {1: "0-3", 2: "4-8"}),
}


def ranges(committed: dict[int, int]) -> dict[int, str]:
    """The first and last partition of each committed offset."""
    values = set(committed.values())
    found = {value: sorted(partition for partition, each in committed.items() if each == value) for value in values}
    return {value: f"{partitions[0]}-{partitions[-1]}" for value, partitions in found.items()}


@pytest.mark.parametrize("compiled_from", [0, 1 << 30], ids=["columns", "records"])
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", OVERLAPS)
def test_a_load_skips_the_record_offsets_that_an_earlier_segment_had(tmp_path: Path, name: str, release: str, compiled_from: int) -> None:
    segments, expected = OVERLAPS[name]
    write_overlapping(tmp_path, *segments, magic=formats_of(release))
    with OffsetsTopic(discover([tmp_path]), ReadOptions(least_compiled_bytes=compiled_from)) as topic:
        rows = topic.state(release=release, stop="clean").offsets.to_pylist()
        codes = {finding.code for finding in topic.findings}

    assert ranges({row["partition"]: row["committed_offset"] for row in rows}) == expected
    assert "offsets_outside_segment" in codes


@pytest.mark.parametrize(
    ("release", "expected"), [("0.10.2.2", {1: "0-3", 2: "4-8"}), ("2.8.2", {1: "0-2", 2: "3-8"}), ("4.3.0", {1: "0-2", 2: "3-8"})]
)
def test_a_full_load_buffer_lets_the_load_go_on_in_the_next_segment(tmp_path: Path, release: str, expected: dict[int, str]) -> None:
    write_overlapping(tmp_path, *OVERLAPS["two segments"][0], magic=formats_of(release))
    with exhume.open(tmp_path) as topic:
        rows = topic.state(release=release, stop="clean", inputs=LoadInputs(load_buffer_bytes=400)).offsets.to_pylist()

    assert ranges({row["partition"]: row["committed_offset"] for row in rows}) == expected


@pytest.mark.parametrize(("release", "expected"), [("0.10.2.2", "0-9"), ("2.8.2", "0-9"), ("4.3.0", "0-6")])
def test_the_java_coordinator_does_not_show_records_after_the_end_of_the_newest_segment(
    tmp_path: Path, release: str, expected: str
) -> None:
    write_overlapping(tmp_path, (0, {1: (0, 9)}), (4, {2: (4, 6)}), magic=formats_of(release))
    with exhume.open(tmp_path) as topic:
        rows = topic.state(release=release, stop="clean").offsets.to_pylist()

    assert ranges({row["partition"]: row["committed_offset"] for row in rows}) == {1: expected}


@pytest.mark.parametrize("compiled_from", [0, 1 << 30], ids=["columns", "records"])
@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("name", ["backup.log", "00000000000000000000 (1).log"])
def test_no_broker_starts_beside_a_log_file_without_a_base_offset(tmp_path: Path, name: str, stop: Stop, compiled_from: int) -> None:
    segment = write_segments(tmp_path, 3)[0]
    segment.with_name(name).write_bytes(b"")

    for release in RELEASES:
        with OffsetsTopic(discover([tmp_path]), ReadOptions(least_compiled_bytes=compiled_from)) as topic:
            (load,) = topic.state(release=release, stop=stop).loads.to_pylist()
            lenient = topic.state(release=release, stop=stop, mode="lenient").offsets.num_rows
        assert (load["outcome"], lenient) == ("refused", 3)
        assert name in load["reason"]


@pytest.mark.parametrize("compiled_from", [0, 1 << 30], ids=["columns", "records"])
@pytest.mark.parametrize("sizes", [(2, 3), (3,)], ids=["older segment", "newest segment"])
def test_a_size_that_exceeds_32_bits_aborts_the_load(tmp_path: Path, sizes: tuple[int, ...], compiled_from: int) -> None:
    segment = write_segments(tmp_path, *sizes)[0]
    content = bytearray(segment.read_bytes())
    second = list(BatchWalk(content))[1].byte_position
    for size, outcome in ((0x7FFFFFFF, "aborted"), (0x7FFFFFF4, "aborted"), (0x7FFFFFF3, "loaded")):
        content[second + 8 : second + 12] = size.to_bytes(4, "big")
        segment.write_bytes(content)
        with OffsetsTopic(discover([tmp_path]), ReadOptions(least_compiled_bytes=compiled_from)) as topic:
            (load,) = topic.state(release="4.3.0", stop="clean").loads.to_pylist()
        assert load["outcome"] == outcome
        assert outcome == "loaded" or load["byte_position"] == second


@pytest.mark.parametrize("compiled_from", [0, 1 << 30], ids=["columns", "records"])
@pytest.mark.parametrize(
    ("release", "stop", "outcome"),
    [
        ("1.1.1", "unclean", "loaded"),
        ("2.8.2", "unclean", "refused"),
        ("4.3.0", "unclean", "refused"),
        ("4.3.0", "clean", "loaded"),
    ],
)
def test_a_recovery_refuses_a_batch_below_its_segment(tmp_path: Path, release: str, stop: Stop, outcome: str, compiled_from: int) -> None:
    segments = write_segments(tmp_path, 3, 3)
    for file in segments[1].parent.glob(f"{segments[1].stem}.*"):
        file.rename(file.with_name(file.name.replace("3.", "4.")))

    with OffsetsTopic(discover([tmp_path]), ReadOptions(least_compiled_bytes=compiled_from)) as topic:
        (load,) = topic.state(release=release, stop=stop).loads.to_pylist()

    assert load["outcome"] == outcome


@pytest.mark.parametrize("compiled_from", [0, 1 << 30], ids=["columns", "records"])
@pytest.mark.parametrize(("damaged", "release", "outcome"), [(0, "4.3.0", "refused"), (0, "2.8.2", "aborted"), (2, "4.3.0", "aborted")])
def test_the_search_for_the_log_end_reads_an_old_compressed_batch_in_4(
    tmp_path: Path, damaged: int, release: str, outcome: str, compiled_from: int
) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        for _ in range(3):
            log.append([commit(log.next_offset)], timestamp_ms=NOW_MS, magic=1, codec=1)
    (segment,) = log.directory.glob("*.log")
    content = bytearray(segment.read_bytes())
    batch = list(BatchWalk(content))[damaged]
    content[batch.byte_position + 36 : batch.end_position] = bytes(batch.end_position - batch.byte_position - 36)
    segment.write_bytes(content)

    with OffsetsTopic(discover([tmp_path]), ReadOptions(least_compiled_bytes=compiled_from)) as topic:
        (load,) = topic.state(release=release, stop="clean").loads.to_pylist()

    assert load["outcome"] == outcome
