"""Replicas that diverge (IC-23), damaged segments (IC-36), and partitions that were silent (IC-37)."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.fixtures import scenarios
from exhume.fixtures.log_writer import write_checkpoint
from exhume.fixtures.partition_log import MessageForm, PartitionLog

from .files import decided, diagnosed
from .story import DAY_0_MS, Story, codes_of, said

COMMON = "0 d0 10:00 [e=3] OC g t-0 = {n}  900 × every 1 s\n"


def replicas(directory: Path, one: str, other: str, *, high_watermark: int | None = None) -> list[Path]:
    places = [Story(text).write(directory / name) for name, text in (("broker-1", one), ("broker-2", other))]
    if high_watermark is not None:
        for place in places:
            write_checkpoint(place / "replication-offset-checkpoint", [("__consumer_offsets", 0, high_watermark)])
    return places


LOST = COMMON + "900 d0 11:00 [e=4] OC g t-0 = 1500\n901 d0 11:01 [e=4] OC g t-0 = 1600"
KEPT = COMMON + "900 d0 11:00 [e=5] OC g t-0 = 1200\n901 d0 11:01 [e=5] OC g t-0 = 1600"


def test_records_that_differ_at_the_same_offset_are_what_one_side_lost(tmp_path: Path) -> None:
    found = said(decided(replicas(tmp_path, LOST, KEPT), "IC-23"), "IC-23")

    assert (found.severity, found.confidence, found.first_record_offset) == ("incident", "proof", 900)
    assert "replicas broker-1 and broker-2 have 2 records at the same offset that are not the same, from 900 on" in found.sentence
    assert "(leader epochs 4 and 5); what replica broker-1 has there is lost: g t-0 = 1500, where 1200 stands now" in found.sentence


def test_above_the_high_watermark_it_is_a_tail_that_one_of_them_gives_up(tmp_path: Path) -> None:
    found = said(decided(replicas(tmp_path, LOST, KEPT, high_watermark=900), "IC-23"), "IC-23")

    assert (found.severity, found.confidence) == ("info", "possible")


def test_a_replica_that_was_cleaned_or_ends_earlier_is_the_same_log(tmp_path: Path) -> None:
    cleaned = PartitionLog(0, MessageForm(2, "none"))
    whole = PartitionLog(0, MessageForm(2, "none"))
    for log in (cleaned, whole):
        source = Story()
        source.tell(COMMON)
        for number in range(40):
            if number == 20:
                log.roll()
            log.append([_commit(number)], timestamp_ms=DAY_0_MS + number)
    cleaned.clean()
    whole.append([_commit(99)], timestamp_ms=DAY_0_MS + 99)
    cleaned.write(tmp_path / "broker-1")
    whole.write(tmp_path / "broker-2")

    assert not diagnosed([tmp_path / "broker-1", tmp_path / "broker-2"], "IC-23")


def _commit(offset: int) -> tuple[bytes, bytes | None]:
    from exhume.fixtures.log_writer import offset_commit

    key, value = offset_commit("g", "t", offset % 3, offset, commit_timestamp_ms=DAY_0_MS)
    assert key is not None
    return key, value


def test_with_one_copy_it_cannot_be_decided(tmp_path: Path) -> None:
    found = said(diagnosed(Story(LOST).write(tmp_path), "IC-23"), "IC-23")

    assert found.confidence == "undecidable"
    assert "one copy of each partition only" in found.sentence


def test_damage_in_the_middle_is_a_hole_and_at_the_end_a_cut_tail(tmp_path: Path) -> None:
    scenarios.write("damaged", tmp_path / "drill")

    found = decided(tmp_path / "drill", "IC-36")

    assert [(finding.severity, finding.sentence.partition(":")[0]) for finding in found] == [("incident", "a hole"), ("info", "a cut tail")]
    assert found[0].first_record_offset == 13
    assert all(finding.path and finding.byte_position is not None for finding in found)


def test_a_sound_log_and_zero_bytes_at_its_end_are_no_damage(tmp_path: Path) -> None:
    Story("0 d0 10:00 OC g t-0 = 1").write(tmp_path)
    segment = next(tmp_path.glob("*/*.log"))
    segment.write_bytes(segment.read_bytes() + bytes(4096))

    assert not decided(tmp_path, "IC-36")


def silence(*, until: str = "12:30", busy_elsewhere: bool = True, groups: int = 2, epoch: int = 4) -> Story:
    story = Story()
    before = " | ".join(f"OC g{number} t-0 = {{n}}" for number in range(groups))
    story.tell(f"0 d0 08:00 [e=3] {before}  120 × every 60 s", offsets_partition=12)
    story.tell(f"{120 * groups} d0 {until} [e={epoch}] {before}  60 × every 60 s", offsets_partition=12)
    last = 400 if busy_elsewhere else 100
    story.tell(f"0 d0 08:00 OC x t-0 = {{n}} | OC y t-0 = {{n}}  {last} × every 60 s", offsets_partition=13)
    return story


def test_a_partition_that_is_silent_until_a_new_leader_had_no_coordinator(tmp_path: Path) -> None:
    found = said(silence().findings(tmp_path, codes=["IC-37"]), "IC-37")

    assert (found.offsets_partition, found.first_record_offset, found.confidence) == (12, 240, "possible")
    assert "nothing was written for 2 h 31 min, until leader epoch 4 (before: 3)" in found.sentence
    assert "2 groups stopped, while 2 groups of other partitions went on" in found.sentence


@pytest.mark.parametrize(
    "story",
    [silence(until="10:05"), silence(busy_elsewhere=False), silence(groups=1), silence(epoch=3)],
    ids=["a short one", "all were silent", "a quiet partition of one group", "the same leader"],
)
def test_quiet_that_has_other_reasons_is_not_reported(tmp_path: Path, story: Story) -> None:
    assert "IC-37" not in codes_of(story.findings(tmp_path))
