"""The machine code of kernels: it is that of today's sources, and their text gives the same results."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from exhume import _kernels
from tests.patience import PATIENCE_SECONDS

_ROOT = Path(__file__).resolve().parents[3]


def _run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=_ROOT,
        env=os.environ | {"PYTHONPATH": paths} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )


def test_machine_code_is_that_of_the_sources() -> None:
    done = _run("-c", "from kernel_build import unit; print(unit.digest())")

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == _kernels.SOURCES, "the kernels have changed since they were compiled: run `make test` or `make demo`"


@pytest.mark.slow
def test_the_text_of_kernels_gives_the_same_results() -> None:
    tests = ["test_texts.py", "test_records_like.py", "test_json_texts.py", "test_plain_json.py"]
    tests += ["../../cli/test_lines.py", "../../replay/fold/test_keys.py"]
    places = [str(Path(__file__).parent / each) for each in tests]

    done = _run("-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *places, EXHUME_KERNELS="plain", EXHUME_EXAMPLES="0.1")

    assert done.returncode == 0, done.stdout


def test_an_unknown_file_of_kernels_is_an_error() -> None:
    done = _run("-c", "import exhume.codecs.kernels.scan", EXHUME_KERNELS="no-such-file.so")

    assert done.returncode == 1
    assert "no-such-file.so" in done.stderr


def test_developers_have_what_the_build_requires() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    assert project["dependency-groups"]["build"] == project["build-system"]["requires"]
