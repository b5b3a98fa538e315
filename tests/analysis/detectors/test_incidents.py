"""Every incident is found in its logs, not in near misses, and undecidable in the others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

import exhume
from exhume.analysis.detectors.catalogue import DETECTORS, WITHOUT_DETECTOR
from exhume.errors import RequestError
from exhume.fixtures.incidents import INCIDENTS, Incident, Situation, incident, situation, write

from .incidents import hit, near_miss, undecidable
from .story import codes_of

_DIAGNOSED = [each for each in INCIDENTS.values() if each.command is None]


def _all(situations: Iterable[tuple[Incident, Iterable[Situation]]]) -> pytest.MarkDecorator:
    cases = [(incident.code, each.title) for incident, those in situations for each in those]
    return pytest.mark.parametrize(("code", "title"), cases, ids=[f"{code}: {title}" for code, title in cases])


@_all((each, each.hits) for each in _DIAGNOSED)
def test_a_hit_is_found(code: str, title: str, tmp_path: Path) -> None:
    assert code in codes_of(hit(code, tmp_path, title))


@pytest.mark.one_of(2)
@_all((each, each.near_misses) for each in _DIAGNOSED)
def test_a_near_miss_is_not_found(code: str, title: str, tmp_path: Path) -> None:
    assert code not in codes_of(near_miss(code, tmp_path, title))


@_all((each, each.undecidable) for each in _DIAGNOSED)
def test_an_undecidable_log_is_reported_so(code: str, title: str, tmp_path: Path) -> None:
    assert (code, "undecidable") in {(found.code, found.confidence) for found in undecidable(code, tmp_path, title)}


def test_every_detector_has_a_hit_and_a_near_miss() -> None:
    told = {detector.code: [code for code in INCIDENTS if detector.finds(code)] for detector in DETECTORS}
    told |= {code: [code] for code in WITHOUT_DETECTOR if code in INCIDENTS}

    assert len(told) == 43
    assert all(told.values())
    # Two detectors find IC-28c: of one group, and of several at one moment.
    assert sorted([*INCIDENTS, "IC-28c"]) == sorted(code for codes in told.values() for code in codes)
    for each in INCIDENTS.values():
        assert each.hits, each.code
        assert each.near_misses, each.code
        for those in (each.hits, each.near_misses, each.undecidable):
            assert len({told.title for told in those}) == len(those), each.code


@pytest.mark.parametrize("code", ["IC-07", "IC-20a", "IC-22", "IC-23", "IC-28c", "IC-29"])
def test_a_detector_with_inputs_has_a_log_without_them(code: str) -> None:
    assert INCIDENTS[code].undecidable


def test_lost_offsets_are_restored_and_others_are_not(tmp_path: Path) -> None:
    def plan(directory: Path) -> str:
        with exhume.open(directory) as topic:
            return topic.reset_plan(["pay"], taken_back="lost").text

    for number, each in enumerate(INCIDENTS["IC-10"].hits):
        assert plan(write("IC-10", tmp_path / f"hit {number}", which=each.title).directory) == "orders,0,5000\norders,1,7000\n"
    for number, each in enumerate(INCIDENTS["IC-10"].near_misses):
        assert not plan(write("IC-10", tmp_path / f"near miss {number}", kind="near miss", which=each.title).directory)


def test_an_incident_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    for codec in ("none", "lz4"):
        one, other = (write("IC-04", tmp_path / f"{codec}-{name}", codec=codec).directory for name in ("one", "other"))
        written = [{file.relative_to(place): file.read_bytes() for file in place.rglob("*.*")} for place in (one, other)]
        assert written[0] == written[1]
        assert written[0]


@pytest.mark.parametrize(
    ("code", "number", "said"),
    [
        ("IC-99", 1, "no incident"),
        ("IC-20", 1, "Choose one of IC-20a, IC-20b"),
        ("IC-04", 9, "Choose one of 1 (one client leaves and joins again and again)"),
    ],
)
def test_an_unknown_incident_is_refused_with_a_list(code: str, number: int, said: str) -> None:
    with pytest.raises(RequestError, match=re.escape(said)):
        situation(incident(code).code, "hit", number)
