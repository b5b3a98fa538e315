"""Orders that coordinators do not load (IC-06), and loads that are slow or endless (IC-15)."""

from __future__ import annotations

from pathlib import Path

from .incidents import hit, near_miss
from .story import said


def test_two_owners_whose_handover_was_compacted_away_stop_the_releases_that_check_it(tmp_path: Path) -> None:
    found = said(hit("IC-06", tmp_path, "two owners whose handover was compacted away"), "IC-06")

    assert (found.severity, found.confidence, found.first_record_offset) == ("warn", "proof", 17)
    assert "4.1.1" in found.sentence
    assert "still owned" in found.sentence


def test_tombstones_of_a_member_that_is_not_there_stop_early_coordinators_only(tmp_path: Path) -> None:
    found = hit("IC-06", tmp_path, "tombstones of a member that is not there")

    assert {finding.severity for finding in found} == {"info"}


def test_a_group_that_no_release_takes_is_an_incident(tmp_path: Path) -> None:
    assert said(hit("IC-06", tmp_path, "two members with one static identity"), "IC-06").severity == "incident"


def test_a_log_in_good_order_is_loaded(tmp_path: Path) -> None:
    assert not near_miss("IC-06", tmp_path, "good order")


def test_a_group_record_beyond_the_load_buffer_never_loads_in_old_releases(tmp_path: Path) -> None:
    found = said(hit("IC-15", tmp_path, "a group record beyond the load buffer"), "IC-15")

    assert found.group == "big"
    assert "in front of 2.1.0" in found.sentence


def test_an_empty_segment_behind_a_gap_is_read_for_ever_by_old_releases(tmp_path: Path) -> None:
    found = said(hit("IC-15", tmp_path, "an empty segment behind a gap"), "IC-15")

    assert "begins at 200, behind a gap that begins at 1" in found.sentence


def test_a_partition_that_is_many_times_its_siblings_is_slow_to_load(tmp_path: Path) -> None:
    assert said(hit("IC-15", tmp_path, "a partition that is many times its siblings"), "IC-15").offsets_partition == 3
