"""`exhume assignments`."""

from __future__ import annotations

import json

import pytest

from exhume.cli.app import run
from tests.judges import corpus

DATA = str(corpus.BUNDLED / "4.0.0-consumer-groups" / "data")


def test_a_group_comes_with_its_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["assignments", DATA, "--group", "fraud-scoring", "--output", "json"]) == 0

    answer = json.loads(capsys.readouterr().out)
    assert [row["verdict"] for row in answer["verdicts"]] == ["as_expected"]
    assert {row["group"] for row in answer["partitions"]} == {"fraud-scoring"}


def test_all_groups_come_as_verdicts_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["assignments", DATA]) == 0

    shown = capsys.readouterr()
    assert "as uniform of the coordinator" in shown.out
    assert "as expected" in shown.err


def test_csv_of_two_tables_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["assignments", DATA, "--group", "fraud-scoring", "--output", "csv"]) == 2
    assert "Choose one with --table: verdicts, partitions" in capsys.readouterr().err


def test_what_is_no_release_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["assignments", DATA, "--release", "banana"]) == 2
    assert "no release 'banana'" in capsys.readouterr().err
