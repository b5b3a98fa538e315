"""`exhume warmup`."""

from __future__ import annotations

import time

import typer

from exhume.cli.escape import printable


def warmup_command() -> None:
    """Compile ahead what makes large logs fast, and keep it.

    Without it, the first large log waits for that: about half a minute. Compiled code is kept in the cache directory of the user
    (XDG_CACHE_HOME, or ~/.cache) for this release of exhume; where that cannot be written, every process compiles for itself.

    Example: exhume warmup
    """
    from exhume.topic.warming import warm_up

    start = time.monotonic()
    place = warm_up()
    where = f"kept in {printable(str(place))}" if place else "and could not be kept: there is no cache directory that can be written"
    typer.echo(f"compiled in {time.monotonic() - start:.0f} s, {where}", err=True)
