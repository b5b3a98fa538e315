"""An option of a command has the name of its parameter in the library: without unit, `file` and plural."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
import typer

from exhume.analysis.detectors.inputs import Inputs
from exhume.cli.app import command_line
from exhume.codecs.record_filter import RecordFilter
from exhume.replay.load_request import LoadKeywords
from exhume.topic import OffsetsTopic

PROGRAM: Any = typer.main.get_command(command_line())
COMMANDS = [name for name in PROGRAM.commands if hasattr(OffsetsTopic, name.replace("-", "_"))]
#: The fields that a parameter stands for.
_FIELDS = {
    "wanted": {field.name for field in fields(RecordFilter)},
    "options": {*LoadKeywords.__annotations__},
    "inputs": {field.name for field in fields(Inputs)},
}
#: How an answer is shown and which files are read: `render` and `exhume.open` have these.
_OF_ALL = (
    *("output", "output_file", "csv_raw", "temp_dir", "where", "sort", "columns", "limit", "tz", "color", "quiet", "no_verify"),
    *("include", "help"),
)
#: Options without a parameter of their name, and where the library has them.
_ELSEWHERE = {
    "inspect": {"table": "the keys of the answer"},
    "dump": {"annotate": "topic.annotate"},
    "transactions": {"all": "with_finished", "table": "the keys of the answer"},
    "state": {
        **dict.fromkeys(("high_watermark", "load_buffer_bytes", "group_max_size"), "inputs"),
        "table": "the attributes of the answer",
        "end_offsets": "topic.lag",
    },
    "diff": {"live": "topic.diff_with"},
    "diagnose": {
        **dict.fromkeys(("min_severity", "undecided"), "Findings.at_least"),
        "all": "the answer has all",
        "details": "the form for people",
        "fail_on": "the exit code",
        "list": "DETECTORS",
    },
    "assignments": {"table": "the keys of the answer"},
    "expiry": {"as_records": "the records of the answer"},
    "sql": {"external_access": "SqlOptions", "memory_limit": "SqlOptions"},
    "reset-plan": {
        **dict.fromkeys(("lost", "before_rewind"), "taken_back"),
        "all_groups": "topic.group_names",
        "as_records": "the records of the answer",
    },
}


def _plain(name: str) -> str:
    return name.removesuffix("_ms").removesuffix("_file").removesuffix("s")


def _parameters(command: str) -> Iterator[str]:
    for name in inspect.signature(getattr(OffsetsTopic, command.replace("-", "_"))).parameters:
        yield from _FIELDS.get(name, {name})


def _options(command: str) -> set[str]:
    names = (name for parameter in PROGRAM.commands[command].params for name in parameter.opts if name.startswith("--"))
    return {name.removeprefix("--").replace("-", "_") for name in names} - {*_OF_ALL}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_has_the_name_of_its_parameter(command: str) -> None:
    parameters = {_plain(name) for name in _parameters(command)}
    different = {name for name in _options(command) if _plain(name) not in parameters}

    assert different == {*_ELSEWHERE.get(command, {})}


def test_most_commands_have_a_method_of_their_name() -> None:
    assert len(COMMANDS) > 15
