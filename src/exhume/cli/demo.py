"""`exhume demo`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from exhume.errors import RequestError

#: A log directory that a broker 4.3.0 wrote: four offsets partitions of consumer groups.
DEMO_LOG = Path(__file__).with_name("demo_log")

_STEPS = (
    ("Which segments does the log directory have?", ("inspect", "--table", "segments")),
    ("Which offsets did one group commit?", ("dump", "--group", "shipping-eta", "--type", "offset_commit")),
    ("Which state does a coordinator of Kafka 4.3 have after loading it?", ("state",)),
    ("What is the state of one group?", ("state", "--group", "fraud-scoring")),
)


def demo_command(
    directory: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Write the demo log to this new directory.", show_default=False)
    ] = None,
) -> None:
    """Reconstruct a real broker's log that comes with exhume.

    The demo runs inspect, dump and state on the log and shows each command. With DIR, it writes the log there first, so that you can
    repeat the commands.

    Example: exhume demo demo_log
    """
    from exhume.cli.app import invoke

    place = DEMO_LOG if directory is None else _written(directory)
    shown = "demo_log/" if directory is None else f"{directory}/"
    for question, (command, *options) in _STEPS:
        typer.echo(f"\n# {question}\n$ exhume {' '.join((command, shown, *options))}\n")
        code = invoke([command, str(place), *options])
        if code:
            raise typer.Exit(code)
    if directory is None:
        typer.echo("\nTo repeat these commands, write the log to a directory: exhume demo demo_log")
    else:
        typer.echo(f"\nThe log is in {directory}. Next: exhume diagnose {shown}")


def _written(directory: Path) -> Path:
    """Copy the demo log to a new or empty directory."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise RequestError(f"{directory} exists already", remedy="Name a new directory")
    try:
        shutil.copytree(DEMO_LOG, directory, dirs_exist_ok=True)
    except OSError as error:
        raise RequestError(f"cannot write {directory}: {error.strerror}", remedy="Name a directory that you may write to") from error
    return directory
