"""The command line: `exhume COMMAND`. A command parses, calls one library function, renders.

Exit codes: 0 clean, 1 damage made the answer partial, 2 wrong request, 3 evidence that cannot be read, 130 interrupted.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from exhume._version import __version__
from exhume.cli import demo, dump, inspect, state
from exhume.cli.escape import printable
from exhume.errors import ExhumeError, RequestError

EXIT_FINDINGS, EXIT_WRONG_REQUEST, EXIT_UNREADABLE, EXIT_INTERRUPTED = 1, 2, 3, 130

# typer carries click under a name of its own, or depends on it, by version; the class is the same.
_UsageError: Any = typer.BadParameter.__base__

app = typer.Typer(
    name="exhume",
    help="What Kafka's group coordinator knew, dug out of the bytes of __consumer_offsets. Evidence is opened read-only, always.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="inspect")(inspect.inspect_command)
app.command(name="dump")(dump.dump_command)
app.command(name="state")(state.state_command)
app.command(name="demo")(demo.demo_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"exhume {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line and exit with its code; every error we raise on purpose is one line on standard error."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command line on these arguments; what comes back is the exit code."""
    from exhume.cli.destination import quiet_when_reader_leaves

    try:
        with quiet_when_reader_leaves():
            code = typer.main.get_command(app).main(arguments, prog_name="exhume", standalone_mode=False)
    except _UsageError as error:
        error.show()
        return EXIT_WRONG_REQUEST
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except ExhumeError as error:
        typer.echo(f"exhume: {printable(str(error))}", err=True)
        return EXIT_WRONG_REQUEST if isinstance(error, RequestError) else EXIT_UNREADABLE
    return code if isinstance(code, int) else 0
