"""Every entry of the catalogue: found where it is, not where it only seems to be, and open where that cannot be told."""

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
def test_where_it_is_it_is_found(code: str, title: str, tmp_path: Path) -> None:
    assert code in codes_of(hit(code, tmp_path, title))


@_all((each, each.near_misses) for each in _DIAGNOSED)
def test_what_only_looks_like_it_is_not_taken_for_it(code: str, title: str, tmp_path: Path) -> None:
    assert code not in codes_of(near_miss(code, tmp_path, title))


@_all((each, each.undecidable) for each in _DIAGNOSED)
def test_where_it_cannot_be_told_that_is_said(code: str, title: str, tmp_path: Path) -> None:
    assert (code, "undecidable") in {(found.code, found.confidence) for found in undecidable(code, tmp_path, title)}


def test_every_entry_of_the_catalogue_has_a_log_and_one_that_only_looks_like_it() -> None:
    told = {detector.code: [code for code in INCIDENTS if detector.finds(code)] for detector in DETECTORS}
    told |= {code: [code] for code in WITHOUT_DETECTOR if code in INCIDENTS}

    assert len(told) == 39
    assert all(told.values())
    assert sorted(INCIDENTS) == sorted(code for codes in told.values() for code in codes)
    for each in INCIDENTS.values():
        assert each.hits, each.code
        assert each.near_misses, each.code
        for those in (each.hits, each.near_misses, each.undecidable):
            assert len({told.title for told in those}) == len(those), each.code


@pytest.mark.parametrize("code", ["IC-07", "IC-20a", "IC-22", "IC-23", "IC-28c", "IC-29"])
def test_what_needs_more_than_logs_has_one_without_it(code: str) -> None:
    assert INCIDENTS[code].undecidable


def test_what_was_lost_is_restored_and_what_was_not_is_left_alone(tmp_path: Path) -> None:
    def plan(directory: Path) -> str:
        with exhume.open(directory) as topic:
            return topic.reset_plan(["pay"], taken_back="lost").text

    for number, each in enumerate(INCIDENTS["IC-10"].hits):
        assert plan(write("IC-10", tmp_path / f"hit {number}", which=each.title).directory) == "orders,0,5000\norders,1,7000\n"
    for number, each in enumerate(INCIDENTS["IC-10"].near_misses):
        assert not plan(write("IC-10", tmp_path / f"near miss {number}", kind="near miss", which=each.title).directory)


def test_the_same_log_is_the_same_bytes_in_every_codec(tmp_path: Path) -> None:
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
def test_what_there_is_not_is_refused_with_what_there_is(code: str, number: int, said: str) -> None:
    with pytest.raises(RequestError, match=re.escape(said)):
        situation(incident(code).code, "hit", number)
