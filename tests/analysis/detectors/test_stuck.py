"""Owners that do not get past one record, or never commit a partition (IC-39)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .incidents import hit, near_miss, undecidable
from .story import Story, codes_of, said


def test_an_owner_commits_one_offset_while_records_come_after_it(tmp_path: Path) -> None:
    found = said(hit("IC-39", tmp_path), "IC-39")

    assert (found.severity, found.confidence, found.topic, found.partition, found.member_id) == ("warn", "likely", "t", 0, "A")
    assert found.sentence == (
        "the owner c@h1 (A) has committed 59 again and again for 36 min (441 commits), until the end of the log; its lag is 8941:"
        " the consumer may fail at one record"
    )
    assert "--partition 0" in str(found.remedy)


@pytest.mark.parametrize(
    ("which", "said_of_it", "confidence"),
    [
        ("another group is far ahead", "another group committed 5000 of this partition in that time", "likely"),
        ("other partitions rise", "3 other partitions of the topic rose in that time", "possible"),
    ],
)
def test_other_commits_show_the_records_after_the_offset(tmp_path: Path, which: str, said_of_it: str, confidence: str) -> None:
    found = said(hit("IC-39", tmp_path, which), "IC-39")

    assert (found.severity, found.confidence) == ("warn", confidence)
    assert said_of_it in found.sentence


def test_an_earlier_time_at_one_record(tmp_path: Path) -> None:
    found = said(hit("IC-39", tmp_path, "for more than an hour, and then on"), "IC-39")

    assert (found.severity, found.confidence) == ("warn", "possible")
    assert "committed 59 again and again for 1 h 15 min (901 commits), while 3 other partitions of the topic rose" in found.sentence


def test_a_partition_that_is_never_committed(tmp_path: Path) -> None:
    found = said(hit("IC-39", tmp_path, "a partition is never committed"), "IC-39")

    assert (found.topic, found.partition, found.confidence) == ("t", 2, "possible")
    assert "has never committed 1 partition of t (2) in 41 min" in found.sentence


def test_the_end_offset_decides(tmp_path: Path) -> None:
    assert not near_miss("IC-39", tmp_path, "no record comes after it")


def test_without_a_sign_of_records_it_is_undecidable(tmp_path: Path) -> None:
    assert "nothing" not in said(undecidable("IC-39", tmp_path), "IC-39").sentence


def test_an_idle_topic_of_several_partitions_is_silent(tmp_path: Path) -> None:
    story = """
        0 d0 10:00:00  GM g gen=1 {A@h1/c: t → t-0,1,2}
        1 d0 10:00:05  OC g t-0 = {n} | OC g t-1 = {n} | OC g t-2 = {n}  60 × every 5 s
        181 d0 10:05:05  OC g t-0 = 59 | OC g t-1 = 59 | OC g t-2 = 59  900 × every 5 s
    """

    assert not codes_of(Story(story).findings(tmp_path))
