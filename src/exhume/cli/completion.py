"""`exhume completion`: commands, options, groups and topics on the tab key."""

from __future__ import annotations

import re
from contextlib import suppress
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

#: A key should not wait for long.
_MOST_BYTES = 64 * 1024 * 1024
_WORD = re.compile(r"[A-Za-z0-9._/@%+,-]+")


class Shell(StrEnum):
    """A shell that can complete."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion_command(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)]) -> None:
    """Write the script that completes commands, options, groups and topics in a shell.

    Groups and topics are read from the PATH that stands before them, if it is at most 64 MiB on this machine.

    bash: add `eval "$(exhume completion bash)"` to ~/.bashrc; zsh: the same line with zsh to ~/.zshrc, after compinit; fish: write it to
    ~/.config/fish/completions/exhume.fish.

    Example: exhume completion bash
    """
    completion: Any = import_module("typer.completion")
    typer.echo(completion.get_completion_script(prog_name="exhume", complete_var="_EXHUME_COMPLETE", shell=shell.value))


def names(context: typer.Context, kind: Literal["group", "topic"], incomplete: str) -> list[str]:
    """Return the names of groups or topics in the places of a command that begin like this, sorted; none if these are large or remote."""
    # Without the value of its last option a command is not parsed to its end.
    paths = context.params.get("paths") or context.args
    places = [Path(path).expanduser() for path in paths if not path.startswith("-")]
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("*.log"))]
    if not files or sum(file.stat().st_size for file in files) > _MOST_BYTES:
        return []
    from exhume.errors import ExhumeError
    from exhume.topic import open_topic

    with suppress(ExhumeError, OSError), open_topic(places) as topic:
        found = topic.growth(by=kind, now_ms=0).table.column(kind).unique().to_pylist()
        # A shell would read other names as more than one word, or run a part of them.
        return sorted(name for name in found if name is not None and name.startswith(incomplete) and _WORD.fullmatch(name))
    return []
