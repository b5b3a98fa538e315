"""Evidence from standard input, and what a command waits for."""

from __future__ import annotations

import json
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from exhume.cli import run
from exhume.cli.demo import DEMO_LOG
from tests.cli.conftest import Ask, command

SEGMENT = DEMO_LOG / "__consumer_offsets-2" / "00000000000000000191.log"


def piped(content: bytes, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(command(*arguments), input=content, capture_output=True, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_an_archive_comes_through_a_pipe(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "logs.tar.gz", "w:gz") as archive:
        archive.add(DEMO_LOG, "data")

    code, shown, _ = piped((tmp_path / "logs.tar.gz").read_bytes(), "state", "-", "--table", "groups", "-o", "jsonl")
    assert code == 0
    assert "fraud-scoring" in {json.loads(line)["group"] for line in shown.splitlines()}


def test_a_segment_comes_through_a_pipe_with_its_offsets() -> None:
    code, shown, _ = piped(SEGMENT.read_bytes(), "dump", "-", "-o", "jsonl", "--limit", "1")

    assert code == 0
    assert json.loads(shown)["record_offset"] == 191


def test_no_bytes_are_no_evidence() -> None:
    code, _, told = piped(b"", "inspect", "-")

    assert (code, told.partition(".")[0]) == (2, "exhume: standard input is empty")


def test_a_wait_for_a_remote_place_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "_SAID_AFTER_SECONDS", 0)
    with run._saying_what_it_waits_for(["s3://key:secret@bucket/logs?endpoint_override=h", "data"]):
        for _ in range(200):
            told = capsys.readouterr().err
            if told:
                break
            time.sleep(0.01)
    with run._saying_what_it_waits_for(["data"]):
        pass

    assert told == "waiting for s3://bucket/logs: its client tries again for up to a minute\n"
    assert not capsys.readouterr().err


@pytest.mark.parametrize(("typed", "meant"), [("--tabel", "--table"), ("--srot", "--sort")])
def test_an_unknown_option_is_refused_with_the_most_similar_one(ask: Ask, typed: str, meant: str) -> None:
    code, _, told = ask("state", DEMO_LOG, typed, "x")

    assert code == 2
    assert f"No such option: {typed}. Did you mean {meant}?" in told
