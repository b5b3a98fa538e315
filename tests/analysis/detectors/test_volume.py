"""Floods of commits (IC-12), explosions of groups (IC-14), oversized records (IC-32)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .incidents import hit, near_miss, undecidable
from .story import said


def test_a_key_that_is_committed_ten_times_a_second_for_twenty_minutes_is_a_flood(tmp_path: Path) -> None:
    found = said(hit("IC-12", tmp_path), "IC-12")

    assert (found.group, found.topic, found.partition) == ("hot", "t", 0)
    assert "t-0 was committed more than once a second for 20 min" in found.sentence
    assert "of its 12000 commits" in found.sentence
    assert "50% of its" in found.sentence


def test_a_large_group_with_many_keys_is_no_flood(tmp_path: Path) -> None:
    assert not near_miss("IC-12", tmp_path, "many keys")


def test_a_group_for_each_run_is_an_explosion_with_its_pattern(tmp_path: Path) -> None:
    found = said(hit("IC-14", tmp_path), "IC-14")

    assert "the ids of 150 groups match 'app-<uuid>'; 24 new ones a day, and the median group exists for 10 min" in found.sentence
    assert "they hold 150 offsets of t, from /10.0.0.9" in found.sentence


def test_groups_whose_hexadecimal_ids_have_only_digits_or_only_letters_count(tmp_path: Path) -> None:
    found = said(hit("IC-14", tmp_path, "two hexadecimal parts in each id"), "IC-14")

    assert "the ids of 150 groups match 'preview-<hex>-<hex>-tab'" in found.sentence


def test_groups_without_their_first_records_are_undecidable(tmp_path: Path) -> None:
    assert said(undecidable("IC-14", tmp_path), "IC-14").confidence == "undecidable"


@pytest.mark.parametrize(("which", "severity"), [("at the limit", "incident"), ("near the limit", "warn")])
def test_a_group_record_near_the_limit_is_reported(tmp_path: Path, which: str, severity: str) -> None:
    assert [finding.severity for finding in hit("IC-32", tmp_path, f"a group record {which}")] == [severity]


@pytest.mark.parametrize(("which", "size_bytes", "severity"), [("near the limit", 4000, "warn"), ("at the limit", 4096, "info")])
def test_commit_metadata_near_its_limit_is_reported(tmp_path: Path, which: str, size_bytes: int, severity: str) -> None:
    found = hit("IC-32", tmp_path, f"metadata {which}")

    assert [finding.severity for finding in found] == [severity]
    assert f"the largest commit metadata has {size_bytes} bytes (t-0)" in found[0].sentence
