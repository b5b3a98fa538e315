"""The start of the program `exhume`, and of `python -m exhume`."""

import os
import sys
from typing import NoReturn

from exhume.gc_control import infrequent_gc


def main() -> None:
    """Run the command line. An interrupt during the imports ends it as a later one does."""
    # A command keeps its modules and most of its objects until it ends: collecting cycles among them takes a tenth of a short command.
    with infrequent_gc():
        try:
            from exhume.cli.app import main as run_command_line
        except KeyboardInterrupt:
            sys.stderr.write("interrupted\n")
            sys.exit(130)
        try:
            run_command_line()
        except SystemExit as ended:
            _leave(ended)


def _leave(ended: SystemExit) -> NoReturn:
    """End the process without taking apart its modules, which takes a tenth of a short command."""
    # Spark stops its own processes at the end of Python.
    if "pyspark" in sys.modules or not isinstance(ended.code, int):
        raise ended
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            # No such stream, or a closed one: Python ends as usual, and reports it.
            raise ended from None
    os._exit(ended.code)


if __name__ == "__main__":
    main()
