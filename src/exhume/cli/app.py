"""The command line: `exhume COMMAND`. A command parses, calls one library function, renders.

Exit codes: 0 clean, 1 damage made the answer partial (or `diagnose` found an incident, `diff` a difference, `load-check` a release that
refuses or loses something), 2 wrong request, 3 evidence that exhume cannot read, 70 an error of exhume, or not enough memory, 129, 130 and
143 ended by SIGHUP, SIGINT, SIGTERM.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from functools import cache
from importlib import import_module
from threading import Event, Timer
from typing import Annotated, Any, NoReturn

import typer

from exhume import without_pandas
from exhume._version import __version__
from exhume.cli import limits
from exhume.cli.defaults import defaults_of
from exhume.cli.limits import WANTED
from exhume.cli.mapped_files import lost
from exhume.cli.panels import EXPLAIN, LOOK, REPAIR, SET_UP, PanelCommand, PanelGroup, help_width
from exhume.cli.run import Interrupted
from exhume.cli.table_options import with_table_options
from exhume.errors import ExhumeError, RequestError
from exhume.escape import printable
from exhume.moments import use_zone

EXIT_WRONG_REQUEST, EXIT_UNREADABLE, EXIT_INTERRUPTED = 2, 3, 130
#: EX_SOFTWARE: a bug, or memory that was not there. Never the code of damage.
EXIT_SOFTWARE = 70
_LONGEST_MESSAGE = 400
#: After these signals a command cleans up as after an interrupt.
_ENDING_SIGNALS = ("SIGTERM", "SIGHUP")

# Some versions of typer vendor click; the base class is the same in both.
_UsageError: Any = typer.BadParameter.__base__

#: The commands in the order of `--help`, by its parts; the function of `load-check` is `load_check.load_check_command`.
_PANELS: dict[str, tuple[str, ...]] = {
    LOOK: ("triage", "inspect", "dump", "growth", "transactions", "state", "lag", "diff", "load-check", "releases"),
    EXPLAIN: ("diagnose", "explain", "why", "history", "rebalances", "timeline", "owners", "assignments", "expiry", "sql", "report"),
    REPAIR: ("reset-plan", "export"),
    SET_UP: ("capture", "schema", "demo", "completion"),
}
_COMMANDS = tuple(name for names in _PANELS.values() for name in names)
#: The former name of `export`, for scripts.
_EXPORT = "batch"
_LAB = "lab"


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"exhume {__version__}")
        raise typer.Exit


def _options(
    _version: Annotated[
        bool, typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def command_line(only: str | None = None) -> typer.Typer:
    """Return the program with all commands, or with one: each of the others would take a millisecond or two of a start."""
    app = typer.Typer(
        name="exhume",
        help="Forensics and replay for Kafka's group coordinator, from the bytes of __consumer_offsets. exhume opens evidence read-only.",
        epilog="Begin with: exhume PATH. Help: exhume help COMMAND, or exhume COMMAND --help",
        cls=PanelGroup,
        no_args_is_help=True,
        add_completion=False,
        # Plain help: importing rich doubles the time of `--help`.
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": help_width()},
        callback=_options,
    )
    for panel, names in _PANELS.items():
        for name in names:
            if only in (None, name):
                _add(app, name, name, panel)
        if panel == SET_UP and only in (None, _LAB):
            app.add_typer(import_module("exhume.cli.lab").app, name=_LAB, rich_help_panel=panel)
    if only in (None, _EXPORT):
        _add(app, _EXPORT, "export", REPAIR, hidden=True)
    return app


def _add(app: typer.Typer, name: str, module: str, panel: str, *, hidden: bool = False) -> None:
    module = module.replace("-", "_")
    command = with_table_options(getattr(import_module(f"exhume.cli.{module}"), f"{module}_command"))
    app.command(name=name, cls=PanelCommand, hidden=hidden, rich_help_panel=panel)(command)


_is_interrupted = Event()
#: The signal that ends the program.
_signals: list[int] = []


def _interrupt(number: int, *_: object) -> NoReturn:
    _signals.append(number)
    _is_interrupted.set()
    raise Interrupted


def _interrupt_again(dropped: sys.UnraisableHookArgs) -> None:
    """Send the interrupt again: Python drops an exception in a destructor or in a callback of C code."""
    if isinstance(dropped.exc_value, Interrupted):
        Timer(0.01, os.kill, (os.getpid(), _signals[-1] if _signals else signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(dropped)


def main() -> None:
    """Run the command line and exit with its code; an `ExhumeError` is one line on standard error."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
        sys.unraisablehook = _interrupt_again
    for name in _ENDING_SIGNALS:
        # `nohup` ignores SIGHUP, and so does the program that it starts.
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is signal.SIG_DFL:
            signal.signal(getattr(signal, name), _interrupt)
    without_pandas.keep_out()
    # numpy starts a thread for each processor to multiply matrices, and no command does.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    arguments = sys.argv[1:]
    if not {_EXPORT, "export"} & {*arguments[:1]}:
        from exhume.codecs.limits import limit_memory

        # Java divides its memory by itself.
        limit_memory()
    code = run(arguments)
    if _is_interrupted.is_set():
        # A second signal has nothing to stop.
        for name in ("SIGINT", *_ENDING_SIGNALS):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    sys.exit(128 + _signals[0] if code == EXIT_INTERRUPTED and _signals else code)


def run(arguments: list[str]) -> int:
    """Run the command line on these arguments. Returns the exit code."""
    code = invoke(arguments)
    if code == EXIT_INTERRUPTED:
        if (error := lost()) is not None:
            typer.echo(f"exhume: {printable(str(error))}", err=True)
            return EXIT_UNREADABLE
        typer.echo("interrupted", err=True)
    return code


def invoke(arguments: list[str]) -> int:
    """Run the command line without the message `interrupted`: for a command that runs other commands."""
    from exhume.cli.destination import quiet_when_reader_leaves

    use_zone(None)
    if "_EXHUME_COMPLETE" in os.environ:
        completion: Any = import_module("typer.completion")
        # The shells that `exhume completion` writes scripts for.
        completion.completion_init()
    arguments = _expanded(arguments)
    WANTED.is_debug = False
    try:
        with quiet_when_reader_leaves():
            command = _command_for(arguments)
            code = command.main(arguments, prog_name="exhume", standalone_mode=False, default_map=defaults_of(command, arguments))
    except _UsageError as error:
        _suggest(error)
        error.show()
        return EXIT_WRONG_REQUEST
    except (typer.Abort, KeyboardInterrupt):
        # Some versions of typer turn an interrupt into Abort, others into the exit code.
        return EXIT_INTERRUPTED
    except ExhumeError as error:
        typer.echo(f"exhume: {printable(str(error))}", err=True)
        return EXIT_WRONG_REQUEST if isinstance(error, RequestError) else EXIT_UNREADABLE
    except Exception as error:
        # Interrupted C code raises an error of its own.
        return EXIT_INTERRUPTED if _is_interrupted.is_set() or lost() else _unexpected(error)
    return code if isinstance(code, int) else 0


def _suggest(error: Any) -> None:
    """Name the most similar option in an error about an unknown one."""
    from difflib import get_close_matches

    near = get_close_matches(getattr(error, "option_name", ""), getattr(error, "possibilities", None) or (), n=1, cutoff=0)
    if near:
        error.possibilities = None
        error.message = f"{error.message}. Did you mean {near[0]}?"


def _unexpected(error: Exception) -> int:
    """Report an error that no command expects, in one line. Returns the exit code."""
    if WANTED.is_debug:
        traceback.print_exception(error)
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        from exhume.codecs.limits import LIMITS

        limit = f" of {LIMITS.memory_bytes} bytes" if LIMITS.memory_bytes else ""
        typer.echo(
            f"exhume: the memory{limit} does not suffice. Raise --memory-limit, or ask about fewer partitions or one group at a time",
            err=True,
        )
        return EXIT_SOFTWARE
    # The message may quote the evidence.
    what = printable(f"{type(error).__name__}: {error}".replace("\n", " "))[:_LONGEST_MESSAGE]
    typer.echo(f"exhume: an error of exhume itself: {what}. Please report it with the output of --debug", err=True)
    return EXIT_SOFTWARE


def _command_for(arguments: list[str]) -> Any:
    name = arguments[0] if arguments else None
    return _parser(name if name in (*_COMMANDS, _EXPORT, _LAB) else None)


def _expanded(arguments: list[str]) -> list[str]:
    """Return the arguments in full: `help COMMAND` is `COMMAND --help`, and `PATH` alone is `triage PATH`."""
    if arguments[:1] == ["help"]:
        return [*arguments[1:], "--help"]
    is_command = bool(arguments) and (arguments[0].startswith("-") or arguments[0] in (*_COMMANDS, _EXPORT, _LAB))
    if arguments and not is_command:
        from exhume.cli.triage import is_place

        if is_place(arguments[0]):
            return ["triage", *arguments]
    return arguments


@cache
def _parser(only: str | None) -> Any:
    command = typer.main.get_command(command_line(only))
    limits.add_to(command)
    return command
