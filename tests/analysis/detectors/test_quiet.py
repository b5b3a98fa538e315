"""False alarms: docs/detectors.md lists all warnings and incidents in the logs of healthy brokers."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import exhume
from tests.judges import corpus

_PAGE = Path(__file__).resolve().parents[3] / "docs" / "detectors.md"
_ROW = re.compile(r"^\| (\S+) \| (IC-\S+) \| (\S+) \| .* \|$", re.MULTILINE)


def _listed() -> dict[str, Counter[tuple[str, str]]]:
    """Return the code and group of each finding on the page, by story."""
    listed: dict[str, Counter[tuple[str, str]]] = {}
    for story, code, group in _ROW.findall(_PAGE.read_text(encoding="utf-8")):
        listed.setdefault(story, Counter())[code, group] += 1
    return listed


def _stories(root: Path) -> list[corpus.Case]:
    return [case for case in corpus.cases(root) if not case.is_fact and not case.is_random]


def _told(case: corpus.Case) -> Counter[tuple[str, str]]:
    """Return the warnings and incidents in a story."""
    told: Counter[tuple[str, str]] = Counter()
    for data in case.data_directories.values():
        with exhume.open(data) as topic:
            for finding in topic.diagnose():
                if finding.severity != "info" and finding.confidence != "undecidable":
                    told[finding.code, finding.group or "-"] += 1
    return told


def test_the_page_lists_known_stories() -> None:
    assert {*_listed()} <= {case.name for case in _stories(corpus.BUNDLED)}


@pytest.mark.parametrize("case", corpus.sweep(_stories(corpus.BUNDLED), one_of=4))
def test_the_page_lists_all_findings_in_a_healthy_cluster(case: corpus.Case) -> None:
    assert _told(case) == _listed().get(case.name, Counter())


@pytest.mark.corpus
@pytest.mark.skipif(corpus.WHOLE is None, reason="EXHUME_CORPUS is not set")
def test_the_page_lists_all_findings_in_the_whole_corpus() -> None:
    assert corpus.WHOLE is not None
    stories = [case for case in _stories(corpus.WHOLE) if case.name in {bundled.name for bundled in _stories(corpus.BUNDLED)}]

    assert {case.name: _told(case) for case in stories} == {case.name: _listed().get(case.name, Counter()) for case in stories}
