"""Kernels and hostile bytes: with each index checked, no kernel leaves its arrays, and the results are those of plain code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import checked
from tests.patience import PATIENCE_SECONDS
from tests.strategies import times

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).resolve().parents[2]
_EXAMPLES = 50
_SECONDS = PATIENCE_SECONDS + times(60)


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process whose kernels check each index."""
    return checked.environment(tmp_path_factory.mktemp("checked"))


def _python(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def _run(directory: Path, seed: int, examples: int, **environment: str) -> subprocess.CompletedProcess[str]:
    return _python("-m", "tests.fuzz.runner", directory, str(seed), str(examples), **environment)


def test_hostile_bytes_keep_every_kernel_within_its_arrays(tmp_path: Path, checks: dict[str, str]) -> None:
    """EXHUME_RANDOM_SEED makes other logs, EXHUME_EXAMPLES more of them."""
    examples = times(_EXAMPLES)
    done = _run(tmp_path, int(os.environ.get("EXHUME_RANDOM_SEED", "0")) << 32, examples, **checks)

    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["idle"] == []
    # Older releases refuse many of these logs; a fold that always gave up at once would prove nothing.
    assert said["partitions"] > examples // 2
    assert said["batches"] > 10 * examples


def test_records_at_any_place_keep_decoding_kernels_within_their_arrays(checks: dict[str, str]) -> None:
    done = _python("-c", "from tests.fuzz.bounds import fuzz; fuzz(400)", **checks)

    assert done.returncode == 0, done.stderr


def test_the_runner_refuses_kernels_without_checks(tmp_path: Path) -> None:
    unchecked = _run(tmp_path, 0, 0)

    assert unchecked.returncode == 1
    assert "EXHUME_KERNELS does not name kernels that check each index" in unchecked.stderr


def test_no_kernel_reads_a_byte_before_or_after_a_file(tmp_path: Path) -> None:
    examples = times(_EXAMPLES)
    done = _python("-m", "tests.fuzz.guarded", tmp_path, "0", str(examples))

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"] > 2 * examples


def test_a_read_after_a_guarded_buffer_ends_the_process() -> None:
    done = _python("-c", "from tests.fuzz.guarded import overrun; overrun()")

    assert done.returncode == -signal.SIGSEGV
