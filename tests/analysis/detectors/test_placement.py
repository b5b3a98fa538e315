"""Groups in a wrong offsets partition (IC-21), and coordinators that differ from the log (IC-22)."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.analysis.detectors import Inputs
from exhume.analysis.detectors.inputs import LiveOffset

from .incidents import hit, near_miss, undecidable
from .story import Story, said


def test_a_group_in_its_old_partition_is_found_with_its_offsets(tmp_path: Path) -> None:
    found = said(hit("IC-21", tmp_path), "IC-21")

    assert (found.group, found.offsets_partition, found.severity) == ("my-group", 12, "incident")
    assert "with 100 offsets partitions its coordinator looks in 62; with 50 offsets partitions it would look in 12" in found.sentence
    assert "t-0 9100 → 7" in found.sentence


def test_the_given_count_decides_the_wrong_side(tmp_path: Path) -> None:
    assert [finding.offsets_partition for finding in hit("IC-21", tmp_path, "50 partitions are given")] == [62]


def test_a_coordinator_that_orders_by_markers_shows_an_older_value(tmp_path: Path) -> None:
    found = said(hit("IC-22", tmp_path), "IC-22")

    assert (found.group, found.topic, found.partition) == ("g", "t", 0)
    assert found.sentence.startswith("the coordinator shows 50, and the log has 70: it has an older value, or it orders transactional")


@pytest.mark.parametrize(
    ("which", "sentence"),
    [
        ("an offset that the log removed", "the coordinator shows 100, and in the log record 1 removed it"),
        ("an offset that the log does not have", "the coordinator shows 9, and the log has no commit for this partition"),
        ("an offset that only the log has", "the coordinator shows no offset, and the log has 100"),
    ],
)
def test_an_offset_of_only_one_side_is_found(tmp_path: Path, which: str, sentence: str) -> None:
    assert sentence in {finding.sentence for finding in hit("IC-22", tmp_path, which)}


@pytest.mark.parametrize("which", ["the same", "later", "a moment before", "not shown because of a pending commit"])
def test_a_listing_that_agrees_has_no_finding(tmp_path: Path, which: str) -> None:
    assert not near_miss("IC-22", tmp_path, which)


def _live(group: str, committed_offset: int | None) -> LiveOffset:
    return LiveOffset(group, "t", 0, committed_offset, 1000)


def test_a_dash_where_the_log_has_an_offset(tmp_path: Path) -> None:
    log = "0 d0 10:00 OC my-group t-0 = 900"
    findings = Story(log, offsets_partition=12).findings(tmp_path, Inputs(live=[_live("my-group", None)]), codes=["IC-22"])

    assert said(findings, "IC-22").sentence == "the coordinator shows no offset, and the log has 900"


def test_a_group_that_is_shown_and_not_in_its_log(tmp_path: Path) -> None:
    live = [_live("my-group", 900), _live("kafka-txn-0", 5), _live("billing", 7), _live("etl", None)]
    story = Story("0 d0 10:00 OC my-group t-0 = 900", offsets_partition=12).tell("0 d0 10:00 OC z10 t-0 = 9", offsets_partition=9)
    story.tell("0 d0 10:00 OC z16 t-0 = 9", offsets_partition=15)
    found = said(story.findings(tmp_path, Inputs(live=live), codes=["IC-22"]), "IC-22")

    assert (found.group, found.offsets_partition) == ("billing", 9)
    assert found.sentence == "the coordinator shows t-0 7, and the log has no record of the group"


def test_without_a_listing_it_is_undecidable(tmp_path: Path) -> None:
    found = said(undecidable("IC-22", tmp_path), "IC-22")

    assert (found.confidence, found.remedy) == (
        "undecidable",
        "Add --live FILE, the output of kafka-consumer-groups.sh --describe --all-groups",
    )
