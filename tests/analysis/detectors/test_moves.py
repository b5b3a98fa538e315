"""Commits that went back or too far ahead: what is said of them."""

from __future__ import annotations

from pathlib import Path

from .incidents import ALL, hit, undecidable
from .story import codes_of, evidence_offsets, said


def test_a_previous_owner_wrote_what_it_still_had(tmp_path: Path) -> None:
    found = said(hit("IC-02", tmp_path), "IC-02")

    assert (found.severity, found.confidence, found.topic, found.partition) == ("incident", "possible", "t", 1)
    assert found.sentence == "160 → 120 (-40), 7 s after the partition went from A (c on /h1) to B (c on /h2)"
    assert evidence_offsets(found) == [0, 3, 4, 6]


def test_a_rewind_that_the_new_owner_makes_good_is_likely_one(tmp_path: Path) -> None:
    found = said(hit("IC-02", tmp_path, "the new owner made it good"), "IC-02")

    assert (found.severity, found.confidence) == ("warn", "likely")


def test_a_rewind_behind_a_gap_names_what_it_cannot_exclude(tmp_path: Path) -> None:
    assert "compaction" in str(said(hit("IC-02", tmp_path, "behind a gap"), "IC-02").not_excluded)


def test_two_writers_take_turns(tmp_path: Path) -> None:
    found = said(hit("IC-13", tmp_path), "IC-13")

    assert "upper chain 105, 112, 120, 131 (producer 2); lower chain 100, 100, 100 (producer 1)" in found.sentence
    assert "a zombie with an offset in memory" in found.sentence
    assert "the data begins at 103" in found.sentence
    assert evidence_offsets(found) == [2, 4, 6, 8, 10, 12, 14]


def test_a_sawtooth_where_compaction_has_been_is_undecidable(tmp_path: Path) -> None:
    assert [each.confidence for each in undecidable("IC-13", tmp_path)] == ["undecidable"]


def test_a_jump_skips_records(tmp_path: Path) -> None:
    found = said(hit("IC-16", tmp_path), "IC-16")

    assert (found.severity, found.topic, found.partition) == ("warn", "ev", 0)
    assert "1200 → 990000 (+988800), where rises of 100 are usual, 14 h 20 min after the commit before" in found.sentence


def test_a_jump_onto_the_start_of_the_data_was_a_reset(tmp_path: Path) -> None:
    found = said(hit("IC-16", tmp_path, "onto the start of the data"), "IC-16")

    assert (found.severity, found.confidence) == ("incident", "likely")
    assert "exactly the data log's start" in found.sentence


def test_a_jump_where_compaction_has_been_is_undecidable(tmp_path: Path) -> None:
    assert [each.confidence for each in undecidable("IC-16", tmp_path)] == ["undecidable"]


def test_a_commit_without_leader_epoch_and_then_out_of_range(tmp_path: Path) -> None:
    findings = hit("IC-38", tmp_path, codes=ALL)

    assert codes_of(findings) == {"IC-38"}
    assert "650 was committed without a leader epoch, then B (c on /h2) took over from A (c on /h1)" in said(findings, "IC-38").sentence
