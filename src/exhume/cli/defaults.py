"""Defaults of options that describe the brokers, from the environment or from `exhume.toml`.

A variable `EXHUME_RETENTION` comes before the file that `EXHUME_CONFIG` names, or else `exhume.toml` in the current directory:

    release = "2.8.2"
    retention = "3d"
    tz = "Europe/Berlin"
    topics = "topics.csv"
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from exhume.cli.notes import note
from exhume.errors import RequestError, did_you_mean

#: The options that may have a default, by their names without dashes.
OPTIONS = ("release", "retention", "tz", "end-offsets", "start-offsets", "topics", "offsets-partitions")
FILE = "exhume.toml"
#: The release of this command is that of a client.
_WITHOUT_RELEASE = "assignments"


def defaults_of(command: Any, arguments: list[str]) -> dict[str, dict[str, str]]:
    """Return the defaults of the parameters of this program, by command, as click takes them; notes those that apply.

    Raises:
        RequestError: the file cannot be read, or has an unknown name.
    """
    chosen = command.commands.get(arguments[0]) if arguments else None
    given = {} if chosen is None else _given()
    if chosen is None or not given:
        return {}
    found: dict[str, str] = {}
    said = []
    for param in chosen.params:
        name = next((opt.removeprefix("--") for opt in param.opts if opt.removeprefix("--") in given), None)
        if name is None or param.multiple or (name == "release" and arguments[0] == _WITHOUT_RELEASE):
            continue
        text, origin = given[name]
        found[param.name] = text
        if not any(each.split("=")[0] in param.opts for each in arguments):
            said.append(f"--{name} {text} ({origin})")
    if said and not {"-q", "--quiet", "--help", "-h"} & {*arguments}:
        note(f"defaults: {', '.join(said)}")
    return {arguments[0]: found}


def _given() -> dict[str, tuple[str, str]]:
    """The defaults and where each comes from, by the names of options."""
    variables = {name: f"EXHUME_{name.upper().replace('-', '_')}" for name in OPTIONS}
    from_environment = {name: (os.environ[variable], variable) for name, variable in variables.items() if os.environ.get(variable)}
    config = os.environ.get("EXHUME_CONFIG")
    if config is None and not Path(FILE).exists():
        return from_environment
    return {**_read(Path(config or FILE)), **from_environment}


def _read(path: Path) -> dict[str, tuple[str, str]]:
    import tomllib

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(f"{path}: cannot be read: {error.strerror}", remedy="Name the file in EXHUME_CONFIG") from error
    except ValueError as error:
        raise RequestError(f"{path}: {error}", remedy='Write a line for each default, such as retention = "3d"') from error
    for name in content:
        if name not in OPTIONS:
            raise RequestError(f"{path}: no default {name!r}", remedy=did_you_mean(name, OPTIONS))
    return {name: (str(value), str(path)) for name, value in content.items()}
