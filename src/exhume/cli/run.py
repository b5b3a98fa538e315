"""The frame of each command: open the evidence, show progress, print findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
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
    paths: Sequence[str],
    *,
    include: Sequence[Leftover] | None = None,
    temp_dir: Path | None = None,
    verify: bool = True,
    groups: Sequence[str] | None = None,
    with_listing: bool = False,
) -> Iterator[OffsetsTopic]:
    """Open the evidence, and close it afterwards; on a terminal a progress bar shows the reading.

    A cluster is captured into a temporary directory: of exact names in `groups` only their offsets partitions, and `with_listing` also the
    listing of its groups.
    """
    from exhume.cli.mapped_files import watch
    from exhume.topic import open_topic

    watch()
    with ExitStack() as stack:
        local = [
            _captured(path, stack.enter_context(TemporaryDirectory(prefix="exhume-", dir=temp_dir)), groups, with_listing=with_listing)
            if path.lower().startswith("kafka://")
            else path
            for path in paths
        ]
        bar = stack.enter_context(Progress("reading"))

        def report(done_bytes: int, total_bytes: int) -> None:
            bar.total_bytes = total_bytes
            bar.advance(done_bytes - bar.done_bytes)

        topic = open_topic(local, include=[item.value for item in include or ()], temp_dir=temp_dir, verify=verify, progress=report)
        stack.enter_context(topic)
        if local != list(paths):
            topic.show_places_as(paths)
        yield topic


def _captured(place: str, directory: str, groups: Sequence[str] | None, *, with_listing: bool) -> str:
    """Capture this cluster into the directory, and return the directory."""
    from exhume.capture import open_capture
    from exhume.capture.capturing import CaptureOptions
    from exhume.cli.groups import is_pattern

    exact = None if not groups or any(map(is_pattern, groups)) else groups
    with Progress("capturing") as bar:
        options = CaptureOptions(groups=exact, with_listing=with_listing)
        with open_capture(place, Path(directory), options, progress=lambda totals: bar.advance(totals.bytes - bar.done_bytes)) as capture:
            capture.run_once()
    for warning in capture.warnings:
        typer.echo(printable(f"warn: {warning}"), err=True)
    return directory


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
