"""Offsets that were written from outside: by an operator, or by replication."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.analysis.detectors import Inputs
from tests.analysis.detectors.story import Story, codes_of, evidence_offsets, said

_BEFORE = """
    0 d0 02:30:00  GM pay gen=20 {A: done → done-0,1}
    1 d0 02:40:00  OC pay done-0 = 9000 {le=3} | OC pay done-1 = 8800 {le=3}
    3 d0 02:45:10  GM pay gen=21 empty st=d0 02:45:10
"""
_AFTER = "6 d0 02:46:55  GM pay gen=22 pt=consumer {A: done → done-0,1}"


def test_an_operator_reset_a_group(tmp_path: Path) -> None:
    log = f"{_BEFORE} 4 d0 02:46:30  OC pay done-0 = 6200 | OC pay done-1 = 6100\n {_AFTER}"

    findings = Story(log).findings(tmp_path)

    found = said(findings, "IC-05b")
    assert codes_of(findings) == {"IC-05b"}
    assert (found.severity, found.confidence, found.group) == ("warn", "likely", "pay")
    expected = "reset while empty, 2 partitions: done-0 9000 → 6200 (-2800), done-1 8800 → 6100 (-2700), 80 s after the group emptied"
    assert found.sentence == expected
    assert evidence_offsets(found) == [1, 2, 3, 4, 5, 6]


def test_a_reset_to_where_the_group_is_changes_nothing(tmp_path: Path) -> None:
    log = f"{_BEFORE} 4 d0 02:46:30  OC pay done-0 = 9000 | OC pay done-1 = 8800\n {_AFTER}"

    assert said(Story(log).findings(tmp_path), "IC-05b").severity == "info"


@pytest.mark.parametrize(
    "log",
    [
        pytest.param(_BEFORE.replace("3 d0", "5 d0") + "6 d0 02:50 OC pay done-0 = 9100", id="history is incomplete and it is empty"),
        pytest.param("0 d0 10:00 OC tool t-0 = 100\n 1 d0 11:00 OC tool t-0 = 5", id="a simple group"),
        pytest.param('0 d0 10:00 GM tool gen=0 pt="" empty\n 1 d0 10:00 OC tool t-0 = 100\n 2 d0 11:00 OC tool t-0 = 5', id="placeholder"),
        pytest.param("0 d0 10:00 GM g gen=1 {A: t → t-0}\n 1 d0 10:01 OC g t-0 = 100\n 2 d0 10:02 OC g t-0 = 5", id="members are in it"),
    ],
)
def test_what_is_no_reset(tmp_path: Path, log: str) -> None:
    found = [each for each in Story(log).findings(tmp_path) if each.code == "IC-05b"]

    assert [each.confidence for each in found if each.confidence != "possible"] == []
    if "pay" not in log:
        assert not found


_MIRRORED = '0 d0 09:00 GM dr gen=0 pt="" empty\n 1 d0 10:00:00 OC dr src.t-0 = 500 | OC dr src.t-1 = 700 10 × every 60 s'


@pytest.mark.parametrize("log", [_MIRRORED, _MIRRORED.partition("\n")[2]], ids=["with a placeholder", "without a record"])
def test_replication_writes_positions_every_minute(tmp_path: Path, log: str) -> None:
    findings = Story(log).findings(tmp_path)

    found = said(findings, "IC-33")
    assert codes_of(findings) == {"IC-33"}
    assert (found.severity, found.confidence) == ("info", "likely")
    assert "2 partitions written every 60 s while nobody is in the group" in found.sentence


def test_replication_wrote_a_literal_source_offset(tmp_path: Path) -> None:
    log = f"{_MIRRORED}\n 21 d0 10:10:00 OC dr src.t-0 = 4200 | OC dr src.t-1 = 700"

    found = said(Story(log).findings(tmp_path, Inputs(end_offsets={("src.t", 0): 500, ("src.t", 1): 700}), codes=["IC-33"]), "IC-33")

    assert found.severity == "warn"
    assert "src.t-0 is at 4200, beyond the local end 500" in found.sentence


def test_members_came_while_replication_went_on(tmp_path: Path) -> None:
    log = """
        0 d0 09:00 GM dr gen=1 {A: src.t → src.t-0}
        1 d0 09:30 GM dr gen=2 empty
        2 d0 10:00:00 OC dr src.t-0 = 500 5 × every 60 s
        7 d0 10:04:30 GM dr gen=3 {A: src.t → src.t-0}
        8 d0 10:04:50 GM dr gen=4 empty
        9 d0 10:05:00 OC dr src.t-0 = 400 5 × every 60 s
    """
    found = said(Story(log).findings(tmp_path, codes=["IC-33", "IC-05b"]), "IC-33")

    assert found.severity == "warn"
    assert "src.t-0 went back 500 → 400" in found.sentence
    assert "1 member joined at record 7 while it went on" in found.sentence


@pytest.mark.parametrize(
    "log",
    [
        pytest.param(_MIRRORED.replace("10 × every 60 s", "2 × every 60 s"), id="twice"),
        pytest.param("1 d0 10:00 OC g t-0 = 1 | OC g t-1 = 2\n 3 d0 10:05 OC g t-0 = 2\n 4 d0 10:06 OC g t-0 = 3\n"
                     "5 d0 11:00 OC g t-0 = 4\n 6 d0 11:30 OC g t-0 = 5", id="irregularly"),
        pytest.param("1 d0 10:00 OC g t-0 = {n} {le=3} | OC g t-1 = {n} {le=3} 10 × every 60 s", id="with leader epochs"),
        pytest.param("0 d0 09:00 GM g gen=1 {A: t → t-0}\n 1 d0 10:00 OC g t-0 = {n} 10 × every 60 s", id="by a member"),
    ],
)  # fmt: skip
def test_what_is_no_replication(tmp_path: Path, log: str) -> None:
    assert "IC-33" not in codes_of(Story(log).findings(tmp_path))
