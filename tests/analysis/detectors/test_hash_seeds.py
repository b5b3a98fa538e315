"""Findings are the same in each run: Python orders sets of texts by a seed that differs from run to run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.detectors.troubles import troubles

_SCRIPT = """
import sys
import exhume
for place in sys.argv[1:]:
    with exhume.open(place) as topic:
        sys.stdout.writelines(f"{finding}\\n" for finding in topic.diagnose())
"""


@pytest.mark.slow
def test_findings_do_not_depend_on_the_seed_of_hashes(tmp_path: Path) -> None:
    places = [tmp_path / str(seed) for seed in range(3, 6)]
    for seed, place in zip(range(3, 6), places, strict=True):
        troubles(seed, events=80).write(place)
    answers = {
        subprocess.run(
            [sys.executable, "-c", _SCRIPT, *places], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3", "4", "5")
    }
    assert len(answers) == 1
    assert b"IC-40" in answers.pop()
