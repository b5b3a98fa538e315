"""`exhume completion`: commands and options on the tab key."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any

import typer


class Shell(StrEnum):
    """A shell that can complete."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion_command(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)]) -> None:
    """Write the script that completes commands and options in a shell.

    bash: add `eval "$(exhume completion bash)"` to ~/.bashrc; zsh: the same line with zsh to ~/.zshrc, after compinit; fish: write it to
    ~/.config/fish/completions/exhume.fish.

    Example: exhume completion bash
    """
    completion: Any = import_module("typer.completion")
    typer.echo(completion.get_completion_script(prog_name="exhume", complete_var="_EXHUME_COMPLETE", shell=shell.value))
