"""Commits that went back (IC-02), alternate (IC-13), or jump (IC-16, IC-38)."""

from __future__ import annotations

from pathlib import Path

from .incidents import ALL, hit, undecidable
from .story import Story, codes_of, evidence_offsets, said


def test_the_previous_owner_commits_the_offset_in_its_memory(tmp_path: Path) -> None:
    found = said(hit("IC-02", tmp_path), "IC-02")

    assert (found.severity, found.confidence, found.topic, found.partition) == ("incident", "possible", "t", 1)
    assert (
        found.sentence
        == "the committed offset went back from 160 to 120 (-40), 7 s after the partition moved from A (c on /h1) to B (c on /h2)"
    )
    assert evidence_offsets(found) == [0, 3, 4, 6]


def test_a_rewind_that_the_new_owner_undoes_is_likely(tmp_path: Path) -> None:
    found = said(hit("IC-02", tmp_path, "the new owner commits a higher offset again"), "IC-02")

    assert (found.severity, found.confidence) == ("warn", "likely")


def test_a_rewind_after_a_gap_does_not_exclude_compaction(tmp_path: Path) -> None:
    assert "compaction" in str(said(hit("IC-02", tmp_path, "after a gap in the log"), "IC-02").not_excluded)


def test_two_writers_alternate(tmp_path: Path) -> None:
    found = said(hit("IC-13", tmp_path), "IC-13")

    assert "one commits 105, 112, 120, 131 (producer 2), and the other commits 100, 100, 100 (producer 1)" in found.sentence
    assert "a zombie with an old offset in memory" in found.sentence
    assert "the topic partition now starts at 103" in found.sentence
    assert evidence_offsets(found) == [2, 4, 6, 8, 10, 12, 14]


def test_a_zombie_that_commits_more_often_than_the_other(tmp_path: Path) -> None:
    log = """
        0 d0 10:00 OC cc ctl-0 = 105
        1 d0 10:06 OC cc ctl-0 = 100 4 × every 30 s
        5 d0 10:10 OC cc ctl-0 = 112
        6 d0 10:11 OC cc ctl-0 = 100 4 × every 30 s
        10 d0 10:15 OC cc ctl-0 = 120
        11 d0 10:16 OC cc ctl-0 = 100 4 × every 30 s
        15 d0 10:20 OC cc ctl-0 = 131
    """
    found = said(Story(log).findings(tmp_path), "IC-13")

    assert "one commits 105, 112, 120, 131, and the other commits 100" in found.sentence
    assert "a zombie with an old offset in memory" in found.sentence


def test_a_sawtooth_in_the_compacted_part_is_undecidable(tmp_path: Path) -> None:
    assert [each.confidence for each in undecidable("IC-13", tmp_path)] == ["undecidable"]


def test_a_jump_skips_records(tmp_path: Path) -> None:
    found = said(hit("IC-16", tmp_path), "IC-16")

    assert (found.severity, found.topic, found.partition) == ("warn", "ev", 0)
    assert "rose from 1200 to 990000 (+988800; usual rise 100), 14 h 20 min after the commit before" in found.sentence


def test_a_jump_to_the_log_start_offset_was_a_reset(tmp_path: Path) -> None:
    found = said(hit("IC-16", tmp_path, "to the start of the topic partition"), "IC-16")

    assert (found.severity, found.confidence) == ("incident", "likely")
    assert "990000 is the log start offset of the topic partition" in found.sentence


def test_retention_passed_the_offset_of_a_group_that_was_down(tmp_path: Path) -> None:
    found = said(hit("IC-16", tmp_path, "retention passed the offset of a group that was down"), "IC-16")

    assert (found.severity, found.confidence) == ("warn", "possible")
    assert "the group had no members for 3 d 8 h, and committed 5 s after they joined again" in found.sentence


def test_a_commit_within_a_batch_of_the_start_or_end_is_at_it(tmp_path: Path) -> None:
    start = said(hit("IC-16", tmp_path / "1", "within a batch of the start, after the group was down"), "IC-16")
    end = said(hit("IC-16", tmp_path / "2", "within a batch of the end, after the group was down"), "IC-16")

    assert (start.severity, start.confidence) == ("incident", "likely")
    assert "25300 is the log start offset of the topic partition within 300: the position was out of range" in start.sentence
    assert (end.severity, end.confidence) == ("warn", "possible")
    assert "25300 is the log end offset of the topic partition within 400" in end.sentence


def test_jumps_of_several_partitions_at_one_moment_are_one_finding(tmp_path: Path) -> None:
    keys = [f"OC s ev-{partition} = " for partition in range(18)]
    lines = [f"{18 * number} d0 00:0{5 * number} " + " | ".join(f"{key}{1000 + 100 * number}" for key in keys) for number in range(2)]
    lines += [f"{18 * number} d0 00:{5 * number} " + " | ".join(f"{key}{1000 + 100 * number}" for key in keys) for number in range(2, 4)]
    lines += ["72 d0 00:20 GM s gen=2 {B@h2/c: ev}", "73 d0 00:20:05 " + " | ".join(f"{key}{900_000}" for key in keys)]
    found = said(Story("\n".join(lines)).findings(tmp_path, codes=["IC-16"]), "IC-16")

    assert found.sentence.startswith("18 partitions of ev (0, 1, 2, 3, 4, 5, 6, 7, 8, 9 …); ev-0: the committed offset rose from 1300")


def test_a_jump_in_the_compacted_part_is_undecidable(tmp_path: Path) -> None:
    assert [each.confidence for each in undecidable("IC-16", tmp_path)] == ["undecidable"]


def test_a_commit_without_leader_epoch_and_then_out_of_range(tmp_path: Path) -> None:
    findings = hit("IC-38", tmp_path, codes=ALL)

    assert codes_of(findings) == {"IC-38"}
    assert (
        "650 was committed without a leader epoch; the partition moved from A (c on /h1) to B (c on /h2)"
        in said(findings, "IC-38").sentence
    )


def test_a_rewind_below_what_the_previous_owner_knew_is_out_of_range(tmp_path: Path) -> None:
    log = """
        0 d0 09:00 OC g t-0 = 500 {le=7}
        1 d0 10:00 OC g t-0 = 90500 {le=7}
        2 d0 10:01 GM g gen=1 {A@h1/c: t → t-0}
        3 d0 10:02 OC g t-0 = 90650 {le=-1}
        4 d0 10:03 GM g gen=2 {B@h2/c: t → t-0}
        5 d0 10:04 OC g t-0 = 40012 {le=8}
    """
    findings = Story(log).findings(tmp_path)

    assert codes_of(findings) == {"IC-38"}
    assert "and the next commit is 40012 (-50638)" in said(findings, "IC-38").sentence


def test_without_another_owner_a_jump_after_a_commit_without_a_leader_epoch_is_a_jump(tmp_path: Path) -> None:
    log = """
        0 d0 10:00 GM g gen=1 {A@h1/c: t → t-0}
        1 d0 10:01 OC g t-0 = 1{n}0 {le=5} 3 × every 60 s
        4 d0 10:04 OC g t-0 = 130 {le=-1}
        5 d0 10:05 OC g t-0 = 900000 {le=6}
    """
    assert codes_of(Story(log).findings(tmp_path)) == {"IC-16"}


def test_a_later_commit_without_a_leader_epoch_does_not_hide_a_rewind_at_a_rebalance(tmp_path: Path) -> None:
    log = """
        0 d0 12:00:00 GM g gen=3 {A@h1/c: t → t-0,1}
        1 d0 12:00:05 OC g t-1 = 100 {le=3}
        2 d0 12:01:00 GM g gen=4 {A@h1/c: t → t-0; B@h2/c: t → t-1}
        3 d0 12:01:05 OC g t-1 = 160 {le=-1}
        4 d0 12:01:07 OC g t-1 = 100 {le=-1}
    """
    assert codes_of(Story(log).findings(tmp_path)) == {"IC-02"}
