"""Batches that unfold to more than a hundred megabytes: a finding for each, and the other records, within a gigabyte."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.fixtures.log_writer import offset_commit
from tests.cli.conftest import command
from tests.patience import PATIENCE_SECONDS
from tests.written_batches import zeros_in_batches

_COUNT = 12


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the memory of a process")
@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "arguments",
    [("dump", "--output", "jsonl"), ("diagnose",), ("state", "--mode", "lenient", "--table", "offsets")],
    ids=lambda each: each[0],
)
def test_bombs_are_a_finding_each_and_the_rest_is_answered(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    key, value = offset_commit("survivor", "t", 0, 42, commit_timestamp_ms=1, version=1)
    sound = encode_batch([NewRecord(_COUNT, 1_700_000_000_001, key, value)], base_offset=_COUNT)
    assert zeros_in_batches(tmp_path, count=_COUNT, value_bytes=120 << 20, batches=[sound]).stat().st_size < 110_000

    done = subprocess.run(
        command(arguments[0], tmp_path, *arguments[1:], "--memory-limit", "800M"),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )

    assert done.returncode == 1, done.stderr
    assert done.stderr.count("decompression_bomb") == _COUNT
    if arguments[0] == "dump":
        assert [json.loads(line)["group"] for line in done.stdout.splitlines()] == ["survivor"]
    if arguments[0] == "state":
        assert "survivor" in done.stdout
