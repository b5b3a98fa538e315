"""Commits of transactions that never counted."""

from __future__ import annotations

from pathlib import Path

from tests.analysis.detectors.story import Story, codes_of, evidence_offsets, said

_ABORTED = """
    0 d0 10:00:00               OC etl in-0 = 100
    1 d0 10:00:10 [T pid=7 ep=0] OC etl in-0 = 180
    2 d0 10:01:10               MARK pid=7 ep=0 ABORT
    3 d0 10:02:00 [T pid=7 ep=1] OC etl in-0 = 150
"""
_COMMITTED = "4 d0 10:02:01               MARK pid=7 ep=1 COMMIT"


def test_an_aborted_commit_never_counted(tmp_path: Path) -> None:
    found = said(Story(_ABORTED + _COMMITTED).findings(tmp_path), "IC-26")

    assert (found.severity, found.confidence, found.group, found.topic, found.partition) == ("info", "proof", "etl", "in", 0)
    assert "in-0: 180 staged at 1, aborted at 2 after 60 s; 150 is committed" in found.sentence
    assert evidence_offsets(found) == [1, 2, 3]


def test_a_group_that_looks_as_if_it_had_never_committed(tmp_path: Path) -> None:
    aborted = "1 d0 10:00:10 [T pid=7] OC etl in-0 = 180\n 2 d0 10:01:10 MARK pid=7 ABORT"

    found = said(Story(aborted).findings(tmp_path), "IC-26")

    assert found.severity == "warn"
    assert "as if the group had never committed" in found.sentence


def test_committed_transactions_are_no_finding(tmp_path: Path) -> None:
    committed = "1 d0 10:00:10 [T pid=7] OC etl in-0 = 180\n 2 d0 10:01:10 MARK pid=7 COMMIT"

    assert not codes_of(Story(committed).findings(tmp_path))


def test_a_copy_in_the_middle_of_a_transaction(tmp_path: Path) -> None:
    found = [each for each in Story(_ABORTED).findings(tmp_path) if "neither committed nor aborted" in each.sentence]

    assert [each.severity for each in found] == ["info"]
    assert "middle of a transaction" in str(found[0].not_excluded)


def test_a_transaction_that_was_left_open(tmp_path: Path) -> None:
    story = Story(_ABORTED).tell("4 d0 11:00:00 OC other in-0 = 5")
    found = [each for each in story.findings(tmp_path) if "neither committed nor aborted" in each.sentence]

    assert [each.severity for each in found] == ["warn"]
