"""The table of detectors: its entries and their order."""

from __future__ import annotations

from itertools import pairwise

import pytest

from exhume.analysis.detectors.catalogue import DETECTORS, WITHOUT_DETECTOR
from exhume.analysis.detectors.diagnose import chosen
from exhume.errors import RequestError

_CODES = {f"IC-{number:02d}" for number in range(1, 42)} - {"IC-05"} | {"IC-05a", "IC-05b", "IC-28c"}


def test_every_detector_is_in_the_catalogue_once() -> None:
    codes = [detector.code for detector in DETECTORS]

    assert len(set(codes)) == len(codes)
    assert {*codes, *WITHOUT_DETECTOR} == _CODES


def test_the_detectors_of_a_section_are_together() -> None:
    changes = [one.section for one, other in pairwise([*DETECTORS, DETECTORS[0]]) if one.section != other.section]

    assert len(set(changes)) == len(changes)


def test_every_detector_has_one_function_and_a_rule() -> None:
    for detector in DETECTORS:
        assert [detector.in_group, detector.in_partition, detector.in_topic].count(None) == 2
        assert detector.rule.endswith(".")
        assert not any(trap.endswith(".") for trap in detector.traps)


@pytest.mark.parametrize("code", ["IC-01", "IC-01a"])
def test_codes_name_detectors(code: str) -> None:
    assert [detector.code for detector in chosen([code])] == ["IC-01"]


@pytest.mark.parametrize("code", ["IC-0", "IC-99", "IC-011", ""])
def test_an_unknown_code_is_refused(code: str) -> None:
    with pytest.raises(RequestError, match="--list"):
        chosen([code])


def test_restoring_positions_is_another_command() -> None:
    with pytest.raises(RequestError, match="exhume reset-plan"):
        chosen(["IC-10"])
