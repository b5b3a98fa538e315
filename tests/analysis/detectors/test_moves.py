"""Commits that went back or too far ahead: for each class a log that has it, and those that must not be taken for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.analysis.detectors import Inputs
from tests.analysis.detectors.story import Story, codes_of, evidence_offsets, said

_REBALANCED = """
    0 d0 12:00:00  GM g gen=3 pt=consumer {A@h1/c: t → t-0,t-1}
    1 d0 12:00:05  OC g t-0 = 100 | OC g t-1 = 100
    3 d0 12:01:00  GM g gen=4 pt=consumer {A@h1/c: t → t-0; B@h2/c: t → t-1}
    4 d0 12:01:05  OC g t-1 = 160
"""


def test_a_previous_owner_wrote_what_it_still_had(tmp_path: Path) -> None:
    found = said(Story(f"{_REBALANCED} 5 d0 12:01:07  OC g t-0 = 130 | OC g t-1 = 120").findings(tmp_path), "IC-02")

    assert (found.severity, found.confidence, found.topic, found.partition) == ("incident", "possible", "t", 1)
    assert found.sentence == "160 → 120 (-40), 7 s after the partition went from A (c on /h1) to B (c on /h2)"
    assert evidence_offsets(found) == [0, 3, 4, 6]


def test_a_rewind_that_the_new_owner_makes_good_is_likely_one(tmp_path: Path) -> None:
    log = f"{_REBALANCED} 5 d0 12:01:07  OC g t-1 = 120\n 6 d0 12:01:10  OC g t-1 = 170"

    found = said(Story(log).findings(tmp_path), "IC-02")

    assert (found.severity, found.confidence) == ("warn", "likely")


@pytest.mark.parametrize(
    "log",
    [
        pytest.param("5 d0 12:01:07 OC g t-0 = 90", id="the partition did not move"),
        pytest.param("5 d0 12:09:07 OC g t-1 = 120", id="long after"),
        pytest.param("5 d0 12:01:06 GM g gen=5 empty\n 6 d0 12:01:07 OC g t-1 = 120", id="nobody is in the group"),
        pytest.param("5 d0 12:01:06 OC g t-1 = 170 {le=3}\n 6 d0 12:01:07 OC g t-1 = 120 {le=1}", id="the leader epoch fell too"),
        pytest.param("5 d0 12:01:06 [T pid=7] OC g t-1 = 170\n 6 d0 12:01:07 OC g t-1 = 180\n 7 d0 12:01:08 MARK pid=7 COMMIT",
                     id="staged earlier, marked later"),
    ],
)  # fmt: skip
def test_what_is_no_rewind_at_a_rebalance(tmp_path: Path, log: str) -> None:
    assert "IC-02" not in codes_of(Story(f"{_REBALANCED}{log}").findings(tmp_path))


def test_what_the_previous_owner_could_not_have_known_is_no_rewind_of_his(tmp_path: Path) -> None:
    seek = """
        0 d0 12:00:00  OC g t-1 = 90
        1 d0 12:00:30  GM g gen=3 pt=consumer {A@h1/c: t → t-0,t-1}
        2 d0 12:00:35  OC g t-1 = 100
        3 d0 12:01:00  GM g gen=4 pt=consumer {A@h1/c: t → t-0; B@h2/c: t → t-1}
        4 d0 12:01:05  OC g t-1 = 160
        5 d0 12:01:07  OC g t-1 = {back}
    """
    assert "IC-02" not in codes_of(Story(seek.replace("{back}", "5")).findings(tmp_path / "seek"))
    assert "IC-02" in codes_of(Story(seek.replace("{back}", "95")).findings(tmp_path / "late"))


def test_a_rewind_behind_a_gap_names_what_it_cannot_exclude(tmp_path: Path) -> None:
    log = f"{_REBALANCED} 9 d0 12:01:07  OC g t-1 = 120"

    assert "compaction" in str(said(Story(log).findings(tmp_path), "IC-02").not_excluded)


_SAWTOOTH = """
    0 d0 10:00 [T pid=1] OC cc ctl-0 = 100
    1 d0 10:00 MARK pid=1 COMMIT
    2 d0 10:05 [T pid=2] OC cc ctl-0 = 105
    3 d0 10:05 MARK pid=2 COMMIT
    4 d0 10:06 [T pid=1] OC cc ctl-0 = 100
    5 d0 10:06 MARK pid=1 COMMIT
    6 d0 10:10 [T pid=2] OC cc ctl-0 = 112
    7 d0 10:10 MARK pid=2 COMMIT
    8 d0 10:11 [T pid=1] OC cc ctl-0 = 100
    9 d0 10:11 MARK pid=1 COMMIT
    10 d0 10:15 [T pid=2] OC cc ctl-0 = 120
    11 d0 10:15 MARK pid=2 COMMIT
    12 d0 10:16 [T pid=1] OC cc ctl-0 = 100
    13 d0 10:16 MARK pid=1 COMMIT
    14 d0 10:20 [T pid=2] OC cc ctl-0 = 131
    15 d0 10:20 MARK pid=2 COMMIT
"""


def test_two_writers_take_turns(tmp_path: Path) -> None:
    found = said(Story(_SAWTOOTH).findings(tmp_path, Inputs(start_offsets={("ctl", 0): 103})), "IC-13")

    assert "upper chain 105, 112, 120, 131 (producer 2); lower chain 100, 100, 100 (producer 1)" in found.sentence
    assert "a zombie with an offset in memory" in found.sentence
    assert "the data begins at 103" in found.sentence
    assert evidence_offsets(found) == [2, 4, 6, 8, 10, 12, 14]


@pytest.mark.parametrize(
    "log",
    [
        pytest.param(_SAWTOOTH.rpartition("12 d0")[0], id="two teeth"),
        pytest.param(_SAWTOOTH.replace("10:10", "12:10").replace("10:11", "12:11").replace("10:15", "14:15").replace("10:16", "14:16")
                     .replace("10:20", "14:20"), id="hours apart"),
        pytest.param(_SAWTOOTH.replace("= 112", "= 101").replace("= 120", "= 102").replace("= 131", "= 103"), id="not made good"),
    ],
)  # fmt: skip
def test_other_rewinds_are_no_sawtooth(tmp_path: Path, log: str) -> None:
    assert "IC-13" not in codes_of(Story(log).findings(tmp_path))


def test_a_sawtooth_where_compaction_has_been_is_undecidable(tmp_path: Path) -> None:
    found = Story(f"{_SAWTOOTH} 20 d0 10:30 OC other t-0 = 1").findings(tmp_path, codes=["IC-13"])

    assert [each.confidence for each in found] == ["undecidable"]


_STEADY = """
    0 d0 00:00  OC s ev-0 = 1000
    1 d0 00:05  OC s ev-0 = 1100
    2 d0 00:10  OC s ev-0 = 1200
    3 d0 14:30  GM s gen=2 pt=consumer {B@h2/c: ev → ev-0}
"""


def test_a_jump_skips_records(tmp_path: Path) -> None:
    found = said(Story(f"{_STEADY} 4 d0 14:30:05 OC s ev-0 = 990000").findings(tmp_path), "IC-16")

    assert (found.severity, found.topic, found.partition) == ("warn", "ev", 0)
    assert "1200 → 990000 (+988800), where rises of 100 are usual, 14 h 20 min after the commit before" in found.sentence


def test_a_jump_onto_the_start_of_the_data_was_a_reset(tmp_path: Path) -> None:
    inputs = Inputs(start_offsets={("ev", 0): 990_000})

    found = said(Story(f"{_STEADY} 4 d0 14:30:05 OC s ev-0 = 990000").findings(tmp_path, inputs), "IC-16")

    assert (found.severity, found.confidence) == ("incident", "likely")
    assert "exactly the data log's start" in found.sentence


@pytest.mark.parametrize(
    "log",
    [
        pytest.param("4 d0 14:30:05 OC s ev-0 = 11000", id="below the floor"),
        pytest.param("4 d0 14:30:05 OC s ev-0 = 30000", id="as fast as ever"),
        pytest.param("4 d0 14:30:03 GM s gen=3 empty\n 5 d0 14:30:05 OC s ev-0 = 990000", id="reset"),
        pytest.param("8 d0 14:30:05 OC s ev-0 = 990000", id="compaction has been there"),
    ],
)  # fmt: skip
def test_what_is_no_jump(tmp_path: Path, log: str) -> None:
    assert "IC-16" not in codes_of(Story(_STEADY + log).findings(tmp_path))


def test_a_jump_where_compaction_has_been_is_undecidable(tmp_path: Path) -> None:
    found = Story(f"{_STEADY} 8 d0 14:30:05 OC s ev-0 = 990000").findings(tmp_path, codes=["IC-16"])

    assert [each.confidence for each in found] == ["undecidable"]


_WITHOUT_EPOCH = """
    0 d0 10:00  GM g gen=1 {A@h1/c: t → t-0}
    1 d0 10:01  OC g t-0 = 500 {le=7}
    2 d0 10:02  OC g t-0 = 650 {epoch}
    3 d0 10:03  GM g gen=2 {B@h2/c: t → t-0}
    4 d0 10:04  OC g t-0 = 12 {le=8}
"""


def test_a_commit_without_leader_epoch_and_then_out_of_range(tmp_path: Path) -> None:
    findings = Story(_WITHOUT_EPOCH.replace("{epoch}", "{le=-1}")).findings(tmp_path)

    assert codes_of(findings) == {"IC-38"}
    assert "650 was committed without a leader epoch, then B (c on /h2) took over from A (c on /h1)" in said(findings, "IC-38").sentence


@pytest.mark.parametrize(
    "log",
    [
        pytest.param(_WITHOUT_EPOCH.replace("{epoch}", "{le=8}"), id="with an epoch"),
        pytest.param(_WITHOUT_EPOCH.replace("{epoch}", "").replace("{le=7}", "").replace("{le=8}", ""), id="a client without epochs"),
        pytest.param(_WITHOUT_EPOCH.replace("{epoch}", "{le=-1}").replace("= 12", "= 660"), id="it went on"),
    ],
)
def test_commits_without_leader_epoch_are_no_finding_by_themselves(tmp_path: Path, log: str) -> None:
    assert "IC-38" not in codes_of(Story(log).findings(tmp_path))
