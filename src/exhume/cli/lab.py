"""`exhume lab`: logs to practise on."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from exhume.cli.escape import printable
from exhume.cli.options import CsvRaw, Output, OutputFile, OutputOption
from exhume.errors import RequestError

app = typer.Typer(help="Write logs of known situations, to practise on.", no_args_is_help=True, rich_markup_mode=None)

_SHOWN = ("name", "what_happens", "try")


@app.command("list")
def list_command(output: OutputOption = Output.table, output_file: OutputFile = None, csv_raw: CsvRaw = False) -> None:
    """Show the situations there are, and how to begin with each.

    Their stories, message formats and the first releases that load them are in json, jsonl, csv and parquet.

    Example: exhume lab list
    """
    from exhume.cli.render import render
    from exhume.fixtures import scenarios
    from exhume.fixtures.scenarios.catalogue import catalogue

    render(catalogue(scenarios.ALL.values()), output=output, output_file=output_file, csv_raw=csv_raw, columns=_SHOWN)


@app.command("write")
def write_command(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="A situation that `exhume lab list` names.")],
    directory: Annotated[Path, typer.Argument(metavar="DIR", show_default=False, help="Where to: a directory that is empty, or missing.")],
    message_format: Annotated[
        int | None,
        typer.Option("--message-format", metavar="0|1|2", help="The format of its batches.", show_default="the one that fits it best"),
    ] = None,
    codec: Annotated[str, typer.Option("--codec", metavar="none|gzip|snappy|lz4|zstd", help="The compression of its batches.")] = "none",
) -> None:
    """Write a situation as brokers would have left it.

    The same situation in the same format and codec is the same bytes every time. Standard output has the data directories, one for each
    broker.

    Example: exhume lab write failover drill/ --message-format 2 --codec zstd
    """
    from exhume.fixtures import scenarios

    try:
        written = scenarios.write(name, directory, message_format=message_format, codec=codec)
    except OSError as error:
        raise RequestError(f"cannot write {directory}: {error.strerror or error}", remedy="Choose another directory") from error
    for place in written.data_directories:
        typer.echo(printable(str(place)))
    typer.echo(f"{written.scenario.title} Releases from {written.first_release} on load it.", err=True)
    for question in written.scenario.questions:
        command = question.command.replace("DIR", printable(shlex.quote(str(directory))))
        typer.echo(f"\n{question.text}\n  exhume {command}", err=True)
