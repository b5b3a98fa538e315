"""`exhume diagnose`: what is shown, what is counted, and when the exit code is 1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exhume.fixtures.incidents import write
from tests.analysis.detectors.story import Story
from tests.cli.conftest import Ask

_LOG = """
    0 d0 02:30:00  GM pay gen=20 {A: done → done-0,1}
    1 d0 02:40:00  OC pay done-0 = 9000 | OC pay done-1 = 8800
    3 d0 02:45:10  GM pay gen=21 empty
    4 d0 02:46:30  OC pay done-0 = 6200 | OC pay done-1 = 6100
    6 d0 02:46:55  GM pay gen=22 {A: done → done-0,1}
    7 d0 03:00:00  OC rep slow-0 = 77
    8 d7 03:05:00  OC rep slow-0 = X
    9 d9 03:05:00  OC rep slow-0 = 5
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return Story(_LOG).write(tmp_path / "data")


def _codes(answer: str) -> list[str]:
    return [json.loads(line)["code"] for line in answer.splitlines()]


def test_the_worst_comes_first_and_makes_the_exit_code(ask: Ask, log: Path) -> None:
    code, out, _ = ask("diagnose", log, "--output", "jsonl")

    assert (code, _codes(out)) == (1, ["IC-01", "IC-05b"])


@pytest.mark.parametrize(
    ("fail_on", "expected"), [("incident", 0), ("warn", 1), ("info", 1), ("never", 0)], ids=["incident", "warn", "info", "never"]
)
def test_what_fails_is_asked_for(ask: Ask, log: Path, fail_on: str, expected: int) -> None:
    assert ask("diagnose", log, "--group", "pay", "--fail-on", fail_on)[0] == expected


def test_one_group_and_one_code(ask: Ask, log: Path) -> None:
    assert _codes(ask("diagnose", log, "--group", "pay", "--output", "jsonl")[1]) == ["IC-05b"]
    assert _codes(ask("diagnose", log, "--code", "IC-01", "--output", "jsonl")[1]) == ["IC-01"]


def test_a_group_without_a_record_is_no_group_that_is_well(ask: Ask, log: Path) -> None:
    code, out, err = ask("diagnose", log, "--group", "pya")

    assert (code, out) == (2, "")
    assert "no record of group 'pya' is here. Did you mean pay" in err


def test_headlines_come_first_and_all_shows_the_others(ask: Ask, tmp_path: Path) -> None:
    lines = [f"{number} d0 10:00:00  GM g{number:02} gen=7 {{A@h1/a: t → t-0; B@h2/b: t → t-0}}" for number in range(14)]
    directory = Story("\n".join(lines)).write(tmp_path / "many")

    _, out, err = ask("diagnose", directory)
    assert len([line for line in out.splitlines() if "IC-11" in line]) == 10
    assert out.splitlines()[0].split()[:3] == ["rank", "severity", "code"]
    assert "14 findings" not in out
    assert "4 more with --all" in err
    _, out, err = ask("diagnose", directory, "--all")
    assert len([line for line in out.splitlines() if "IC-11" in line]) == 14
    assert "because_of" in out.splitlines()[0]
    rows = [json.loads(line) for line in ask("diagnose", directory, "--output", "jsonl")[1].splitlines()]
    assert [row["rank"] for row in rows] == [*range(1, 15)]


def test_what_could_not_be_decided_is_counted_and_shown_on_request(ask: Ask, log: Path) -> None:
    _, out, err = ask("diagnose", log)
    assert "undecidable" not in out
    assert "input (--undecided)" in err

    assert "committed offsets below the start of their topic partition show only" in ask("diagnose", log, "--undecided")[1]
    assert _codes(ask("diagnose", log, "--code", "IC-29", "--output", "jsonl")[1]) == ["IC-29"]


def test_inputs_come_from_files_of_kafkas_tools(ask: Ask, log: Path, tmp_path: Path) -> None:
    starts = tmp_path / "starts.txt"
    starts.write_text("done:0:7000\ndone:1:10\nslow:0:\n\n", encoding="utf-8")

    _, out, _ = ask("diagnose", log, "--code", "IC-29", "--start-offsets", starts, "--output", "jsonl")

    assert [(row["topic"], row["partition"]) for row in map(json.loads, out.splitlines())] == [("done", 0)]


@pytest.mark.parametrize("option", ["--start-offsets", "--end-offsets"])
@pytest.mark.parametrize("line", ["done:0", "done:x:5", "done 0 5", "TOPIC PARTITION OFFSET"])
def test_a_line_that_is_no_offset_is_named(ask: Ask, log: Path, tmp_path: Path, option: str, line: str) -> None:
    file = tmp_path / "offsets.txt"
    file.write_text(f"done:0:5\n{line}\n", encoding="utf-8")

    code, _, err = ask("diagnose", log, option, file)

    assert code == 2
    assert f"{file}, line 2: {line!r}" in err
    assert "kafka-get-offsets.sh" in err


def test_a_live_listing_that_is_none_is_named(ask: Ask, log: Path, tmp_path: Path) -> None:
    file = tmp_path / "live.txt"
    file.write_text("pay done 0 5\n", encoding="utf-8")

    code, _, err = ask("diagnose", log, "--live", file)

    assert code == 2
    assert f"{file}, line 1" in err
    assert "kafka-consumer-groups.sh" in err


def test_an_unknown_code_is_refused(ask: Ask, log: Path) -> None:
    code, _, err = ask("diagnose", log, "--code", "IC-99")

    assert code == 2
    assert "--list prints all codes" in err


def test_all_codes_are_listed_without_a_log(ask: Ask) -> None:
    code, out, _ = ask("diagnose", "--list")

    assert code == 0
    assert "IC-29   Committed offset below the start of its topic partition (needs --start-offsets)" in out.splitlines()


def test_a_partition_that_a_release_does_not_load_is_an_incident(ask: Ask, tmp_path: Path) -> None:
    """`state` and `diagnose` say the same about a record that the coordinator refuses."""
    written = write("IC-09", tmp_path / "drill")
    place = written.data_directories[0]

    code, shown, _ = ask("diagnose", place, "--output", "jsonl")
    found = [row for row in map(json.loads, shown.splitlines()) if row["code"] == "load_aborted"]
    _, state, told = ask("state", place, "--output", "json", "--table", "loads")
    aborted = [row for row in json.loads(state) if row["outcome"] == "aborted"]

    assert code == 1
    assert aborted
    assert [(row["offsets_partition"], row["first_record_offset"]) for row in found] == [
        (row["offsets_partition"], row["record_offset"]) for row in aborted
    ]
    assert all(row["severity"] == "incident" and row["sentence"].startswith("a broker of 4.4.0 does not load this") for row in found)
    assert "does not load this partition" in told


def test_the_release_of_the_brokers_decides_what_is_not_loaded(ask: Ask, tmp_path: Path) -> None:
    written = write("IC-09", tmp_path / "drill")

    _, shown, _ = ask("diagnose", written.data_directories[0], "--release", "2.8.2", "--output", "jsonl")

    assert [row["sentence"].partition(":")[0] for row in map(json.loads, shown.splitlines()) if row["code"] == "load_aborted"] == [
        "a broker of 2.8.2 does not load this partition"
    ]
