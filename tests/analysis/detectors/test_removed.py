"""Groups, offsets and topics that were deleted (IC-05a, IC-27), and recreated offsets topics (IC-35)."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.analysis.detectors.report import span

from .incidents import ALL, hit, near_miss
from .story import Story, codes_of, evidence_offsets, said


def test_a_group_without_offsets_was_removed_and_restarts_at_generation_1(tmp_path: Path) -> None:
    found = said(hit("IC-27", tmp_path), "IC-27")

    assert (found.severity, found.group) == ("warn", "elect")
    assert "Empty at generation 58 without an offset, and was removed 6 min later" in found.sentence
    assert "it was created 2 times in this log, and reached generation 58, 1" in found.sentence
    assert evidence_offsets(found) == [1, 2]


def test_a_generation_that_decreases_without_a_tombstone(tmp_path: Path) -> None:
    found = said(hit("IC-27", tmp_path, "the generation falls without a tombstone"), "IC-27")

    assert "generation 57 was followed by 2 without a tombstone" in found.sentence
    assert "compaction removed" in str(found.not_excluded)


def test_a_group_was_deleted(tmp_path: Path) -> None:
    found = said(hit("IC-05a", tmp_path, "a group"), "IC-05a")

    assert (found.severity, found.group, found.confidence) == ("info", "bill", "likely")
    assert "the group was deleted with 2 offsets of inv (0, 1), 26 min after the last commit" in found.sentence


def test_a_topic_was_deleted(tmp_path: Path) -> None:
    found = said(hit("IC-05a", tmp_path, "a topic"), "IC-05a")

    assert found.topic == "tmp"
    assert "topic tmp was deleted" in found.sentence
    assert "2 groups lost offsets of it" in found.sentence


def test_a_topic_was_deleted_after_longer_than_the_retention_without_commits(tmp_path: Path) -> None:
    title = "a topic that members subscribe to, without commits for longer than the retention"
    found = hit("IC-05a", tmp_path, title, codes=["IC-01", "IC-05a", "IC-17", "IC-28"])

    assert "topic slow was deleted at 2024-01-16 00:00:00.000Z: 2 groups lost offsets of it" in said(found, "IC-05a").sentence
    assert codes_of(found) == {"IC-05a"}


def test_offsets_of_a_group_were_deleted(tmp_path: Path) -> None:
    found = said(hit("IC-05a", tmp_path, "offsets of a group"), "IC-05a")

    assert "a request deleted the offset of old-0, 20 min after the commit; the group stayed" in found.sentence


def test_an_offset_of_a_subscribed_topic_was_removed_with_the_topic(tmp_path: Path) -> None:
    found = said(hit("IC-05a", tmp_path, "a topic that members subscribe to"), "IC-05a")

    assert "topic new was deleted" in found.sentence
    assert "a request would have been refused" in found.sentence


def test_the_removal_of_due_offsets_is_no_deletion(tmp_path: Path) -> None:
    assert codes_of(near_miss("IC-05a", tmp_path, "the expiry task removes due offsets", codes=ALL)) == {"IC-01"}


def test_an_offsets_topic_that_is_younger_than_the_data(tmp_path: Path) -> None:
    found = said(hit("IC-35", tmp_path), "IC-35")

    assert (found.severity, found.confidence) == ("incident", "likely")
    assert "20 groups at generation 1 within minutes" in found.sentence


def test_many_new_groups_without_commits_are_undecidable(tmp_path: Path) -> None:
    log = "\n".join(f"{number} d10 10:0{number // 5}:00 GM g{number} gen=1 {{A: t → t-{number}}}" for number in range(20))
    found = said(Story(log).findings(tmp_path, codes=["IC-35"]), "IC-35")

    assert found.confidence == "undecidable"
    assert "20 groups begin at generation 1 within minutes" in found.sentence


def test_a_new_cluster_is_no_recreated_topic(tmp_path: Path) -> None:
    assert not near_miss("IC-35", tmp_path, "a new cluster")


@pytest.mark.parametrize(("groups", "committed", "severity"), [(2, 5, "info"), (2, 90_000, "warn"), (12, 5, "warn")])
def test_a_partition_of_a_new_cluster_begins_with_its_first_groups(tmp_path: Path, groups: int, committed: int, severity: str) -> None:
    story = Story()
    for number in (1, 2):
        story.tell("0 d0 00:00 OC old t-0 = 5\n1 d6 00:00 OC old t-0 = 6", offsets_partition=number)
    lines = [f"{number} d3 00:00 GM g{number} gen=1 {{A: t → t-0}}" for number in range(groups)]
    lines += [f"{groups + number} d3 00:01 OC g{number} t-0 = {committed}" for number in range(groups)]
    story.tell("\n".join(lines), offsets_partition=3)

    assert said(story.findings(tmp_path, codes=["IC-35"]), "IC-35").severity == severity


@pytest.mark.parametrize(("rise", "severity"), [(20_000, None), (200, "info"), (10, "incident")])
def test_first_commits_of_a_new_cluster_are_as_old_as_its_groups_are_fast(tmp_path: Path, rise: int, severity: str | None) -> None:
    lines = [f"{number} d3 00:00 GM g{number} gen=1 {{A: t → t-0}}" for number in range(12)]
    for round_number in range(4):
        offset = 100_000 + round_number * rise
        commits = " | ".join(f"OC g{number} t-0 = {offset}" for number in range(12))
        lines.append(f"{12 + 12 * round_number} d3 00:0{round_number + 1} {commits}")
    found = Story("\n".join(lines)).findings(tmp_path, codes=["IC-35"])

    assert [finding.severity for finding in found] == ([] if severity is None else [severity])


def test_a_partition_that_is_younger_than_the_others(tmp_path: Path) -> None:
    found = said(hit("IC-35", tmp_path, "one partition is younger than the others"), "IC-35")

    assert (found.offsets_partition, found.severity) == (3, "warn")
    assert "5 d after the others" in found.sentence


@pytest.mark.parametrize("first", ['GM {g} gen=0 pt="" empty | GM {g} gen=1 {A: t → t-0}', "CG5 {g} m {t} | CG3 {g} epoch=1"])
def test_groups_of_new_coordinators_begin_with_a_placeholder_or_a_member(first: str, tmp_path: Path) -> None:
    story = Story()
    for number in (1, 2):
        story.tell("0 d0 00:00 OC old t-0 = 5\n1 d6 00:00 OC old t-0 = 6", offsets_partition=number)
    records = [f"{2 * number} d5 00:00 {first.replace('{g}', f'g{number}')}" for number in range(3)]
    story.tell("\n".join(records), offsets_partition=3)

    found = said(story.findings(tmp_path, codes=["IC-35"]), "IC-35")

    assert "begins at offset 0, 5 d after the others, with groups at generation 1" in found.sentence
    assert evidence_offsets(found) == [1, 3, 5]


def test_partitions_with_different_topic_ids(tmp_path: Path) -> None:
    found = said(hit("IC-35", tmp_path, "partitions with different topic ids"), "IC-35")

    assert (found.severity, found.confidence) == ("incident", "proof")


def test_a_log_without_its_first_segments(tmp_path: Path) -> None:
    found = said(hit("IC-35", tmp_path, "a log without its first segments"), "IC-35")

    assert "begins with a segment at offset 500" in found.sentence


def test_a_negative_duration_has_the_same_units() -> None:
    assert (span(90_061_000), span(-90_061_000), span(-250)) == ("1 d 1 h", "-1 d 1 h", "-250 ms")
