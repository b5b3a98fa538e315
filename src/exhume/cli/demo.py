"""`exhume demo`."""

from __future__ import annotations

from pathlib import Path

import typer

#: A log directory that a broker 4.3.0 left behind: four offsets partitions of consumer groups.
DEMO_LOG = Path(__file__).with_name("demo_log")

_STEPS = (
    ("What is here?", ("inspect", "--table", "segments")),
    ("Every commit of one group, as it was written", ("dump", "--group", "shipping-eta", "--type", "offset_commit")),
    ("What a coordinator of Kafka 4.3 holds after loading it", ("state",)),
    ("One group of it, whole", ("state", "--group", "fraud-scoring")),
)


def demo_command() -> None:
    """Reconstruct a real broker's log that comes with exhume.

    From inspect to state, with the commands shown.

    Example: exhume demo
    """
    from exhume.cli.app import invoke

    for question, (command, *options) in _STEPS:
        typer.echo(f"\n# {question}\n$ exhume {' '.join((command, 'demo_log/', *options))}\n")
        code = invoke([command, str(DEMO_LOG), *options])
        if code:
            raise typer.Exit(code)
    typer.echo(f"\nThe log lies in {DEMO_LOG}. Try a command of your own on it, or on a copy of your broker's log directory.")
