"""The frame of each command: open the evidence, show progress, print findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from exhume.cli.options import Leftover
from exhume.cli.progress import Progress
from exhume.escape import printable

if TYPE_CHECKING:
    from exhume.findings import Findings
    from exhume.topic import OffsetsTopic

EXIT_DAMAGE = 1
#: The number of findings to print on standard error; the rest are counted.
_MAX_PRINTED_FINDINGS = 20


class Interrupted(KeyboardInterrupt):
    """An interrupt. After a plain KeyboardInterrupt in `exec` (as in a dataclass), Python ends by the signal instead of the exit code."""


@contextmanager
def opened(
    paths: Sequence[str], *, include: Sequence[Leftover] | None = None, temp_dir: Path | None = None, verify: bool = True
) -> Iterator[OffsetsTopic]:
    """Open the evidence, and close it afterwards; on a terminal a progress bar shows the reading."""
    from exhume.topic import open_topic

    with Progress("reading") as bar:

        def report(done_bytes: int, total_bytes: int) -> None:
            bar.total_bytes = total_bytes
            bar.advance(done_bytes - bar.done_bytes)

        topic = open_topic(paths, include=[item.value for item in include or ()], temp_dir=temp_dir, verify=verify, progress=report)
        with topic:
            yield topic


def tell(findings: Findings) -> None:
    """Print warnings and incidents on standard error; exit with 1 if damage made the answer partial."""
    shown = [finding for finding in findings if finding.severity != "info"]
    for finding in shown[:_MAX_PRINTED_FINDINGS]:
        place = ", ".join(
            part
            for part in (
                finding.path,
                None if finding.byte_position is None else f"byte {finding.byte_position}",
                None if finding.first_record_offset is None else f"record offset {finding.first_record_offset}",
            )
            if part
        )
        remedy = f" {finding.remedy}." if finding.remedy else ""
        typer.echo(printable(f"{finding.severity}: {finding.code}: {place + ': ' if place else ''}{finding.sentence}.{remedy}"), err=True)
    if len(shown) > _MAX_PRINTED_FINDINGS:
        typer.echo(f"{len(shown) - _MAX_PRINTED_FINDINGS} more findings; exhume inspect --table findings lists all", err=True)
    if findings.has_damage:
        typer.echo("the answer is partial: see the findings above", err=True)
        raise typer.Exit(EXIT_DAMAGE)
