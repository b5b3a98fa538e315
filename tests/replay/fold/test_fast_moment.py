"""The state at a moment in columns against the plain one: every table, every finding, wherever the log is cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit, tombstone, write_checkpoint
from exhume.replay.fold import log as log_folds
from exhume.replay.partition_load import Mode
from exhume.topic import OffsetsTopic
from tests.compared import Compared
from tests.fuzz.mutations import sealed
from tests.judges import corpus
from tests.twins import COMPILED, MODES, PLAIN, CompiledLoads, assert_same_states, reading


def assert_same_at(
    directory: Path, asked: dict[str, Any], releases: tuple[str, ...], modes: tuple[Mode, ...] = MODES, turn: int = 0
) -> None:
    assert_same_states(directory, releases, modes, turn=turn, asked=asked)


def records_of(directory: Path) -> pa.Table:
    """Offsets partition, record offset and time of every record."""
    with OffsetsTopic(discover([str(directory)]), ReadOptions()) as topic:
        return topic.records().read_all().select(["offsets_partition", "record_offset", "timestamp_ms"])


def cuts(records: pa.Table, random: Random, most: int) -> list[dict[str, Any]]:
    """Some record offsets of each partition at once, and some times: those of records, between them, in front of and behind all."""
    rows = records.to_pylist()
    found: list[dict[str, Any]] = []
    for _ in range(most):
        offsets: dict[int, int] = {}
        for number in {row["offsets_partition"] for row in rows if row["offsets_partition"] is not None}:
            of_partition = [row["record_offset"] for row in rows if row["offsets_partition"] == number]
            if random.random() < 0.9:
                offsets[number] = max(0, random.choice(of_partition) + random.choice((-1, 0, 0, 0, 1, 7)))
        found.append({"at_offset": offsets})
        times = [row["timestamp_ms"] for row in rows if row["timestamp_ms"] is not None]
        if times:
            found.append({"at_time_ms": random.choice(times) + random.choice((-1, 0, 0, 1)), "clock": random.choice(("append", "commit"))})
    return found


@pytest.mark.parametrize("share", corpus.SHARES)
def test_every_bundled_log_at_some_moments(share: int, compiled: CompiledLoads, compared: Compared) -> None:
    random = Random(share)
    for turn, directory in enumerate(corpus.data_directories(share=share), share):
        for asked in cuts(records_of(directory), random, 1):
            assert_same_at(directory, asked, (random.choice(("2.8.2", "4.3.0")),), (random.choice(MODES),), turn)

    assert compiled.count > 25
    compared["partitions at a moment, in columns", "the load record by record"] += compiled.count


def _story(directory: Path, codec: int = 0) -> Path:
    """Commits, groups, tombstones and transactions in three segments, with times that go back, none, and batches in which some are gone."""
    with PartitionWriter(directory, 0) as log:
        commits = [offset_commit(f"g{each % 3}", "orders", each, each, commit_timestamp_ms=each, metadata="m" * each) for each in range(6)]
        group = group_metadata("g1", {"protocol_type": "", "generation": 3})
        log.append([*commits, group], timestamp_ms=100, codec=codec)
        log.append(commits[:4], timestamp_ms=200, codec=codec, producer_id=7, producer_epoch=0, is_transactional=True)
        log.roll()
        log.append([tombstone(group), tombstone(commits[5])], timestamp_ms=150, codec=codec)
        log.append_marker(1, producer_id=7, producer_epoch=0, timestamp_ms=210)
        log.roll()
        log.append(commits[:2], timestamp_ms=None, codec=codec)
        first = log.next_offset
        left = [NewRecord(first + 2, 190, *commits[2]), NewRecord(first + 5, 230, *commits[3])]
        log.append_bytes(encode_batch(left, base_offset=first, last_offset_delta=8), first + 8, 230)
        log.append_bytes(encode_batch([], base_offset=first + 9, last_offset_delta=2), first + 11, 230)
        log.append(commits[3:], timestamp_ms=240, codec=codec)
    return directory


@pytest.mark.one_of(3)
@pytest.mark.parametrize("codec", [0, 3, 4])
def test_every_record_offset_and_every_time_of_a_story(codec: int, tmp_path: Path, compiled: CompiledLoads) -> None:
    directory = _story(tmp_path, codec)
    for record_offset in range(40):
        assert_same_at(directory, {"at_offset": {0: record_offset}}, ("4.3.0",))
    for time_ms in (0, 99, 100, 149, 150, 199, 200, 209, 210, 229, 230, 239, 240, 2**63 - 1, 1 - 2**63):
        assert_same_at(directory, {"at_time_ms": time_ms}, ("4.3.0",))

    assert compiled.count == (40 + 15) * 2


def test_moments_in_front_of_the_log_start(tmp_path: Path, compiled: CompiledLoads) -> None:
    write_checkpoint(_story(tmp_path) / "log-start-offset-checkpoint", [("__consumer_offsets", 0, 9)])
    for record_offset in range(30):
        for release in ("2.8.2", "4.3.0"):
            assert_same_at(tmp_path, {"at_offset": {0: record_offset}, "stop": "unclean"}, (release,))
    for time_ms in (99, 100, 150, 200, 210):
        assert_same_at(tmp_path, {"at_time_ms": time_ms}, ("2.8.2", "4.3.0"))

    assert compiled.count > 30 * 2 * 2


def _break_the_last(content: bytearray) -> None:
    content[-3] ^= 1


@pytest.mark.parametrize("change", [_break_the_last])
def test_damage_behind_the_moment_is_told_all_the_same(
    change: Callable[[bytearray], None], tmp_path: Path, compiled: CompiledLoads
) -> None:
    segment = max(_story(tmp_path).rglob("*.log"))
    content = bytearray(segment.read_bytes())
    change(content)
    segment.write_bytes(content)

    assert_same_at(tmp_path, {"at_offset": {0: 5}}, ("4.3.0",))
    assert compiled.count == 2


@pytest.mark.parametrize("place", [-1, -4])
@pytest.mark.parametrize("goes_back", [False, True])
def test_a_broken_record_behind_the_moment_has_no_time(place: int, goes_back: bool, tmp_path: Path, compiled: CompiledLoads) -> None:
    """The last byte counts headers; the one before the headers of the last record belongs to its value."""
    commits = [offset_commit("g1", "orders", each, each, commit_timestamp_ms=each) for each in range(3)]
    with PartitionWriter(tmp_path, 0) as log:
        log.append_bytes(encode_batch([NewRecord(4, 300, *commits[0])], base_offset=4), 4, 300)
        first = 0 if goes_back else 5
        behind = bytearray(encode_batch([NewRecord(first + each, 150, *commits[each]) for each in (1, 2)], base_offset=first + 1))
        # The size of its value, or the number of its headers, now leads beyond its end.
        behind[place] = 0x7E
        log.append_bytes(sealed(behind), first + 2, 150)

    for asked in ({"at_time_ms": 200}, {"at_time_ms": 400}):
        assert_same_at(tmp_path, asked, ("2.8.2", "4.0.0"))


def test_what_differs_between_two_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = _story(tmp_path)
    answers = []
    for least_bytes in (COMPILED, PLAIN):
        options = ReadOptions(least_compiled_bytes=least_bytes, threads=2)
        with OffsetsTopic(discover([str(directory)]), options) as topic:
            rows = topic.diff(from_offset={0: 6}, to_offset={0: 14}).to_pylist() + topic.diff(from_time_ms=150).to_pylist()
            answers.append((rows, list(map(repr, topic.findings))))

    assert answers[0] == answers[1]
    assert answers[0][0]


@pytest.mark.parametrize("asked", [{"at_offset": {0: 3}}, {"at_time_ms": 3}], ids=["offset", "time"])
@pytest.mark.parametrize("damaged", [4, 35])
def test_damage_after_a_moment_is_found_in_every_part_of_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], damaged: int
) -> None:
    """A moment ends the load. The checksums of the whole log count."""
    monkeypatch.setattr(log_folds, "_LEAST_BYTES", 1000)
    with PartitionWriter(tmp_path, 0) as log:
        for number in range(40):
            if number == 30:
                log.roll()
            log.append([offset_commit("g", "t", number, 1, commit_timestamp_ms=1)], timestamp_ms=number)
    segments = sorted(tmp_path.rglob("*.log"))
    content = bytearray(segments[damaged // 30].read_bytes())
    size_bytes = len(content) // (30 if damaged < 30 else 10)
    content[(damaged % 30) * size_bytes + size_bytes - 1] ^= 1
    segments[damaged // 30].write_bytes(content)

    for threads in (1, 2, 8):
        with OffsetsTopic(discover([str(tmp_path)]), ReadOptions(threads=threads)) as topic:
            topic.state(**asked)
            assert "crc_mismatch" in [finding.code for finding in topic.findings], threads


def test_the_last_record_of_a_moment_is_the_greatest_where_offsets_go_back(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as log:
        for _ in range(3):
            log.append([offset_commit("g", "t", 0, 1, commit_timestamp_ms=1)], timestamp_ms=1)
    segment = next(tmp_path.rglob("*.log"))
    content = segment.read_bytes()
    segment.write_bytes(content + content[len(content) // 3 : 2 * len(content) // 3])

    for least_bytes in (PLAIN, COMPILED):
        with reading(least_bytes), OffsetsTopic(discover([str(tmp_path)]), ReadOptions(least_compiled_bytes=least_bytes)) as topic:
            completeness = topic.completeness(topic.state(at_time_ms=1, release="4.3.0"))
            assert set(completeness["last_record_offset"].to_pylist()) == {2}
