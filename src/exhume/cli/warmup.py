"""`exhume warmup`."""

from __future__ import annotations

import time

import typer

from exhume.cli.escape import printable


def warmup_command() -> None:
    """Compile the kernels for large logs now, and keep them.

    Otherwise the first command on a large log compiles them, which takes half a minute or more. exhume keeps the code in the cache
    directory of the user (XDG_CACHE_HOME, or ~/.cache); if it cannot write there, each process compiles again.

    Example: exhume warmup
    """
    from exhume.topic.warming import warm_up

    start = time.monotonic()
    place = warm_up()
    where = f"kept in {printable(str(place))}" if place else "and could not be kept: there is no cache directory that can be written"
    typer.echo(f"compiled in {time.monotonic() - start:.0f} s, {where}", err=True)
