"""`exhume sql`: statements from the command line, from standard input, and in the shell."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import exhume
from exhume.cli.app import run
from exhume.cli.sql_shell import Shell, completer, history_file, is_whole

DEMO_LOG = str(Path(exhume.__file__).parent / "cli" / "demo_log")


def _answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["sql", *arguments]) == 0
    return capsys.readouterr().out


def test_each_output_has_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    statement = "select group, max(timestamp_ms) as newest from offset_commits where group = 'fraud-scoring' group by 1"

    assert json.loads(_answer(capsys, DEMO_LOG, statement, "--output", "json")) == [
        {"group": "fraud-scoring", "newest": "2026-11-21T03:13:40.938Z"}
    ]
    assert _answer(capsys, DEMO_LOG, statement, "--output", "csv") == "group,newest\nfraud-scoring,2026-11-21T03:13:40.938Z\n"
    assert "fraud-scoring  2026-11-21 03:13:40.938Z\n" in _answer(capsys, DEMO_LOG, statement)


def test_types_that_exhume_has_no_columns_of_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    statement = (
        "select 1.5 as a, date '2026-01-02' as b, interval 3 hours as c, map {'x': 1} as d, "
        "{'t': timestamptz '2026-01-02 00:00:00Z'} as e, "
        "9223372036854775807::hugeint as f, 'x'::blob as g, null as h, 'a'::enum('a', 'b') as i"
    )
    (row,) = json.loads(_answer(capsys, DEMO_LOG, statement, "--output", "json"))

    assert row == {
        "a": 1.5,
        "b": "2026-01-02",
        "c": row["c"],
        "d": [{"key": "x", "value": 1}],
        "e": {"t": "2026-01-02T00:00:00.000Z"},
        "f": 9223372036854775807,
        "g": "eA==",
        "h": None,
        "i": "a",
    }
    assert "1.5" in _answer(capsys, DEMO_LOG, statement)


def test_names_in_the_log_cannot_write_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    text = _answer(capsys, DEMO_LOG, "select chr(27) || '[31m' as \"a\nb\", '=1+1' as formula", "--output", "csv")

    assert "\x1b" not in text
    assert "'=1+1" in text


def test_a_wrong_statement_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", DEMO_LOG, "select nothing from loads"]) == 2

    assert capsys.readouterr().err.startswith('exhume: Binder Error: Referenced column "nothing" not found')


def test_statements_come_from_standard_input_too() -> None:
    command = [sys.executable, "-m", "exhume", "sql", DEMO_LOG, "--output", "csv"]
    statements = "create table mine as from loads;\nselect count(*) as n from mine;\n"

    done = subprocess.run(command, input=statements, capture_output=True, text=True, check=True)

    assert done.stdout == "n\n4\n"


def test_the_shell_answers_completes_and_remembers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    typed = (
        "select count(*) as n\rfrom loads;\r"
        "select nothing;\r"
        ".tables\r.columns loads\r.nonsense\r"
        "select 1\x03"
        "from history('fraud');\r"
        ".quit\r"
    )
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()), Shell([DEMO_LOG], None, verify=True) as shell:
        keys.send_text(typed)
        shell.run(release=None, external_access=False, memory_limit="1GB")
    shown = capsys.readouterr()

    assert "n\n-\n4\n" in shown.out
    assert "offset_commits" in shown.out
    assert re.search(r"^records_read +BIGINT", shown.out, re.MULTILINE)
    assert "nothing" in shown.err
    assert "no command '.nonsense'" in shown.err
    assert "fraud-scoring?" in shown.err
    assert "+select count(*) as n\n" in history_file().read_text(encoding="utf-8")


def test_names_are_completed() -> None:
    with exhume.open(DEMO_LOG) as topic, topic.to_duckdb() as database:
        found = completer(database).get_completions(Document("select committed_off"), CompleteEvent())
        views = completer(database).get_completions(Document("from offset_co"), CompleteEvent())

        assert [each.text for each in found] == ["committed_offset"]
        assert [each.text for each in views] == ["offset_commit", "offset_commits"]


def test_a_statement_ends_with_a_semicolon() -> None:
    assert is_whole("from loads;")
    assert is_whole("from loads; -- done")
    assert is_whole(".tables")
    assert not is_whole("select ';'")
    assert not is_whole("from loads")


def test_a_file_whose_name_has_a_space_is_no_statement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "my log"
    log.symlink_to(DEMO_LOG)

    assert "\n4\n" in _answer(capsys, str(log), "select count(*) as n from loads")
    assert [path.name for path in tmp_path.iterdir()] == ["my log"]


def test_a_statement_may_be_longer_than_any_name_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    names = ", ".join(f"'group {number}'" for number in range(100))

    assert "\n289\n" in _answer(capsys, DEMO_LOG, f"select count(*) as n from dump where group not in ({names})")
