"""False alarms: in the logs of healthy brokers there is no warning and no incident."""

from __future__ import annotations

from pathlib import Path

import pytest

import exhume
from exhume.analysis.detectors import Inputs
from tests.judges import corpus

#: The layouts of this early access release are those of no later one, which do not load them.
_EARLY_ACCESS = {"3.7.2-consumer-groups": Inputs(release="3.7.2")}
_PAGE = Path(__file__).resolve().parents[3] / "docs" / "detectors.md"


def _stories(root: Path) -> list[corpus.Case]:
    return [case for case in corpus.cases(root) if not case.is_fact and not case.is_random]


def _told(case: corpus.Case) -> list[str]:
    """Return the warnings and incidents in a story."""
    told = []
    for data in case.data_directories.values():
        with exhume.open(data) as topic:
            findings = topic.diagnose(_EARLY_ACCESS.get(case.name))
        told += [f"{each.code} {each.sentence}" for each in findings if each.severity != "info" and each.confidence != "undecidable"]
    return told


def test_the_page_names_the_number_of_stories() -> None:
    assert f"the logs of {len(_stories(corpus.BUNDLED))} stories from healthy brokers" in _PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", corpus.sweep(_stories(corpus.BUNDLED), one_of=4))
def test_a_healthy_cluster_has_no_warning(case: corpus.Case) -> None:
    assert not _told(case)


@pytest.mark.corpus
@pytest.mark.skipif(corpus.WHOLE is None, reason="EXHUME_CORPUS is not set")
def test_the_healthy_clusters_of_the_whole_corpus_have_no_warning() -> None:
    assert corpus.WHOLE is not None
    bundled = {case.name for case in _stories(corpus.BUNDLED)}
    told = {case.name: _told(case) for case in _stories(corpus.WHOLE) if case.name in bundled}

    assert not {name: found for name, found in told.items() if found}
