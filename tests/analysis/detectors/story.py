"""Diagnose stories and incidents."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from exhume.analysis.detectors import Inputs, TopicCase, condense, diagnose
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.findings import Finding, Findings
from exhume.fixtures import story as language
from exhume.fixtures.story import DAY_0_MS, time_ms, topic_id
from exhume.replay.topic_names import TopicNames

__all__ = [
    "DAY_0_MS",
    "Story",
    "case_of",
    "codes_of",
    "evidence_offsets",
    "said",
    "time_ms",
    "topic_id",
]


class Story(language.Story):
    """A story with a diagnosis."""

    def case(self, directory: Path) -> TopicCase:
        """Write the story, read it, and condense it."""
        return case_of(self.write(directory), topics=self.topics)

    def findings(self, directory: Path, inputs: Inputs | None = None, *, codes: Collection[str] | None = None) -> list[Finding]:
        """Return the findings in the story."""
        return diagnose(self.case(directory), inputs or Inputs(), codes=codes)


def case_of(*directories: Path, topics: Collection[str] = ()) -> TopicCase:
    """Condense these directories as `exhume diagnose` does. The ids of these topics are known."""
    names = TopicNames()
    for topic in topics:
        names.add("topics_file", topic_id(topic), topic)
    with discover([*directories]) as evidence:
        return condense(SegmentReader(evidence, ReadOptions(), Findings()), names)


def codes_of(findings: Collection[Finding]) -> set[str]:
    """Return the codes of the findings, without the undecidable ones."""
    return {finding.code for finding in findings if finding.confidence != "undecidable"}


def said(findings: Collection[Finding], code: str) -> Finding:
    """Return the only finding of this code."""
    found = [finding for finding in findings if finding.code == code]
    assert len(found) == 1, [finding.sentence for finding in found]
    return found[0]


def evidence_offsets(finding: Finding) -> list[int]:
    """Return the record offsets in the evidence of a finding."""
    rows = finding.evidence
    assert isinstance(rows, list)
    return [row["record_offset"] for row in rows if isinstance(row, Mapping)]
