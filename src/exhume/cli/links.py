"""Links from the names of files to the files (OSC 8), for terminals that open them with a click."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text


def wants_links(console: Console) -> bool:
    """Return True if standard output is a terminal that gets colours: only such a terminal may know links."""
    return sys.stdout.isatty() and console.color_system is not None and not console.no_color


def link(cell: Text, path: str) -> None:
    """Link this cell to the file of this machine with this path, if there is one."""
    # A name with escapes is not the name of the file.
    if "\\" not in path and Path(path).exists():
        # Percent signs stand for all that a terminal could obey.
        cell.stylize(f"link {Path(path).absolute().as_uri()}")
