"""Kernels face hostile bytes: with bounds checked they step out of no array, and say what plain code says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import checked
from tests.patience import PATIENCE_SECONDS
from tests.strategies import times

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).resolve().parents[2]
_EXAMPLES = 150
#: Compiling takes most of a run.
_SECONDS = 2 * PATIENCE_SECONDS + times(60)


def run(directory: Path, seed: int, examples: int, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz.runner", str(directory), str(seed), str(examples)],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def test_hostile_bytes_keep_every_kernel_within_its_arrays(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """EXHUME_RANDOM_SEED makes other logs, EXHUME_EXAMPLES more of them."""
    examples = times(_EXAMPLES)
    own = checked.environment(tmp_path_factory.mktemp("checked"))
    done = run(tmp_path, int(os.environ.get("EXHUME_RANDOM_SEED", "0")) << 32, examples, **own)

    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["idle"] == []
    # Older releases refuse much of it; that kernels always gave way at once would prove nothing.
    assert said["partitions"] > examples // 2
    assert said["batches"] > 10 * examples


def test_the_runner_refuses_kernels_without_checks(tmp_path: Path) -> None:
    unchecked = run(tmp_path, 0, 0)

    assert unchecked.returncode == 1
    assert "EXHUME_KERNELS does not name kernels that check each index" in unchecked.stderr
