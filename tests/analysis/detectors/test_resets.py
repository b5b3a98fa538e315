"""Offsets from outside the group: by an operator (IC-05b), or by replication (IC-33)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .incidents import ALL, hit, near_miss
from .story import Story, codes_of, evidence_offsets, said


def test_an_operator_reset_a_group(tmp_path: Path) -> None:
    findings = hit("IC-05b", tmp_path, codes=ALL)

    found = said(findings, "IC-05b")
    assert codes_of(findings) == {"IC-05b"}
    assert (found.severity, found.confidence, found.group) == ("warn", "likely", "pay")
    expected = "2 offsets reset 80 s after the group became Empty: done-0 9000 → 6200 (-2800), done-1 8800 → 6100 (-2700)"
    assert found.sentence == expected
    assert evidence_offsets(found) == [1, 2, 3, 4, 5, 6]


def test_a_reset_to_the_committed_offsets_is_info(tmp_path: Path) -> None:
    assert said(hit("IC-05b", tmp_path, "two partitions reset to their committed offsets"), "IC-05b").severity == "info"


@pytest.mark.parametrize("which", ["a group without members", "a group that was only created", "a group with members"])
def test_other_commits_are_no_reset(tmp_path: Path, which: str) -> None:
    assert not near_miss("IC-05b", tmp_path, which)


def test_a_reset_after_a_gap_is_at_most_possible(tmp_path: Path) -> None:
    log = """
        0 d0 02:30:00  GM pay gen=20 {A: done → done-0,1}
        1 d0 02:40:00  OC pay done-0 = 9000 {le=3} | OC pay done-1 = 8800 {le=3}
        5 d0 02:45:10  GM pay gen=21 empty st=d0 02:45:10
        6 d0 02:50     OC pay done-0 = 9100
    """
    found = [each.confidence for each in Story(log).findings(tmp_path) if each.code == "IC-05b"]

    assert {*found} <= {"possible"}


@pytest.mark.parametrize("which", ["every minute", "every minute, without a record of the group"])
def test_replication_commits_every_minute(tmp_path: Path, which: str) -> None:
    findings = hit("IC-33", tmp_path, which, codes=ALL)

    found = said(findings, "IC-33")
    assert codes_of(findings) == {"IC-33"}
    assert (found.severity, found.confidence) == ("info", "likely")
    assert "commits offsets of 2 partitions every 60 s, while the group has no members" in found.sentence


def test_replication_wrote_an_untranslated_offset(tmp_path: Path) -> None:
    found = said(hit("IC-33", tmp_path, "an untranslated offset of the source"), "IC-33")

    assert found.severity == "warn"
    assert "src.t-0 is at 4200, and its local log ends at 500" in found.sentence


def test_members_join_during_the_replication(tmp_path: Path) -> None:
    found = said(hit("IC-33", tmp_path, "members join during the replication", codes=["IC-33", "IC-05b"]), "IC-33")

    assert found.severity == "warn"
    assert "src.t-0 went back: 500 → 400" in found.sentence
    assert "1 member joined at record 7, during the replication" in found.sentence


def test_commits_again_and_again_to_an_empty_group_are_no_reset(tmp_path: Path) -> None:
    log = """
        0 d0 09:00 GM g gen=1 {A: t → t-0}
        1 d0 09:30 GM g gen=2 empty
        2 d0 10:00 OC g t-0 = {n}  30 × every STEP s
    """
    for step in ("5", "15"):
        found = Story(log.replace("STEP", step)).findings(tmp_path / step, codes=["IC-05b", "IC-24", "IC-33"])

        assert codes_of(found) - {"IC-33"} == {"IC-24d"}
        assert "30 commits over" in said(found, "IC-24d").sentence
