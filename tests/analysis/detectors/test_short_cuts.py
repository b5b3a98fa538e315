"""What columns alone rule out, a look at everything does not find either."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exhume.analysis.detectors import TopicCase, beyond, diagnose, moves
from exhume.analysis.detectors.inputs import Inputs
from exhume.findings import Finding

from .story import codes_of
from .troubles import troubles

_SEEDS = range(12)


@pytest.fixture(scope="module", params=_SEEDS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TopicCase:
    return troubles(request.param).case(tmp_path_factory.mktemp("troubles"))


def _found(case: TopicCase, code: str) -> list[Finding]:
    return diagnose(case, Inputs(), codes=[code])


def test_troubles_are_many(tmp_path: Path) -> None:
    found = [finding for seed in _SEEDS for finding in diagnose(troubles(seed).case(tmp_path / str(seed)), Inputs())]

    assert {"IC-02", "IC-07", "IC-11", "IC-11b", "IC-16", "IC-18", "IC-20a", "IC-24a", "IC-24c", "IC-34", "IC-38"} <= codes_of(found)
    assert any(finding.code == "IC-13" for finding in found)


def test_rewinds_far_from_every_handover(case: TopicCase, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_first = _found(case, "IC-02")
    monkeypatch.setattr(moves, "_may_be_after_handovers", lambda _, changes: np.ones(len(changes), np.bool_))

    assert _found(case, "IC-02") == asked_first


def test_keys_without_teeth(case: TopicCase, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_first = _found(case, "IC-13")
    monkeypatch.setattr(moves, "_with_teeth", lambda group: [*group.keys])

    assert _found(case, "IC-13") == asked_first


def test_changes_that_are_no_sign_of_another_topic(case: TopicCase, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_first = _found(case, "IC-07")
    monkeypatch.setattr(beyond, "_signs", lambda changes: changes.places)

    assert _found(case, "IC-07") == asked_first
