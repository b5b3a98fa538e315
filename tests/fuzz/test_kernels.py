"""Kernels face hostile bytes: with bounds checked they step out of no array, and say what plain code says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.strategies import times

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).resolve().parents[2]
_EXAMPLES = 150
#: Compiling takes most of a run.
_SECONDS = 2 * PATIENCE_SECONDS + times(60)


def run(request: pytest.FixtureRequest, directory: Path, seed: int, examples: int, **environment: str) -> subprocess.CompletedProcess[str]:
    # The compiler's cache does not know whether bounds are checked, so this code must not lie beside that of users.
    cache = request.config.cache
    assert cache is not None
    own = {"NUMBA_BOUNDSCHECK": "1", "XDG_CACHE_HOME": str(cache.mkdir("kernels-with-bounds-checked")), "HOME": str(directory)}
    paths = os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz.runner", str(directory), str(seed), str(examples)],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": paths, **own, **environment},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def test_hostile_bytes_keep_every_kernel_within_its_arrays(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """EXHUME_RANDOM_SEED makes other logs, EXHUME_EXAMPLES more of them."""
    examples = times(_EXAMPLES)
    done = run(request, tmp_path, int(os.environ.get("EXHUME_RANDOM_SEED", "0")) << 32, examples)

    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["idle"] == []
    # Older releases refuse much of it; that kernels always gave way at once would prove nothing.
    assert said["partitions"] > examples // 2
    assert said["batches"] > 10 * examples


def test_a_process_without_checked_bounds_is_told_from_one_with_them(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    unchecked = run(request, tmp_path, 0, 0, NUMBA_BOUNDSCHECK="0", XDG_CACHE_HOME=str(tmp_path / "unchecked"))

    assert unchecked.returncode == 1
    assert "NUMBA_BOUNDSCHECK=1 is missing" in unchecked.stderr
