"""Detectors find the same with one thread and with several."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.analysis.detectors import log_files
from exhume.codecs.columns import record_blocks
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions
from exhume.findings import Finding
from exhume.fixtures.incidents.load_orders import INCIDENTS
from exhume.topic import OffsetsTopic
from tests.analysis.detectors.troubles import troubles


def found_in(directory: Path, threads: int) -> list[Finding]:
    with OffsetsTopic(discover([directory]), ReadOptions(threads=threads)) as topic:
        return [*topic.diagnose()]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make threads work on small logs too."""
    monkeypatch.setattr(record_blocks, "ROWS", 16)
    monkeypatch.setattr(log_files, "_LEAST_BEGUN_BYTES", 0)


@pytest.mark.parametrize("seed", range(3))
def test_threads_change_no_finding(tmp_path: Path, seed: int) -> None:
    troubles(seed, events=120).write(tmp_path)

    alone = found_in(tmp_path, 1)

    assert alone
    assert found_in(tmp_path, 4) == alone


@pytest.mark.parametrize("code", sorted({incident.code for incident in INCIDENTS}))
def test_trial_loads_on_another_thread_find_the_same(tmp_path: Path, code: str) -> None:
    incident = next(each for each in INCIDENTS if each.code == code)
    incident.hits[0].write(tmp_path)

    alone = found_in(tmp_path, 1)

    assert code in {finding.code for finding in alone}
    assert found_in(tmp_path, 4) == alone
