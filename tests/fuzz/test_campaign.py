"""A short campaign over every reader of hostile bytes, with a fixed seed and with a fresh one; and what a campaign does with a crash."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.fuzz import campaign
from tests.fuzz.campaign import Campaign, main, minimised
from tests.fuzz.entries import ENTRIES, Entry
from tests.strategies import times

_INPUTS = 800


@pytest.mark.parametrize("seed", [["--seed", "1"], []], ids=["fixed", "fresh"])
def test_no_reader_of_hostile_bytes_crashes(tmp_path: Path, capfd: pytest.CaptureFixture[str], seed: list[str]) -> None:
    asked = ["--unguided", "--minutes", "10", "--inputs", str(times(_INPUTS)), "--directory", str(tmp_path), *seed]

    with campaign.memory_as_it_was():
        code = main(asked)

    said = capfd.readouterr().out
    # pytest shows the output of a test that fails: the seed is in it.
    sys.stdout.write(said)
    assert code == 0
    assert said.startswith("seed ")
    assert all(f" {name}\n" in said for name in ENTRIES)


def test_a_crash_is_minimised_and_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(data: bytes) -> None:
        if b"ab" in data:
            raise TypeError("crash")

    monkeypatch.setitem(ENTRIES, "crashing", Entry(read, lambda: [b"xxabxx"]))
    run = Campaign(tmp_path, seed=1)

    run.run(["crashing"], time.monotonic() + 60, most_inputs=300)

    (path,) = run.crashes
    assert path.read_bytes() == b"ab"
    assert "TypeError: crash" in path.with_suffix(".txt").read_text()
    assert run.counts["crashing"] == 300


def test_a_minimised_input_has_nothing_to_spare() -> None:
    assert minimised(b"....7...42..", lambda data: b"7" in data and b"42" in data) == b"742"
