"""Groups that are not where a coordinator looks (IC-21), and coordinators that disagree with the log (IC-22)."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.analysis.detectors import Inputs
from exhume.analysis.detectors.inputs import LiveOffset
from exhume.codecs.offsets_topic import offsets_partition_of

from .files import decided, diagnosed
from .story import Story, codes_of, said


def grown(*, with_control: bool = True) -> Story:
    """A topic that grew from 50 to 100 partitions on day 5."""
    story = Story()
    story.tell("0 d0 10:00 OC my-group t-0 = 9000\n1 d4 10:00 OC my-group t-0 = 9100", offsets_partition=12)
    story.tell("0 d5 10:00 GM my-group gen=1 {A: t → t-0}\n1 d5 10:01 OC my-group t-0 = 7", offsets_partition=62)
    if with_control:
        story.tell("0 d5 10:00 OC billing t-0 = 1", offsets_partition=9)
    return story


def test_a_group_that_is_left_behind_by_growth_is_found_with_what_it_lost(tmp_path: Path) -> None:
    found = said(grown().findings(tmp_path, codes=["IC-21"]), "IC-21")

    assert (found.group, found.offsets_partition, found.severity) == ("my-group", 12, "incident")
    assert "where a coordinator of 100 partitions looks in 62; of 50 partitions 12 is right" in found.sentence
    assert "t-0 9100 → 7" in found.sentence


def test_the_count_that_is_given_decides_which_side_is_wrong(tmp_path: Path) -> None:
    findings = grown().findings(tmp_path, Inputs(offsets_partitions=50), codes=["IC-21"])

    assert [finding.offsets_partition for finding in findings] == [62]


@pytest.mark.parametrize(
    ("groups", "count"), [(("my-group", "billing", "etl"), 50), (("my-group", "billing", "etl", "a", "b"), 7), (("\U0001f980",), 50)]
)
def test_groups_that_are_all_where_they_belong_are_not_reported(tmp_path: Path, groups: tuple[str, ...], count: int) -> None:
    story = Story()
    for number in {offsets_partition_of(group, count) for group in groups}:
        ours = [group for group in groups if offsets_partition_of(group, count) == number]
        story.tell("\n".join(f"{place} d0 10:00 OC {group} t-0 = 1" for place, group in enumerate(ours)), offsets_partition=number)

    assert "IC-21" not in codes_of(story.findings(tmp_path / "guessed"))
    assert "IC-21" not in codes_of(story.findings(tmp_path / "given", Inputs(offsets_partitions=count)))


def live(*lines: tuple[str, str, int, int | None]) -> Inputs:
    return Inputs(live=[LiveOffset(group, topic, partition, offset, None, None) for group, topic, partition, offset in lines])


TRANSACTIONAL = """
10 d0 10:00 [T pid=9 ep=0] OC g t-0 = 50
11 d0 10:01 OC g t-0 = 70
12 d0 10:02 MARK pid=9 ep=0 COMMIT
"""


def test_a_coordinator_that_orders_by_markers_shows_an_older_value(tmp_path: Path) -> None:
    found = said(Story(TRANSACTIONAL).findings(tmp_path, live(("g", "t", 0, 50)), codes=["IC-22"]), "IC-22")

    assert (found.group, found.topic, found.partition) == ("g", "t", 0)
    assert found.sentence.startswith("50 is shown, and the log has 70: an older value, or a coordinator that orders transactions by")


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("0 d0 10:00 OC g t-0 = 100\n1 d0 10:01 OC g t-0 = X", ("g", "t", 0, 100), "100 is shown, and in the log record 1 removed it"),
        ("0 d0 10:00 OC g t-0 = 100", ("g", "u", 5, 9), "9 is shown, and the log has no record of it"),
        ("0 d0 10:00 OC g t-0 = 100 | OC g t-1 = 100", ("g", "t", 0, 100), "nothing is shown, and the log has 100"),
    ],
)
def test_what_only_one_of_them_has_is_said(tmp_path: Path, text: str, line: tuple[str, str, int, int], sentence: str) -> None:
    findings = Story(text).findings(tmp_path, live(line), codes=["IC-22"])

    assert sentence in {finding.sentence for finding in findings}


ADVANCING = "0 d0 10:00 OC g t-0 = {n}00  10 × every 60 s"


@pytest.mark.parametrize("shown", [900, 1500, 800], ids=["the same", "later", "a moment before"])
def test_a_listing_of_about_the_same_moment_agrees(tmp_path: Path, shown: int) -> None:
    assert not Story(ADVANCING).findings(tmp_path, live(("g", "t", 0, shown)), codes=["IC-22"])


def test_a_key_with_a_pending_commit_may_be_hidden(tmp_path: Path) -> None:
    text = "0 d0 10:00 OC g t-0 = 1 | OC g t-1 = 1\n2 d0 10:01 [T pid=9 ep=0] OC g t-1 = 2"

    assert not Story(text).findings(tmp_path, live(("g", "t", 0, 1)), codes=["IC-22"])


def test_without_a_listing_it_cannot_be_decided(tmp_path: Path) -> None:
    found = said(diagnosed(Story(TRANSACTIONAL).write(tmp_path), "IC-22"), "IC-22")

    assert (found.confidence, found.remedy) == ("undecidable", "Give it with --live")
    assert not decided(tmp_path, "IC-22")
