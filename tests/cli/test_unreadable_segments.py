"""A segment that the system does not give: a finding, the answer of the others, exit code 1. And access times that stay."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from tests.cli.conftest import TIME_MS, Ask, command
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for number in range(3):
        with PartitionWriter(tmp_path, number) as partition:
            partition.append([offset_commit(f"group-{number}", "t", 0, 10, commit_timestamp_ms=TIME_MS)], timestamp_ms=TIME_MS)
    return tmp_path


@pytest.mark.parametrize(("call", "number"), [("open", errno.EIO), ("read", errno.EIO), ("open", errno.EACCES), ("open", errno.ENOMEM)])
@pytest.mark.parametrize("arguments", [("inspect",), ("state", "--table", "offsets"), ("dump",), ("diagnose",)], ids=lambda each: each[0])
def test_a_segment_that_cannot_be_read_costs_that_segment(  # noqa: PLR0917
    logs: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch, call: str, number: int, arguments: tuple[str, ...]
) -> None:
    broken: set[int] = set()
    original_open, original_read = os.open, os.read

    def failing_open(path: str | Path, flags: int, *rest: int, **more: int) -> int:
        is_broken = "offsets-1/" in str(path) and str(path).endswith(".log")
        if is_broken and call == "open":
            raise OSError(number, os.strerror(number), str(path))
        descriptor = original_open(path, flags, *rest, **more)
        broken.discard(descriptor)
        if is_broken:
            broken.add(descriptor)
        return descriptor

    def failing_read(descriptor: int, size: int) -> bytes:
        if descriptor in broken:
            raise OSError(number, os.strerror(number))
        return original_read(descriptor, size)

    monkeypatch.setattr(os, "open", failing_open)
    monkeypatch.setattr(os, "read", failing_read)

    code, out, err = ask(arguments[0], logs, *arguments[1:])

    assert code == 1, err
    assert f"unreadable: {logs}/__consumer_offsets-1/" in err
    assert os.strerror(number).lower() in err
    if arguments[0] in ("state", "dump"):
        assert "group-0" in out
        assert "group-2" in out


@pytest.mark.skipif(sys.platform != "linux", reason="other systems map files beyond the limit")
def test_a_segment_that_does_not_fit_into_the_address_space_costs_that_segment(logs: Path) -> None:
    with (logs / "__consumer_offsets-1" / f"{0:020d}.log").open("r+b") as file:
        file.truncate(100 << 30)
    done = subprocess.run(
        ["sh", "-c", 'ulimit -v 20000000; exec "$@"', "sh", *command("inspect", logs)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )

    assert done.returncode == 1, done.stderr
    assert "unreadable" in done.stderr
    assert "ulimit -v" in done.stderr
    assert "cannot allocate memory" in done.stderr


@pytest.mark.skipif(not hasattr(os, "O_NOATIME"), reason="a flag of Linux")
def test_access_times_of_own_files_stay(logs: Path, ask: Ask) -> None:
    files = sorted(logs.rglob("*.log"))
    for file in files:
        # Older than a day: a file system with relatime would change it.
        os.utime(file, (1_000_000_000, 1_600_000_000))

    assert ask("state", logs)[0] == 0

    assert [file.stat().st_atime for file in files] == [1_000_000_000] * 3
