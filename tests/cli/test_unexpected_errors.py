"""Errors of exhume itself, and memory that is not there: one line and an exit code of their own, never that of damage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from exhume.cli import app, releases
from exhume.cli.app import EXIT_SOFTWARE
from exhume.cli.limits import parse_size
from exhume.codecs import limits
from exhume.errors import RequestError
from tests.cli.conftest import Ask, command
from tests.patience import PATIENCE_SECONDS
from tests.written_batches import zeros_in_batches

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the memory of a process")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise TypeError("two\nlines \x1b[31m")

    monkeypatch.setattr(releases, "releases_command", fail)
    # The parser of a command is kept.
    monkeypatch.setattr(app, "_parser", app._parser.__wrapped__)


@pytest.mark.usefixtures("failing")
def test_a_bug_is_one_line_with_an_exit_code_of_its_own(ask: Ask) -> None:
    code, out, err = ask("releases")

    assert (code, out) == (EXIT_SOFTWARE, "") == (70, "")
    assert err == "exhume: an error of exhume itself: TypeError: two lines \\x1b[31m. Please report it with the output of --debug\n"


@pytest.mark.usefixtures("failing")
def test_debug_shows_the_traceback(ask: Ask) -> None:
    code, _, err = ask("releases", "--debug")

    assert code == 70
    assert "Traceback (most recent call last)" in err
    assert "Traceback" not in ask("releases")[2]


@linux_only
def test_memory_that_does_not_suffice_is_no_damage(tmp_path: Path) -> None:
    zeros_in_batches(tmp_path, count=12, value_bytes=60 << 20)
    done = subprocess.run(
        command("dump", tmp_path, "--raw", "--output", "jsonl", "--memory-limit", "256M"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )

    assert done.returncode == 70
    assert done.stderr.startswith("exhume: the memory of 268435456 bytes does not suffice. Raise --memory-limit")
    assert done.stderr.count("\n") == 1


def test_sizes_have_units() -> None:
    assert [parse_size(text) for text in ("512", "512M", "2g", "2GiB", "1kb")] == [512, 512 << 20, 2 << 30, 2 << 30, 1024]
    for text in ("", "G", "-1", "2X", "2.5G"):
        with pytest.raises(RequestError, match="is not a size"):
            parse_size(text)


def test_too_little_memory_is_a_wrong_request(ask: Ask) -> None:
    code, _, err = ask("releases", "--memory-limit", "1M")

    assert code == 2
    assert err == "exhume: --memory-limit 1M is too little. exhume itself needs 256M; a large log needs more\n"


def test_the_machine_is_what_its_control_group_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = tmp_path / "memory.max"
    monkeypatch.setattr(limits, "_CONTROL_GROUPS", (str(group),))
    whole = limits.machine_bytes()
    assert whole is not None
    group.write_text("max\n")
    assert limits.machine_bytes() == whole
    group.write_text("1000000\n")
    assert limits.machine_bytes() == 1_000_000


def test_the_ratio_of_archives_may_be_raised(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits.LIMITS, "unpack_ratio", limits.DEFAULT_UNPACK_RATIO)

    assert ask("releases", "--unpack-ratio", "5000")[0] == 0
    assert limits.LIMITS.unpack_ratio == 5000
