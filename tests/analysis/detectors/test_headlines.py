"""The order of findings, and the consequences of a cause."""

from __future__ import annotations

from typing import Any

from exhume.analysis.detectors.headlines import DIAGNOSIS, alike_as_one, ranked
from exhume.findings import Confidence, Finding, Findings, Severity

_MINUTE_MS = 60_000


def _finding(
    code: str,
    group: str | None = "g",
    *,
    minute: int | None = 0,
    severity: Severity = "warn",
    confidence: Confidence = "likely",
    topic: str | None = None,
    sentence: str = "",
) -> Finding:
    time_ms = None if minute is None else minute * _MINUTE_MS
    return Finding(
        code=code,
        sentence=sentence or f"{code} at {minute}",
        severity=severity,
        confidence=confidence,
        group=group,
        topic=topic,
        offsets_partition=3,
        first_timestamp_ms=time_ms,
        last_timestamp_ms=time_ms,
    )


def _rows(*findings: Finding) -> list[dict[str, Any]]:
    table = ranked(Findings(findings))
    assert table.schema == DIAGNOSIS
    return [{name: row[name] for name in ("rank", "code", "group", "because_of", "consequences")} for row in table.to_pylist()]


def _order(*findings: Finding) -> list[str]:
    return [f"{row['code']} {row['group']}" for row in _rows(*findings)]


def test_severity_then_confidence_then_time() -> None:
    assert _order(
        _finding("IC-12", "a", severity="info"),
        _finding("IC-20a", "b", confidence="possible", minute=9),
        _finding("IC-20a", "c", minute=1),
        _finding("IC-30", "d", minute=2),
        _finding("IC-11", "e", severity="incident", confidence="possible"),
    ) == ["IC-11 e", "IC-30 d", "IC-20a c", "IC-20a b", "IC-12 a"]


def test_a_consequence_stands_under_its_cause() -> None:
    rows = _rows(
        _finding("IC-02", severity="incident", minute=7),
        _finding("IC-20a", minute=20),
        _finding("IC-40", minute=5),
        _finding("IC-02", "other", minute=6),
    )

    assert [(row["rank"], row["code"], row["group"], row["because_of"], row["consequences"]) for row in rows] == [
        (1, "IC-40", "g", None, "IC-02, IC-20a"),
        (2, "IC-02", "other", None, None),
        (3, "IC-02", "g", 1, None),
        (4, "IC-20a", "g", 1, None),
    ]


def test_what_came_long_before_or_after_is_no_consequence() -> None:
    rows = _rows(_finding("IC-40", minute=300), _finding("IC-02", minute=1), _finding("IC-18", minute=900))

    assert [row["because_of"] for row in rows] == [None, None, None]


def test_the_cause_of_a_cause_is_the_cause() -> None:
    rows = _rows(_finding("IC-02"), _finding("IC-40"), _finding("IC-41"))

    assert [(row["code"], row["because_of"]) for row in rows] == [("IC-41", None), ("IC-02", 1), ("IC-40", 1)]


def test_a_cause_that_is_not_shown_hides_nothing() -> None:
    rows = _rows(_finding("IC-05b", severity="info"), _finding("IC-02"))

    assert [row["because_of"] for row in rows] == [None, None]


def test_a_topic_explains_what_happened_to_it_in_any_group() -> None:
    rows = _rows(
        _finding("IC-07", None, topic="t"),
        _finding("IC-38", "g", topic="t"),
        _finding("IC-38", "h", topic="t"),
        _finding("IC-38", "h", topic="u"),
    )

    assert [(row["code"], row["group"], row["because_of"]) for row in rows] == [
        ("IC-07", None, None),
        ("IC-38", "h", None),
        ("IC-38", "g", 1),
        ("IC-38", "h", 1),
    ]


def test_a_class_that_repeats_in_a_group_is_one_headline() -> None:
    rows = _rows(_finding("IC-18", minute=1), _finding("IC-18", minute=500), _finding("IC-18", minute=900))

    assert [(row["rank"], row["because_of"], row["consequences"]) for row in rows] == [(1, None, "IC-18"), (2, 1, None), (3, 1, None)]


def test_undecidable_checks_are_no_consequences() -> None:
    rows = _rows(_finding("IC-40"), _finding("IC-20a", confidence="undecidable", severity="info"))

    assert [row["because_of"] for row in rows] == [None, None]


def test_there_are_ten_headlines_of_several_classes() -> None:
    many = [_finding("IC-11", f"g{number:02}", severity="incident", minute=100 - number) for number in range(20)]
    findings = Findings([*many, _finding("IC-23", None, severity="incident", minute=None), _finding("IC-30", "z")])
    shown = ranked(findings, only_headlines=True).to_pylist()

    assert shown == ranked(findings).to_pylist()[:10]

    assert [row["code"] for row in shown] == [*["IC-11"] * 3, "IC-23", *["IC-11"] * 6]
    assert [row["rank"] for row in shown] == [*range(1, 11)]


def _listed(*findings: Finding) -> list[tuple[str, str | None, str]]:
    table = alike_as_one(ranked(Findings(findings)))
    assert table.schema == DIAGNOSIS
    return [(row["code"], row["group"], row["sentence"]) for row in table.to_pylist()]


def test_notes_of_one_class_are_one_row_with_their_number() -> None:
    notes = [_finding("IC-34", f"g{number}", minute=-number, severity="info", sentence=f"uneven {number}") for number in range(9)]

    assert _listed(*notes, _finding("IC-12", "h", severity="info", sentence="one")) == [
        ("IC-12", "h", "one"),
        ("IC-34", "g0", "uneven 0 (and 8 more like it: g1, g2, g3, g4, g5 …; --code IC-34 lists each)"),
    ]


def test_warnings_stay() -> None:
    alike = [_finding("IC-30", f"g{number}", sentence="alike") for number in range(5)]

    assert len(_listed(*alike)) == 5
    assert not _listed()
