"""A cleaner without progress (IC-03), and transactions that stay open (IC-08)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.detectors import LogFiles, TopicCase, condense, diagnose
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.growth import growth_of
from exhume.codecs.batches import BatchWalk
from exhume.codecs.log_directory import discover
from exhume.codecs.record_chunks import record_sizes
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.durations import HOUR_MS
from exhume.findings import Findings
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit, tombstone, write_checkpoint

from .incidents import hit, near_miss
from .story import DAY_0_MS, Story, codes_of, evidence_offsets, said


def test_a_cleaner_without_progress_is_found_with_the_dirty_bytes(tmp_path: Path) -> None:
    found = said(hit("IC-03", tmp_path, "twelve segments after its checkpoint"), "IC-03")

    assert (found.offsets_partition, found.confidence, found.severity) == (24, "likely", "warn")
    assert "has not moved past offset 0 for 27 d" in found.sentence
    assert "(100%) in closed segments are dirty" in found.sentence
    assert evidence_offsets(found) == [0]


def test_segments_that_were_never_cleaned_are_found_without_a_checkpoint(tmp_path: Path) -> None:
    found = said(hit("IC-03", tmp_path, "without a checkpoint"), "IC-03")

    assert found.confidence == "possible"
    assert "12 closed segments were never compacted, and 100% of the log is superseded" in found.sentence


@pytest.mark.parametrize(("missing", "read_again"), [((), True), ((40,), False)], ids=["complete", "cleaned"])
def test_only_logs_that_were_never_cleaned_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: tuple[int, ...], read_again: bool
) -> None:
    """Nor is a log read again whose bytes the first reading counts."""
    measured: list[tuple[str | None, int | None]] = []
    compaction = LogFiles.compaction

    def noting(files: LogFiles, origins: Collection[tuple[str | None, int | None]], *known: Any) -> Any:
        measured.extend(origins)
        return compaction(files, origins, *known)

    for name, more in (("countable", b""), ("uncountable", b"more")):
        with PartitionWriter(tmp_path / name, 3) as log:
            for number in range(70):
                if number in missing:
                    log.next_offset += 1
                    continue
                key, value = offset_commit("g", "t", 0, number, commit_timestamp_ms=number)
                assert key is not None
                log.append([(key + more if number == 3 else key, value)], timestamp_ms=number)
                if number % 10 == 9:
                    log.roll()
    monkeypatch.setattr(LogFiles, "compaction", noting)
    with exhume.open([tmp_path / "countable", tmp_path / "uncountable"]) as topic:
        topic.diagnose(codes=["IC-03"])

    assert measured == ([("uncountable", 3)] if read_again else [])


@pytest.mark.parametrize("checkpoint", [None, 100], ids=["never cleaned", "after a checkpoint"])
def test_the_count_of_the_first_pass_equals_that_of_a_second_pass(tmp_path: Path, checkpoint: int | None) -> None:
    group = {"protocol_type": "consumer", "generation": 1, "protocol": None, "leader": None, "current_state_timestamp_ms": 0, "members": []}
    with PartitionWriter(tmp_path, 3) as log:
        for number in range(70):
            key, value = offset_commit("g", "t", number % 2, number, commit_timestamp_ms=number)
            assert key is not None
            of_version_0 = (b"\0\0" + key[2:], value)
            removed = tombstone(offset_commit("g", "t", 2, 0, commit_timestamp_ms=number))
            log.append([(key, value), of_version_0, removed, group_metadata("g", group)], timestamp_ms=number * 10_000_000)
            if number % 10 == 9:
                log.roll()
        log.append_marker(producer_id=7, producer_epoch=0, timestamp_ms=1)
    if checkpoint is not None:
        write_checkpoint(tmp_path / "cleaner-offset-checkpoint", [("__consumer_offsets", 3, checkpoint)])
    with discover([tmp_path]) as evidence:
        options, [directory] = ReadOptions(least_compiled_bytes=0), evidence.partitions
        [case] = condense(SegmentReader(evidence, options, Findings())).partitions
        looked = growth_of(record_sizes(SegmentReader(evidence, options, Findings())), [directory], {}, by=None, now_ms=0)

    assert case.uncleaned is not None
    counted = case.uncleaned.row(directory, None)
    assert counted["superseded_bytes"] > 0
    assert counted == {name: looked.partitions[name][0].as_py() for name in counted}


def test_a_batch_that_cannot_be_counted_needs_a_second_pass(tmp_path: Path) -> None:
    key, value = offset_commit("g", "t", 0, 1, commit_timestamp_ms=0)
    assert key is not None
    with PartitionWriter(tmp_path, 3) as log:
        for number in range(6):
            log.append([(key + b"more" if number == 3 else key, value)], timestamp_ms=number)
            log.roll()
    with discover([tmp_path]) as evidence:
        reader = SegmentReader(evidence, ReadOptions(least_compiled_bytes=0), Findings())
        [case] = condense(reader).partitions

    assert case.uncleaned is None


def test_an_open_transaction_that_stops_the_cleaner_is_the_cause(tmp_path: Path) -> None:
    found = said(hit("IC-03", tmp_path, "an open transaction stops it"), "IC-03")

    assert found.severity == "incident"
    assert "the transaction that is open since record 0 stops the cleaner" in found.sentence


def test_without_files_it_cannot_be_decided(tmp_path: Path) -> None:
    assert TopicCase([]).files is None
    assert [finding.confidence for finding in diagnose(TopicCase([]), Inputs(), codes=["IC-03"])] == ["undecidable"]
    assert not near_miss("IC-03", tmp_path, "one active segment")


def test_a_transaction_without_a_marker_for_hours_hangs(tmp_path: Path) -> None:
    found = said(hit("IC-08", tmp_path), "IC-08")

    assert (found.severity, found.first_record_offset) == ("incident", 500)
    assert "producer 42 (epoch 3) is open since record 500, and idle for 1 d 15 h" in found.sentence
    assert "etl in-4" in found.sentence
    assert "the cleaner cannot reach the 41 records (" in found.sentence


@pytest.mark.parametrize("rolls", [(), (5,), (0, 5, 9)], ids=str)
def test_an_open_transaction_holds_up_as_many_bytes_as_transactions_say(tmp_path: Path, rolls: Collection[int]) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        for hour in range(12):
            staged = {"producer_id": 42, "producer_epoch": 3, "is_transactional": True} if hour == 4 else {}
            now_ms = DAY_0_MS + hour * HOUR_MS
            log.append([offset_commit("etl", "in", hour, 5, commit_timestamp_ms=now_ms)], timestamp_ms=now_ms, **staged)
            if hour in rolls:
                log.roll()

    with exhume.open(tmp_path) as topic:
        [held_up] = topic.transactions().table["held_up_bytes"].to_pylist()
        found = said([*topic.diagnose(codes=["IC-08"])], "IC-08")

    assert f"the cleaner cannot reach the 8 records ({held_up} bytes) from there on" in found.sentence


def test_the_bytes_after_a_damaged_base_offset_are_never_negative(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 7) as log:
        for hour in range(12):
            staged = {"producer_id": 42, "producer_epoch": 3, "is_transactional": True} if hour == 4 else {}
            now_ms = DAY_0_MS + hour * HOUR_MS
            log.append([offset_commit("etl", "in", hour, 5, commit_timestamp_ms=now_ms)], timestamp_ms=now_ms, **staged)
            if hour == 9:
                log.roll()
    first = min(tmp_path.rglob("*.log"))
    content = bytearray(first.read_bytes())
    [at] = [batch.byte_position for batch in BatchWalk(bytes(content)) if batch.base_offset == 4]
    content[at : at + 8] = (11).to_bytes(8, "big")
    first.write_bytes(content)

    with exhume.open(tmp_path) as topic:
        found = [finding.sentence for finding in topic.diagnose(codes=["IC-08"])]

    assert found
    assert not [sentence for sentence in found if "(-" in sentence]


def test_a_transaction_may_stay_open_for_the_greatest_timeout_and_five_minutes(tmp_path: Path) -> None:
    assert "IC-08" not in codes_of(near_miss("IC-08", tmp_path / "20", "for 20 minutes"))
    assert "IC-08" in codes_of(hit("IC-08", tmp_path / "21", "for 21 minutes"))


def test_a_transaction_continues_after_any_number_of_commits_of_a_key(tmp_path: Path) -> None:
    """A few hundred commits of each key are kept. The idle time of the producer counts from its very last commit."""
    story = "0 d0 03:00 [T pid=42 ep=3] OC etl in-4 = {n} 600 × every 60 s\n600 d0 13:05 OC other in-0 = 6"

    assert "IC-08" not in codes_of(Story(story).findings(tmp_path))


def test_aborts_before_it_do_not_hide_an_open_transaction(tmp_path: Path) -> None:
    times = [f"d0 03:{second // 60:02}:{second % 60:02}" for second in range(300)]
    aborted = [
        f"{2 * n} {time} [T pid=42 ep=3] OC etl in-4 = {n}\n{2 * n + 1} {time} MARK pid=42 ep=3 ABORT" for n, time in enumerate(times)
    ]
    opened = ["600 d0 04:00:00 [T pid=42 ep=4] OC etl in-4 = 5", "601 d0 06:00:00 OC other in-0 = 6"]
    found = said(Story("\n".join([*aborted, *opened])).findings(tmp_path), "IC-08")

    assert "producer 42 (epoch 4) is open since record 600, and idle for 2 h: there is no stable offset for etl in-4" in found.sentence


def test_the_offsets_of_an_open_transaction_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    """The order in which a log is read is not the same for all readers."""
    staged = [f"{n} d0 03:00 [T pid=42 ep=3] OC {name} = 5" for n, name in enumerate(("web in-10", "web in-9", "etl out-0", "etl in-4"))]
    found = said(Story("\n".join([*staged, "4 d0 06:00 OC other in-0 = 6"])).findings(tmp_path), "IC-08")

    assert "no stable offset for etl in-4, etl out-0, web in-9, web in-10, and" in found.sentence


def test_a_marker_of_a_replaced_coordinator_of_the_same_producer_is_found(tmp_path: Path) -> None:
    found = said(hit("IC-08", tmp_path, "a replaced coordinator still writes markers"), "IC-08")

    assert (found.severity, found.confidence, found.first_record_offset) == ("warn", "proof", 3)
    assert "the ABORT marker at record 3" in found.sentence
    assert "producer 42 with coordinator epoch 6, but record 1 already had epoch 7" in found.sentence
