"""What tests of hostile evidence share: a way to ask, and a log to spoil."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from exhume.cli.app import run
from exhume.fixtures.log_writer import PartitionWriter, offset_commit

TIME_MS = 1_700_000_000_000

Answer = tuple[int, str, str]
Ask = Callable[..., Answer]


@pytest.fixture(autouse=True)
def _no_width_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever runs the tests may ask for a width or for colours, and a pipe obeys."""
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs the command line in this process: exit code, standard output, standard error."""

    def answer(*arguments: str | Path) -> Answer:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return answer


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    with PartitionWriter(tmp_path / "data", 3) as partition:
        for number in range(6):
            commits = [offset_commit(f"group-{number}", "t", index, 10, commit_timestamp_ms=TIME_MS) for index in range(2)]
            partition.append(commits, timestamp_ms=TIME_MS + number)
    return partition.directory / "00000000000000000000.log"


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "exhume", *map(str, arguments)]
