"""Evidence that another process makes shorter while a command reads it: one clear error, and no bus error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from tests.cli.conftest import TIME_MS
from tests.patience import PATIENCE_SECONDS

#: A program that runs a command, and makes the file of its last argument shorter after the second time that it is mapped.
_CUTTING = """
import os, sys
from exhume.codecs import volumes

path, real, mapped = sys.argv.pop(), volumes.map_descriptor, []

def cutting(descriptor, size_bytes):
    found = real(descriptor, size_bytes)
    mapped.append(size_bytes)
    if mapped.count(max(mapped)) == 2:
        os.truncate(path, 100_001)
    return found

volumes.map_descriptor = cutting
from exhume.__main__ import main

main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which file was mapped where")
@pytest.mark.parametrize("command", [["state"], ["dump", "--output", "jsonl"], ["diagnose"]], ids=lambda command: command[0])
def test_a_file_that_becomes_shorter_is_a_clear_error(tmp_path: Path, command: list[str]) -> None:
    data = tmp_path / "data"
    with PartitionWriter(data, 0) as partition:
        for batch in range(400):
            partition.append([offset_commit("g", "t", n, batch, commit_timestamp_ms=TIME_MS) for n in range(20)], timestamp_ms=TIME_MS)
    segment = next(data.rglob("*.log"))
    output_file = tmp_path / "answer"
    arguments = [command[0], str(data), *command[1:], "--output-file", str(output_file)]
    done = subprocess.run(
        [sys.executable, "-c", _CUTTING, *arguments, str(segment)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )

    assert done.returncode == 3, done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith(f"exhume: {segment}, byte ")
    assert "another process made the file shorter while it was read" in line
    # The file is cleaned up as after an interrupt.
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
