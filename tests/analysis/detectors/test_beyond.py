"""Committed offsets outside their topic partition (IC-07, IC-29), and recreated topics."""

from __future__ import annotations

from pathlib import Path

from exhume.analysis.detectors import Inputs

from .incidents import hit, near_miss, undecidable
from .story import Story, said, topic_id


def test_another_topic_id_is_a_recreated_topic(tmp_path: Path) -> None:
    found = said(hit("IC-07", tmp_path, "another topic id"), "IC-07")

    assert (found.severity, found.confidence, found.topic) == ("incident", "proof", "logs")
    assert f"its topic id changed from {topic_id('AAA')} to {topic_id('BBB')}" in found.sentence


def test_lower_leader_epochs_and_low_offsets_are_likely_a_recreated_topic(tmp_path: Path) -> None:
    found = said(hit("IC-07", tmp_path, "a lower leader epoch, and an offset near 0"), "IC-07")

    assert (found.severity, found.confidence) == ("incident", "likely")


def test_lower_leader_epochs_alone_may_be_an_unclean_election(tmp_path: Path) -> None:
    found = said(hit("IC-07", tmp_path, "a lower leader epoch alone"), "IC-07")

    assert (found.severity, found.confidence) == ("warn", "possible")
    assert "fell from 12 to 3" in found.sentence


def test_commits_without_a_topic_id_do_not_hide_a_recreated_topic(tmp_path: Path) -> None:
    log = """
        0 d0 10:00 OC g logs-0 = 8000 {le=12 tid=AAA}
        1 d0 10:30 OC g logs-0 = 8100 {le=12}
        2 d0 11:00 OC g logs-0 = 8200 {le=12 tid=BBB}
    """
    found = said(Story(log).findings(tmp_path, Inputs(end_offsets={}), codes=["IC-07"]), "IC-07")

    assert found.confidence == "proof"
    assert f"its topic id changed from {topic_id('AAA')} to {topic_id('BBB')}" in found.sentence


def test_commits_without_a_leader_epoch_do_not_hide_a_lower_one(tmp_path: Path) -> None:
    log = """
        0 d0 10:00 OC g logs-0 = 8000 {le=12}
        1 d0 10:30 OC g logs-0 = 8100
        2 d0 11:00 OC g logs-0 = 8200 {le=3}
    """
    found = said(Story(log).findings(tmp_path, Inputs(end_offsets={}), codes=["IC-07"]), "IC-07")

    assert "fell from 12 to 3" in found.sentence


def test_all_offsets_of_a_topic_fall_to_near_0(tmp_path: Path) -> None:
    found = said(hit("IC-07", tmp_path, "all partitions of all groups fall to near 0"), "IC-07")

    assert (found.severity, found.confidence, found.group) == ("warn", "possible", None)
    assert "fell to near 0 within 5 min" in found.sentence


def test_negative_lag(tmp_path: Path) -> None:
    found = said(hit("IC-07", tmp_path, "negative lag"), "IC-07")

    assert (found.severity, found.group, found.topic, found.partition) == ("incident", "q", "t", 0)
    assert "the committed offset is 120, and the topic partition ends at 50: a negative lag of 70" in found.sentence


def test_end_offsets_from_a_moment_before_are_no_negative_lag(tmp_path: Path) -> None:
    assert not near_miss("IC-07", tmp_path, "end offsets that were read a moment before")


def test_negative_lag_is_undecidable_without_end_offsets(tmp_path: Path) -> None:
    found = undecidable("IC-07", tmp_path)

    assert [(each.confidence, each.remedy) for each in found] == [
        ("undecidable", "Add --end-offsets FILE, the output of kafka-get-offsets.sh --time latest")
    ]


def test_a_lag_of_deleted_records(tmp_path: Path) -> None:
    found = said(hit("IC-29", tmp_path), "IC-29")

    assert (found.severity, found.confidence) == ("warn", "proof")
    assert (
        "the topic partition starts at 5000: 4900 offsets are deleted; its lag seems to be 4900, but at most 0 are left" in found.sentence
    )


def test_a_commit_at_the_log_start_offset_is_in_range(tmp_path: Path) -> None:
    assert not near_miss("IC-29", tmp_path, "at the start of the topic partition")


def test_a_lag_of_deleted_records_is_undecidable_without_start_offsets(tmp_path: Path) -> None:
    found = undecidable("IC-29", tmp_path)

    assert [(each.confidence, each.remedy) for each in found] == [
        ("undecidable", "Add --start-offsets FILE, the output of kafka-get-offsets.sh --time earliest")
    ]
