"""A topic of many small segments under a low limit on open files."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import command
from tests.many_small import write_many_small
from tests.patience import PATIENCE_SECONDS

_OPEN_FILES = 64


@pytest.fixture(scope="module")
def many_small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("many")
    write_many_small(directory, groups=800, keys=2, segments=100, partitions=4)
    assert len([*directory.rglob("*.log")]) == 400
    return directory


@pytest.mark.parametrize(
    "arguments",
    [
        ["state"],
        ["state", "--table", "offsets"],
        ["triage"],
        ["diagnose"],
        ["lag"],
        ["owners", "--topic", "orders"],
        ["dump"],
        ["inspect"],
        ["load-check"],
        ["explain", "--group", "group-7"],
        ["growth"],
        ["transactions"],
        ["diff", "--from-time", "2025-10-09T08:53:25Z"],
        ["why", "--group", "group-7", "--topic", "orders"],
        ["assignments"],
        ["history", "--group", "group-7"],
        ["rebalances"],
        ["timeline", "--group", "group-7"],
        ["expiry"],
        ["report", "--group", "group-7"],
        ["reset-plan", "--group", "group-7", "--at-time", "2025-10-09T09:00Z", "--output", "json"],
    ],
    ids=" ".join,
)
@pytest.mark.one_of(5)
def test_a_command_needs_few_open_files(many_small: Path, arguments: list[str]) -> None:
    done = subprocess.run(
        command(arguments[0], many_small, *arguments[1:]),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES)),
    )

    assert done.returncode in (0, 1), done.stderr
    assert "too many open files" not in done.stdout + done.stderr
    assert len(done.stdout) > 100
