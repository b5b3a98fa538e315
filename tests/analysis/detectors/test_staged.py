"""Transactional commits that never took effect (IC-26)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .incidents import ALL, hit, near_miss
from .story import codes_of, evidence_offsets, said


def test_an_aborted_commit_never_took_effect(tmp_path: Path) -> None:
    found = said(hit("IC-26", tmp_path), "IC-26")

    assert (found.severity, found.confidence, found.group, found.topic, found.partition) == ("info", "proof", "etl", "in", 0)
    assert "in-0: offset 180 of record 1, aborted by record 2 after 60 s; the committed offset is 150" in found.sentence
    assert evidence_offsets(found) == [1, 2, 3]


def test_a_group_that_looks_as_if_it_had_never_committed(tmp_path: Path) -> None:
    at_once = said(hit("IC-26", tmp_path / "at once", "aborted, without any other commit of the key"), "IC-26")
    later = said(hit("IC-26", tmp_path / "later", "aborted, and no commit of the key in the hour after"), "IC-26")

    assert (at_once.severity, later.severity) == ("info", "warn")
    assert "as if the group had never committed" in at_once.sentence
    assert "as if the group had never committed" in later.sentence


def test_a_group_whose_transactions_are_aborted_one_after_the_other(tmp_path: Path) -> None:
    found = said(hit("IC-26", tmp_path, "aborted, transaction after transaction"), "IC-26")

    assert found.severity == "warn"
    assert "1 partition with aborted transactions only since the last commit" in found.sentence


def test_committed_transactions_are_no_finding(tmp_path: Path) -> None:
    assert not codes_of(near_miss("IC-26", tmp_path, codes=ALL))


@pytest.mark.parametrize(
    ("which", "severity"), [("a copy in the middle of a transaction", "info"), ("a transaction that stays open", "warn")]
)
def test_a_transaction_without_a_marker(tmp_path: Path, which: str, severity: str) -> None:
    found = [each for each in hit("IC-26", tmp_path, which) if "no marker ended the transaction" in each.sentence]

    assert [each.severity for each in found] == [severity]
    if severity == "info":
        assert "made during the transaction" in str(found[0].not_excluded)
