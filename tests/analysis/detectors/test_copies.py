"""Replicas that diverge (IC-23), damaged segments (IC-36), and partitions without records (IC-37)."""

from __future__ import annotations

from pathlib import Path

from exhume.analysis.detectors import condense
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.findings import Findings
from exhume.fixtures.log_writer import PartitionWriter, offset_commit

from .files import decided
from .incidents import hit, near_miss, undecidable
from .story import Story, said


def test_different_records_at_the_same_offset_are_lost_on_one_side(tmp_path: Path) -> None:
    found = said(hit("IC-23", tmp_path), "IC-23")

    assert (found.severity, found.confidence, found.first_record_offset) == ("incident", "proof", 900)
    assert "replicas broker-1 and broker-2 have different records at 2 offsets, from record 900 on" in found.sentence
    assert (
        "(leader epochs 4 and 5); the records of replica broker-1 are lost, with commits of 1 key: g t-0 = 1600 (now 1600)"
        in found.sentence
    )


def test_every_key_with_lost_commits_has_its_two_values(tmp_path: Path) -> None:
    keys = " | ".join(f"OC g t-{partition} = 1{partition:02}" for partition in range(40))
    common = f"0 d0 10:00 [e=3] {keys}\n"
    lost = " | ".join(f"OC g t-{partition} = 9{partition:02}" for partition in range(30))
    kept = " | ".join(f"OC g t-{39 - partition} = 5{39 - partition:02}" for partition in range(30))
    Story(f"{common}40 d0 10:01 [e=4] {lost}").write(tmp_path / "broker-1")
    Story(f"{common}40 d0 10:01 [e=5] {kept}").write(tmp_path / "broker-2")
    found = said(decided([tmp_path / "broker-1", tmp_path / "broker-2"], "IC-23"), "IC-23")

    assert "with commits of 30 keys: g t-0 = 900 (now 100 as before), g t-1 = 901 (now 101 as before)" in found.sentence
    assert "and 20 more" in found.sentence
    assert isinstance(found.evidence, list)
    texts = [row["what"] for row in found.evidence]
    assert "lost commit: g t-29 = 929 (now 529)" in texts
    assert sum(text.startswith("lost commit") for text in texts) == 30


def test_above_the_high_watermark_they_are_a_tail(tmp_path: Path) -> None:
    found = said(hit("IC-23", tmp_path, "above the high watermark"), "IC-23")

    assert (found.severity, found.confidence) == ("info", "possible")


def test_a_replica_that_was_compacted_or_ends_earlier_does_not_diverge(tmp_path: Path) -> None:
    assert not near_miss("IC-23", tmp_path, "one replica is compacted and ends earlier")


def test_one_copy_is_undecidable(tmp_path: Path) -> None:
    found = said(undecidable("IC-23", tmp_path), "IC-23")

    assert found.confidence == "undecidable"
    assert "only one copy of each offsets partition" in found.sentence


def test_damage_in_the_middle_is_a_hole_and_at_the_end_a_cut_tail(tmp_path: Path) -> None:
    found = hit("IC-36", tmp_path)

    assert [(finding.severity, finding.sentence.partition(":")[0]) for finding in found] == [("incident", "a hole"), ("info", "a cut tail")]
    assert found[0].first_record_offset == 13
    assert all(finding.path and finding.byte_position is not None for finding in found)


def test_a_partition_without_records_before_a_new_leader_had_no_coordinator(tmp_path: Path) -> None:
    found = said(hit("IC-37", tmp_path), "IC-37")

    assert (found.offsets_partition, found.first_record_offset, found.confidence) == (12, 240, "possible")
    assert "this offsets partition got no record for 2 h 31 min, until leader epoch 4 (after 3)" in found.sentence
    assert "2 groups stopped, and 2 groups of other partitions continued" in found.sentence


def test_a_partition_is_silent_from_the_record_before_a_leader_epoch_on(tmp_path: Path) -> None:
    # Records of format 0 have no time. Batches of a segment are read in chunks of one format.
    with PartitionWriter(tmp_path, 3) as log:
        for magic, time_ms in ((2, 1000), (0, None), (2, 9000), (2, 5000), (1, 7000), (2, 8000)):
            log.append([offset_commit("g", "t", 0, 1, commit_timestamp_ms=1)], magic=magic, timestamp_ms=time_ms)
    with discover([tmp_path]) as evidence:
        [case] = condense(SegmentReader(evidence, ReadOptions(), Findings())).partitions

    assert [(each.first_record_offset, each.silent_since_ms) for each in case.log_context.epochs] == [
        (0, None),
        (1, 1000),
        (2, None),
        (4, 5000),
        (5, 7000),
    ]
