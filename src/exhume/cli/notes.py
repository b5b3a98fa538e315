"""Notes on standard error: what a person wants to know beside the answer. `--quiet` leaves them out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from exhume.escape import printable

_is_quiet = [False]


def note(text: str) -> None:
    """Print a note on standard error, unless the user wants none."""
    if not _is_quiet[-1]:
        typer.echo(printable(text), err=True)


def are_wanted() -> bool:
    """Return True unless the user wants no notes and no progress."""
    return not _is_quiet[-1]


@contextmanager
def quiet(*, is_quiet: bool) -> Iterator[None]:
    """Leave out notes and progress inside, if `is_quiet`."""
    _is_quiet.append(is_quiet)
    try:
        yield
    finally:
        _is_quiet.pop()


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: `1 row`, `2,000 rows`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
