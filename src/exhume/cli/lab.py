"""`exhume lab`: logs to practise on."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exhume.cli.options import CsvRaw, Output, OutputFile, OutputOption
from exhume.errors import RequestError
from exhume.escape import printable

if TYPE_CHECKING:
    from exhume.fixtures.incidents import Kind

app = typer.Typer(help="Write logs of known situations, to practise on.", no_args_is_help=True, rich_markup_mode=None)

_SHOWN = ("name", "what_happens", "try")
_QUESTIONS: Mapping[Kind, str] = {
    "hit": "Which finding does diagnose give, which records prove it, and what is not excluded?",
    "near miss": "This log only resembles the incident: which records show the difference?",
    "undecidable": "Which evidence is missing in this log?",
}


@app.command("list")
def list_command(output: OutputOption = Output.table, output_file: OutputFile = None, csv_raw: CsvRaw = False) -> None:
    """List the situations that `exhume lab write` can write.

    First the stories, then the incidents that `exhume diagnose` looks for, by code. json, jsonl, csv and parquet also have the message
    formats, the first releases that load or write each log, and the logs of each incident: hits, near misses and undecidable logs.

    Example: exhume lab list
    """
    from exhume.cli.render import render
    from exhume.fixtures import scenarios
    from exhume.fixtures.catalogue import catalogue
    from exhume.fixtures.incidents import INCIDENTS

    listed = catalogue(scenarios.ALL.values(), INCIDENTS.values())
    render(listed, output=output, output_file=output_file, csv_raw=csv_raw, columns=_SHOWN)


@app.command("write")
def write_command(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="A name from `exhume lab list`.")],
    directory: Annotated[Path, typer.Argument(metavar="DIR", show_default=False, help="The directory to write: new or empty.")],
    message_format: Annotated[
        int | None,
        typer.Option(
            "--message-format", metavar="0|1|2", help="The message format of its batches.", show_default="the best format for the situation"
        ),
    ] = None,
    codec: Annotated[str, typer.Option("--codec", metavar="none|gzip|snappy|lz4|zstd", help="The codec of its batches.")] = "none",
    hit: Annotated[
        int | None, typer.Option("--hit", metavar="N", min=1, help="The N-th log of an incident.", show_default="the first")
    ] = None,
    near_miss: Annotated[
        int | None,
        typer.Option("--near-miss", metavar="N", min=1, help="The N-th log that only resembles the incident, instead.", show_default=False),
    ] = None,
    undecidable: Annotated[
        int | None, typer.Option("--undecidable", metavar="N", min=1, help="The N-th undecidable log, instead.", show_default=False)
    ] = None,
) -> None:
    """Write the log of a known situation, as brokers write it.

    The same situation in the same format and codec gives the same bytes each time. Standard output has the data directories, one for each
    broker. Further inputs of an incident, such as end offsets, are files in DIR.

    Example: exhume lab write failover drill/ --message-format 2 --codec zstd
    Example: exhume lab write IC-04 drill/ --near-miss 2
    """
    from exhume.fixtures.incidents import INCIDENTS

    numbers: dict[Kind, int | None] = {"hit": hit, "near miss": near_miss, "undecidable": undecidable}
    chosen = {kind: number for kind, number in numbers.items() if number is not None}
    if len(chosen) > 1:
        raise RequestError(
            "--hit, --near-miss and --undecidable exclude each other", remedy="Choose one of --hit, --near-miss and --undecidable"
        )
    try:
        if name in INCIDENTS or name.startswith("IC-"):
            _write_incident(name, directory, message_format, codec, chosen or {"hit": 1})
        elif chosen:
            raise RequestError(f"{name} is not an incident, and has only one log", remedy="Leave --hit, --near-miss and --undecidable out")
        else:
            _write_scenario(name, directory, message_format, codec)
    except OSError as error:
        raise RequestError(f"cannot write {directory}: {error.strerror or error}", remedy="Choose another directory") from error


def _write_scenario(name: str, directory: Path, message_format: int | None, codec: str) -> None:
    from exhume.fixtures import scenarios

    written = scenarios.write(name, directory, message_format=message_format, codec=codec)
    _tell_places(written.data_directories)
    typer.echo(f"{written.scenario.title} Releases from {written.first_release} on load it.", err=True)
    for question in written.scenario.questions:
        _tell_question(question.text, question.command, directory)


def _write_incident(code: str, directory: Path, message_format: int | None, codec: str, chosen: Mapping[Kind, int]) -> None:
    from exhume.fixtures import incidents

    (kind, which), *_ = chosen.items()
    only = incidents.situation(code, kind, which).message_format
    if message_format not in (None, only):
        raise RequestError(f"{code} does not exist in message format {message_format}", remedy=f"Choose message format {only}")
    written = incidents.write(code, directory, kind=kind, which=which, codec=codec)
    incident = written.incident
    _tell_places(written.data_directories)
    typer.echo(
        f"{incident.title} ({kind}: {written.situation.title}) Releases from {incident.first_release} on write such records.", err=True
    )
    _tell_question(_QUESTIONS[kind], written.command, directory)


def _tell_places(places: Iterable[Path]) -> None:
    for place in places:
        typer.echo(printable(str(place)))


def _tell_question(text: str, command: str, directory: Path) -> None:
    typer.echo(f"\n{text}\n  exhume {command.replace('DIR', printable(shlex.quote(str(directory))))}", err=True)
