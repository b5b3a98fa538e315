"""How a release finds its rules."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from exhume.errors import RequestError
from exhume.replay.release_table import newest_of_each_line, release_spans, release_table
from exhume.replay.releases import all_spans, is_newer_than_known, java_spans, profile_for, release_numbers, scala_spans


@pytest.mark.parametrize(
    ("asked", "first", "name", "coordinator"),
    [
        ("4.2", "4.2.2", "4.2.2", "java"),
        ("4.2.1", "4.2.1", "4.2.1", "java"),
        ("4.2.0", "4.2.0", "4.2.0", "java"),
        ("2.8", "2.8.2", "2.8.2", "classic"),
        ("2.5.1", "2.5.0", "2.5.1", "classic"),
        ("3.4", "3.4.1", "3.4", "classic"),
        ("3.9.1", "3.4.1", "3.9.1", "classic"),
        ("3.9.1-classic", "3.4.1", "3.9.1", "classic"),
        ("3.9.1-new", "3.8.0", "3.9.1-new", "java"),
        ("3.7-new", "3.7.0", "3.7.2-new", "java"),
        ("0.11", "0.11.0.1", "0.11", "classic"),
        ("0.10.2.2", "0.10.2.0", "0.10.2.2", "classic"),
        ("1.0.0", "0.11.0.1", "1.0.0", "classic"),
        ("4.3", "4.3.0", "4.3.1", "java"),
        ("4.4", "4.4.0", "4.4.0", "java"),
        (None, "4.4.0", "4.4.0", "java"),
    ],
)
def test_a_release_finds_the_span_it_lies_in(asked: str | None, first: str, name: str, coordinator: str) -> None:
    profile = profile_for(asked)

    assert (profile.first, profile.release, profile.coordinator) == (first, name, coordinator)


def test_a_release_behind_the_newest_takes_the_newest_rules_and_can_be_told() -> None:
    assert profile_for("9.1").first == all_spans()[-1].first
    assert is_newer_than_known("9.1")
    assert is_newer_than_known("4.5")
    assert not is_newer_than_known("4.4")
    assert not is_newer_than_known("2.8.2")


@pytest.mark.parametrize("asked", ["", "banana", "0.8.2", "2.8.2-new", "4.3-classic", "v4"])
def test_what_is_no_release_is_refused_with_what_is_known(asked: str) -> None:
    with pytest.raises(RequestError, match=r"0\.9\.0\.0|3\.7"):
        profile_for(asked)


@pytest.mark.parametrize("spans", [scala_spans(), java_spans()], ids=["scala", "java"])
def test_spans_follow_one_another_without_overlap(spans: tuple[object, ...]) -> None:
    ends = [(release_numbers(span.first), release_numbers(span.last)) for span in spans]  # type: ignore[attr-defined]

    assert all(first <= last for first, last in ends)
    assert all(last < first for (_, last), (first, _) in pairwise(ends))


def test_no_two_neighbouring_spans_have_the_same_rules() -> None:
    aside = {"name", "first", "last", "defects"}
    for spans in (scala_spans(), java_spans()):
        for before, after in pairwise(spans):
            names = set(type(before).__dataclass_fields__) - aside
            assert any(getattr(before, name) != getattr(after, name) for name in names) or before.defects != after.defects, after.first


def test_the_table_has_a_row_for_every_span_and_every_span_can_be_asked_for() -> None:
    assert release_table().num_rows == len(all_spans())
    assert [profile_for(name).first for name in newest_of_each_line()] == [span.first for span in all_spans()]


def test_spans_for_people_cover_the_releases_in_order() -> None:
    shown = [row["releases"].split(" to ") for row in release_spans().to_pylist()]

    assert (shown[0][0], shown[-1][-1]) == (all_spans()[0].first, all_spans()[-1].last)
    assert {first for first, *_ in shown} <= {span.first for span in all_spans()}
    assert len(shown) < len(all_spans()) / 2


def test_the_table_names_what_changed_with_a_span() -> None:
    changes = {(row["first_release"], row["coordinator"]): row["changes"] for row in release_table().to_pylist()}

    assert changes["1.1.0", "classic"] == ["removed_by"]
    assert changes["2.5.0", "classic"] == ["require_stable"]
    assert [span for span, changed in changes.items() if changed is None] == [("0.9.0.0", "classic"), ("3.7.0", "java")]
    assert all(changed for changed in changes.values() if changed is not None)


def test_the_page_names_the_releases_whose_load_depends_on_chunks() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "fidelity.md").read_text(encoding="utf-8")
    section = page.split("## Releases whose logs cannot be folded")[1].split("##")[0]
    names = {span.name for span in all_spans() if span.depends_on_chunks}

    assert names == {"0.9.0.1", "0.10.0.1", "0.10.1.1", "0.10.2.2", "0.11.0.0"}
    assert set(re.findall(r"\d+(?:\.\d+)+", section)) == names
