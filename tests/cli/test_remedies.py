"""The commands in remedies and in sentences: each can be pasted, and shows something."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

import exhume
from exhume.cli.app import command_line
from exhume.findings import Finding, Findings, Remedy
from exhume.fixtures.incidents import INCIDENTS, write

from .conftest import Ask

_ROOT = Path(__file__).resolve().parent.parent.parent
#: The incidents whose remedy is a command on the log itself.
_WITH_COMMAND = {"IC-02", "IC-09", "IC-11", "IC-16", "IC-21", "IC-23", "IC-25"}
#: Options of every command, and of the tools of Kafka that sentences name.
_OF_ALL = {"--help", "--memory-limit", "--unpack-ratio", "--debug"}
_OF_KAFKA = {
    *("--bootstrap-server", "--topic", "--partition", "--start-offset", "--time", "--broker-id", "--transactional-id"),
    *("--describe", "--all-groups", "--delete-offsets", "--reset-offsets", "--from-file", "--dry-run", "--execute"),
    *("--add", "--allow-principal", "--operation", "--group", "--offsets-decoder", "--print-data-log"),
}
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z](?![\w-])")


def test_commands_in_remedies_run_as_they_are(tmp_path: Path, ask: Ask) -> None:
    found = set()
    for code in INCIDENTS:
        directory = write(code, tmp_path / code).directory
        with exhume.open(directory) as topic:
            findings = [] if code == "IC-10" else [*topic.diagnose(codes=[code])]
        remedies = {(finding.remedy, command) for finding in findings for command in finding.remedy_commands}
        for remedy, command in remedies:
            assert remedy is not None
            assert remedy.endswith(f": {command}")
            assert str(directory) in command
            exit_code, out, err = ask(*shlex.split(command)[1:])
            assert exit_code in {0, 1}, (code, command, err)
            assert len(out.splitlines()) + len(err.splitlines()) > 1, (code, command)
            found.add(code)
        # A command in a text alone could not be found by a program.
        assert not [finding for finding in findings if re.search(r": exhume [a-z]", finding.remedy or "") and not finding.remedy_commands]

    assert found >= _WITH_COMMAND


def test_a_remedy_without_a_command_has_null_in_the_table() -> None:
    command = Remedy("See the releases", ("exhume load-check data/",))
    found = Findings(
        [
            Finding(code="IC-01", sentence="a", remedy=str(command), remedy_commands=command.commands),
            Finding(code="IC-02", sentence="b", remedy="Check it"),
        ]
    ).to_table()

    assert found["remedy"].to_pylist() == ["See the releases: exhume load-check data/", "Check it"]
    assert found["remedy_commands"].to_pylist() == [["exhume load-check data/"], None]


@pytest.fixture(scope="module")
def options() -> dict[str, set[str]]:
    """The options of each command, and those of its subcommands."""
    program: Any = typer.main.get_command(command_line())
    return {name: _options_of(command) for name, command in program.commands.items()}


def _options_of(command: Any) -> set[str]:
    own = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return own.union(*map(_options_of, getattr(command, "commands", {}).values()))


def test_options_in_sentences_are_options_of_a_command(options: dict[str, set[str]]) -> None:
    named = set(_OPTION.findall((_ROOT / "docs" / "internals" / "sentences.md").read_text(encoding="utf-8")))

    assert len(named) > 40
    assert named - _OF_ALL - _OF_KAFKA <= set[str]().union(*options.values())


def test_commands_in_sentences_and_text_have_the_options_that_follow_them(options: dict[str, set[str]]) -> None:
    pages = [_ROOT / "README.md", *(_ROOT / "docs").glob("*.md"), _ROOT / "docs" / "internals" / "sentences.md"]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    named = {match for text in texts for match in re.findall(rf"\bexhume ({'|'.join(options)})\b([^`\n.;|]*)", text)}

    assert len(named) > 100
    unknown = {(command, option) for command, rest in named for option in _OPTION.findall(rest)}
    assert not {(command, option) for command, option in unknown if option not in options[command] | _OF_ALL}
