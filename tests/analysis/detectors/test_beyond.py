"""Committed offsets outside of the data, and topics that are not what they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.analysis.detectors import Inputs
from tests.analysis.detectors.story import Story, codes_of, said, topic_id

_RECREATED = "0 d0 10:00  OC g logs-0 = 8000 {first}\n 1 d0 11:00  OC g logs-0 = {offset} {second}"


def _changed(first: str, second: str, offset: int = 15) -> Story:
    return Story(_RECREATED.replace("{first}", first).replace("{second}", second).replace("{offset}", str(offset)))


def test_another_topic_id_is_another_topic(tmp_path: Path) -> None:
    found = said(_changed("{le=12 tid=AAA}", "{le=0 tid=BBB}").findings(tmp_path, Inputs(end_offsets={})), "IC-07")

    assert (found.severity, found.confidence, found.topic) == ("incident", "proof", "logs")
    assert f"topic id {topic_id('AAA')} → {topic_id('BBB')}" in found.sentence


def test_lower_leader_epochs_and_a_collapse_are_likely_another_topic(tmp_path: Path) -> None:
    found = said(_changed("{le=12}", "{le=0}").findings(tmp_path, Inputs(end_offsets={})), "IC-07")

    assert (found.severity, found.confidence) == ("incident", "likely")


def test_lower_leader_epochs_alone_may_be_an_unclean_election(tmp_path: Path) -> None:
    found = said(_changed("{le=12}", "{le=3}", 7990).findings(tmp_path, Inputs(end_offsets={})), "IC-07")

    assert (found.severity, found.confidence) == ("warn", "possible")
    assert "leader epoch 12 → 3" in found.sentence


def test_a_collapse_of_all_partitions_of_all_groups(tmp_path: Path) -> None:
    log = """
        0 d0 10:00 OC g t-0 = 8000 | OC g t-1 = 9000 | OC h t-0 = 7000
        3 d0 11:00 OC g t-0 = 5 | OC g t-1 = 0
        5 d0 11:05 OC h t-0 = 9
    """
    found = said(Story(log).findings(tmp_path, Inputs(end_offsets={}), codes=["IC-07"]), "IC-07")

    assert (found.severity, found.confidence, found.group) == ("warn", "possible", None)
    assert "collapse to near 0 within 5 min" in found.sentence


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(("{le=12 tid=AAA}", "{le=12}", 8100), id="no topic id any more"),
        pytest.param(("{le=12}", "{le=-1}", 15), id="no leader epoch any more"),
        pytest.param(("", "", 7000), id="a rewind"),
    ],
)
def test_what_is_no_other_topic(tmp_path: Path, story: tuple[str, str, int]) -> None:
    assert "IC-07" not in codes_of(_changed(*story).findings(tmp_path))


def test_a_collapse_of_some_partitions_is_none(tmp_path: Path) -> None:
    log = "0 d0 10:00 OC g t-0 = 8000 | OC g t-1 = 9000\n 2 d0 11:00 OC g t-0 = 5"

    assert "IC-07" not in codes_of(Story(log).findings(tmp_path))


_COMMITTED = "0 d0 10:00 OC q t-0 = 100\n 1 d0 10:01 OC q t-0 = 110\n 2 d0 10:02 OC q t-0 = 120"


def test_negative_lag(tmp_path: Path) -> None:
    found = said(Story(_COMMITTED).findings(tmp_path, Inputs(end_offsets={("t", 0): 50})), "IC-07")

    assert (found.severity, found.group, found.topic, found.partition) == ("incident", "q", "t", 0)
    assert "120 is committed and the data log ends at 50: negative lag of 70" in found.sentence


def test_ends_that_were_read_a_moment_before_are_no_negative_lag(tmp_path: Path) -> None:
    assert not Story(_COMMITTED).findings(tmp_path, Inputs(end_offsets={("t", 0): 112}), codes=["IC-07"])


def test_negative_lag_is_undecidable_without_ends(tmp_path: Path) -> None:
    found = Story(_COMMITTED).findings(tmp_path, codes=["IC-07"])

    assert [(each.confidence, each.remedy) for each in found] == [("undecidable", "Give --end-offsets")]


def test_a_phantom_lag(tmp_path: Path) -> None:
    inputs = Inputs(start_offsets={("q", 0): 5000}, end_offsets={("q", 0): 5000})

    found = said(Story("0 d0 10:00 OC g q-0 = 100").findings(tmp_path, inputs), "IC-29")

    assert (found.severity, found.confidence) == ("warn", "proof")
    assert "100 is committed and the data log begins at 5000: 4900 offsets are gone; lag 4900 by the offsets, 0 in truth" in found.sentence


def test_a_commit_at_the_start_of_the_data_lags_by_what_is_there(tmp_path: Path) -> None:
    assert not Story("0 d0 10:00 OC g q-0 = 5000").findings(tmp_path, Inputs(start_offsets={("q", 0): 5000}), codes=["IC-29"])


def test_phantom_lag_is_undecidable_without_starts(tmp_path: Path) -> None:
    found = Story("0 d0 10:00 OC g q-0 = 100").findings(tmp_path, codes=["IC-29"])

    assert [(each.confidence, each.remedy) for each in found] == [("undecidable", "Give --start-offsets")]
