"""Answers on a narrow terminal: how many lines they take, and that what is shortened stays what it was."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tools.measure_terminal import COMMANDS

from exhume.cli.app import run
from exhume.cli.demo import DEMO_LOG
from exhume.cli.shortening import cut_at_the_end, short_times
from exhume.cli.terminal import terminal_text
from tests.cli.conftest import Ask
from tests.cli.test_commands import Terminal

_NARROW = 80
_UUIDS = ("17139abf-25c9-4265-a66f-1cde26be3f28", "17139abf-25c9-4265-a66f-1cde26be3f29")


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """The lines of a table on a terminal of 80 columns."""

    def lines(**columns: list[Any]) -> list[str]:
        monkeypatch.setattr(sys, "stdout", Terminal())
        monkeypatch.setenv("COLUMNS", str(_NARROW))
        monkeypatch.setenv("TERM", "dumb")
        table = pa.table(columns)
        return "".join(terminal_text(table.schema, table.to_batches())).splitlines()

    return lines


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_an_answer_takes_at_most_half_as_many_lines_again_as_in_a_pipe(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(DEMO_LOG.parent)
    _, piped, _ = ask(*command)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(_NARROW))
    run([*command])

    lines = terminal.text().splitlines()
    screen_lines = sum(max(-(-len(line) // _NARROW), 1) for line in lines)
    assert screen_lines <= 1.5 * len(piped.splitlines())


def test_times_in_sentences_lose_the_date_that_all_share(narrow: Callable[..., list[str]]) -> None:
    sentences = [f"offset {number} was committed by record 97 of 2026-11-21 03:13:40.93{number}Z" for number in range(3)]

    lines = narrow(partition=[0, 1, 2], topic=["orders-and-more"] * 2 + ["payments"], sentence=sentences)
    assert lines[0] == "times of 2026-11-21 in UTC"
    assert lines[-1].endswith("offset 2 was committed by record 97 of 03:13:40.932")


def test_times_of_two_zones_stay_whole() -> None:
    assert short_times([["2026-03-29 01:00:00.000+01:00"], ["at 2026-03-29 01:00:00.000Z"]]) is None


def test_times_of_two_days_keep_the_day() -> None:
    shortened = short_times([["2026-11-21 03:13:40.000Z", None, "from 2026-11-21 23:59:59.000Z to 2026-11-22 00:00:00.000Z"]])

    assert shortened is not None
    assert shortened.cells == [["11-21 03:13:40", None, "from 11-21 23:59:59 to 11-22 00:00:00"]]
    assert shortened.note == "times of 2026 in UTC"


def test_sentences_that_return_are_numbered_and_stand_once_below(narrow: Callable[..., list[str]]) -> None:
    sentences = ["the group became empty and its offsets expired after the retention", "the same, for each topic without a subscriber"]

    lines = narrow(release=["2.1.0 to 2.2.2", "2.3.0", "2.4.0 to 2.8.1", "3.0.0"], n=[1, 2, 3, 4], x=["-" * 18] * 4, rule=sentences * 2)
    assert [line.split()[-1] for line in lines[-6:-2]] == ["(1)", "(2)", "(1)", "(2)"]
    assert lines[-2:] == [f"(1) {sentences[0]}", f"(2) {sentences[1]}"]


def test_ids_in_sentences_are_cut_and_stay_different(narrow: Callable[..., list[str]]) -> None:
    text = "\n".join(narrow(n=[1, 2], sentence=[f"there is no member '{each}' in the group of this record of type 8" for each in _UUIDS]))

    assert not any(each in text for each in _UUIDS)
    assert "17139a…be3f28" in text
    assert "17139a…be3f29" in text
    assert "--output record" in text


def test_a_long_sentence_begins_at_the_end_of_its_row_and_loses_no_word(narrow: Callable[..., list[str]]) -> None:
    sentence = "aborted: " + " ".join(f"word{number}" for number in range(18))
    columns = {f"column{number}": ["a" * 10, "b" * 10] for number in range(4)}

    lines = narrow(**columns, sentence=[sentence, "aborted: another sentence that is long enough to be one of those"])
    first = next(number for number, line in enumerate(lines) if "aaaaaaaaaa" in line)
    shown = [lines[first].rpartition("a" * 10)[2], *lines[first + 1 : -2]]
    assert " ".join(" ".join(shown).split()) == sentence
    assert all(len(line) <= _NARROW for line in lines)


def test_a_phrase_is_not_cut(narrow: Callable[..., list[str]]) -> None:
    lines = narrow(release=["0.10.1.0 to 0.10.2.2", "0.11.0.0 to 2.0.1"], **{f"n{number}": ["x" * 10, "y" * 10] for number in range(8)})

    assert lines[-2].startswith("0.10.1.0 to 0.10.2.2")


@pytest.mark.parametrize("width", range(2, 30))
def test_a_cut_text_fits(width: int) -> None:
    from rich.cells import cell_len

    for text in ("Records of a missing group or member", "名前名前名前名前名前名前", "nospacesinthislongtextatall.........."):
        assert cell_len(cut_at_the_end(text, width)) <= width


# Links, and long lists


def test_files_are_links_on_a_terminal(ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    segment = tmp_path / "50% of\x1b]8;;" / "__consumer_offsets-3" / "00000000000000000000.log"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(b"no batch")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "300")

    def shown(place: Path) -> str:
        terminal = Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)
        run(["inspect", str(place), "--table", "segments"])
        return terminal.text()

    name = "/__consumer_offsets-0/00000000000000000000.log"
    assert re.search(rf"\x1b]8;id=\d+;{re.escape(DEMO_LOG.as_uri() + name)}\x1b\\[^\x1b]*{re.escape(name)}\x1b]8;;\x1b\\", shown(DEMO_LOG))
    # Of a name with control characters there is none.
    assert "\x1b]" not in shown(segment.parent)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b]" not in shown(DEMO_LOG)


def test_a_list_of_findings_has_so_many_as_its_limit(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    wanted = ("diagnose", DEMO_LOG, "--min-severity", "info", "--all")
    _, whole, _ = ask(*wanted, "--limit", "0")
    _, first, err = ask(*wanted, "--limit", "1")

    assert len(whole.splitlines()) > 2
    assert first.splitlines() == whole.splitlines()[:2]
    assert ", 1 shown: --limit 0 for all" in err
