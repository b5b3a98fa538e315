"""`exhume lab`: what can be written, writing it, and that its questions have answers."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from exhume.fixtures import scenarios
from exhume.fixtures.incidents import INCIDENTS

from .conftest import Ask

QUESTIONS = [(each.name, question) for each in scenarios.ALL.values() for question in each.questions]
#: Answers that are not clean, and why.
EXIT_1 = {
    *(("damaged", question.command) for question in scenarios.ALL["damaged"].questions),
    *((name, question.command) for name, question in QUESTIONS if question.command.startswith("diff ")),
    # Older releases refuse it.
    ("consumer-groups", "load-check DIR"),
}


def test_the_list_names_every_situation_with_a_command_to_begin_with(ask: Ask) -> None:
    code, out, _ = ask("lab", "list", "--output", "json")

    rows = json.loads(out)
    assert code == 0
    assert [row["name"] for row in rows] == [*scenarios.ALL, *INCIDENTS]
    assert all(row["what_happens"].endswith(".") and (row["story"] or (row["hits"] and row["near_misses"])) for row in rows)
    assert all(row["try"].startswith("exhume ") and "DIR" in row["try"] for row in rows)
    by_name = {row["name"]: row for row in rows}
    assert by_name["two-caches"]["message_formats"] == [0, 1]
    assert by_name["two-caches"]["first_releases"] == ["0.9.0.0", "0.10.0.0"]


def test_the_list_for_people_leaves_the_stories_out(ask: Ask) -> None:
    _, out, _ = ask("lab", "list")

    assert out.splitlines()[0].split() == ["name", "what_happens", "try"]
    assert len(out.splitlines()) == 2 + len(scenarios.ALL) + len(INCIDENTS)


@pytest.mark.parametrize("options", [(), ("--message-format", "1", "--codec", "lz4")], ids=" ".join)
def test_writing_says_where_on_standard_output_and_the_rest_on_standard_error(ask: Ask, options: tuple[str, ...], tmp_path: Path) -> None:
    drill = tmp_path / "my drill"

    code, out, err = ask("lab", "write", "failover", drill, *options)

    assert code == 0
    assert out.splitlines() == [str(drill / "broker-1"), str(drill / "broker-2")]
    assert scenarios.ALL["failover"].title in err
    assert f"exhume state {shlex.quote(str(drill))}\n" in err
    assert f"exhume diff {shlex.quote(str(drill))}/broker-2 " in err
    _, rows, _ = ask("inspect", drill, "--table", "segments", "--output", "json")
    assert {codec for row in json.loads(rows) for codec in row["codecs"]} == {options[-1] if options else "none"}


@pytest.mark.one_of(4)
@pytest.mark.parametrize(("name", "question"), QUESTIONS, ids=[f"{name}: {question.command}" for name, question in QUESTIONS])
def test_every_question_has_an_answer(ask: Ask, name: str, question: scenarios.Question, tmp_path: Path) -> None:
    scenarios.write(name, tmp_path / "drill")

    arguments = shlex.split(question.command.replace("DIR", str(tmp_path / "drill")))
    code, out, err = ask(*arguments)

    assert code == ((name, question.command) in EXIT_1), err
    assert len(out.splitlines()) > 2


@pytest.mark.parametrize(
    ("options", "title", "is_told"),
    [
        ((), "negative lag", True),
        (("--near-miss", 6), "end offsets that were read", False),
        (("--undecidable", 1), "without --end-offsets", True),
    ],
    ids=str,
)
def test_an_incident_is_written_with_what_is_given_and_the_command_to_ask_it(
    ask: Ask, options: tuple[object, ...], title: str, is_told: bool, tmp_path: Path
) -> None:
    drill = tmp_path / "my drill"

    code, out, err = ask("lab", "write", "IC-07", drill, *options, "--codec", "lz4")

    assert (code, out) == (0, f"{drill}\n")
    assert title in err
    command = next(line.strip() for line in err.splitlines() if line.startswith("  exhume "))
    assert ("--end-offsets" in command) == ("--undecidable" not in options)
    _, *arguments = shlex.split(command)
    _, rows, _ = ask(*arguments, "--output", "jsonl")
    assert bool(rows) == is_told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("IC-20",), "Choose one of IC-20a, IC-20b"),
        (("IC-04", "--near-miss", 9), "Choose one of 1 (each client leaves and joins once)"),
        (("IC-04", "--undecidable", 1), "Remove the option"),
        (("IC-04", "--hit", 1, "--near-miss", 1), "--hit, --near-miss and --undecidable exclude each other"),
        (("IC-04", "--message-format", 1), "does not exist in message format 1"),
        (("failover", "--hit", 2), "failover is not an incident"),
        (("nothing",), "no scenario 'nothing'"),
        (("transactions", "--message-format", "0"), "only format 2 has transactions"),
        (("one-rebalance", "--codec", "zstd", "--message-format", "1"), "message format 1 has no zstd"),
        (("one-rebalance", "--codec", "brotli"), "no codec 'brotli'"),
    ],
    ids=str,
)
def test_what_cannot_be_had_is_a_wrong_request(ask: Ask, arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    name, *options = arguments

    code, out, err = ask("lab", "write", name, tmp_path / "drill", *options)

    assert (code, out) == (2, "")
    assert said in err
    assert not (tmp_path / "drill").exists()


def test_a_directory_that_is_not_empty_is_refused_and_left_alone(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("mine")

    code, _, err = ask("lab", "write", "one-rebalance", tmp_path)

    assert code == 2
    assert f"{tmp_path} exists already. Name a new or empty directory" in err
    assert [path.name for path in tmp_path.iterdir()] == ["note"]


def test_a_place_that_cannot_be_written_is_a_wrong_request(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    code, _, err = ask("lab", "write", "one-rebalance", tmp_path / "file" / "drill")

    assert code == 2
    assert "Not a directory. Choose another directory" in err


def test_a_hostile_name_reaches_no_terminal(ask: Ask, tmp_path: Path) -> None:
    _, out, err = ask("lab", "write", "one-rebalance", tmp_path / "drill\x1b[2J")

    assert "\x1b" not in out + err
