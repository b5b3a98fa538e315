"""The documentation says what the code does."""

from __future__ import annotations

import importlib.util
import inspect
import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from types import ModuleType

import pytest
import typer

from exhume.cli.app import command_line

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "tools" / "generate_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_and_shown_outputs_are_what_the_code_gives_today(generator: ModuleType) -> None:
    stale = [page.name for page, text in generator.pages().items() if page.read_text(encoding="utf-8") != text]

    assert not stale, f"{', '.join(stale)}: run python tools/generate_docs.py"


def test_every_command_is_documented_with_an_example(generator: ModuleType) -> None:
    groups = [(group.name, group.typer_instance) for group in command_line().registered_groups]
    nested = [(f"{name} ", command) for name, group in groups if group is not None for command in group.registered_commands]
    assert len(nested) == 2
    shown = [command for command in command_line().registered_commands if not command.hidden]
    for prefix, command in [*(("", command) for command in shown), *nested]:
        assert f"{prefix}{command.name}" in generator.COMMANDS
        assert command.callback is not None
        assert "Example: exhume " in (command.callback.__doc__ or "")


def test_links_between_pages_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    broken = [
        f"{page.name} -> {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]

    assert not broken


def _shown_commands() -> Iterator[str]:
    """The commands in blocks of code, and the example in the help of each."""
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for block in re.findall(r"^ *```\w*\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            yield from re.findall(r"^ *(?:\$ )?(exhume .*)$", block, re.MULTILINE)
    for command in command_line().registered_commands:
        yield from re.findall(r"Example: (exhume .*?)(?:\n *\n|\Z)", inspect.getdoc(command.callback) or "", re.DOTALL)


def test_every_command_that_is_shown_can_be_typed() -> None:
    commands = {" ".join(shown.split()) for shown in _shown_commands()}
    program = typer.main.get_command(command_line())
    for shown in commands:
        # To the first pipe or redirection outside of quotes.
        words = takewhile(lambda word: word not in ("|", ">", ">>", "<"), shlex.split(shown, comments=True))
        command, arguments = program, [*words][1:]
        context = command.context_class(command)
        while hasattr(command, "resolve_command"):
            _, command, arguments = command.resolve_command(context, arguments)
        # Parsed with the options that there are, and not run.
        command.make_context(shown, arguments)

    assert len(commands) > 80
