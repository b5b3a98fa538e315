"""Findings about several partitions of one topic that have one cause."""

from __future__ import annotations

from exhume.analysis.detectors.gathered import gathered
from exhume.findings import Confidence, Finding, Severity


def _finding(
    partition: int, *, at_s: int = 0, code: str = "IC-16", severity: Severity = "warn", confidence: Confidence = "likely"
) -> Finding:
    return Finding(
        code=code,
        sentence=f"sentence {partition}",
        severity=severity,
        confidence=confidence,
        group="g",
        topic="t",
        partition=partition,
        first_record_offset=partition,
        last_record_offset=10 + partition,
        last_timestamp_ms=1000 * at_s,
        not_excluded="gaps",
        remedy=f"remedy {partition}",
        evidence=[{"record_offset": partition}],
    )


def test_findings_of_one_moment_are_one() -> None:
    [one] = gathered([_finding(2), _finding(1, severity="incident"), _finding(3, at_s=60)])

    assert one.sentence == "3 partitions of t (1, 2, 3); t-1: sentence 1"
    assert (one.severity, one.partition, one.first_record_offset, one.last_record_offset) == ("incident", None, 1, 13)
    assert (one.not_excluded, one.remedy, one.evidence) == ("gaps", "remedy 1", [{"record_offset": each} for each in (2, 1, 3)])


def test_findings_of_different_hours_topics_or_codes_stay_apart() -> None:
    apart = [_finding(1), _finding(2, at_s=3600), _finding(3, code="IC-31"), _finding(4, confidence="undecidable")]

    assert {each.sentence for each in gathered(apart)} == {each.sentence for each in apart}


def test_positions_are_one_whatever_their_times() -> None:
    assert len([*gathered([_finding(1, code="IC-29"), _finding(2, at_s=86_400, code="IC-29")])]) == 1
