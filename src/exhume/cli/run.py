"""The frame of each command: open the evidence, show progress, print findings."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import TYPE_CHECKING

import typer

from exhume.cli.notes import note
from exhume.cli.options import Leftover
from exhume.cli.progress import Progress
from exhume.errors import RequestError
from exhume.escape import printable
from exhume.int64 import LARGEST_INT64

if TYPE_CHECKING:
    from exhume.capture.fetching import Totals
    from exhume.findings import Findings
    from exhume.topic import OffsetsTopic

EXIT_DAMAGE = 1
#: The number of findings to print on standard error; the rest are counted.
_MAX_PRINTED_FINDINGS = 20
#: A client of a remote place tries again for long, without a word.
_SAID_AFTER_SECONDS = 3.0
_SEND = "Send a segment or an archive: tar c data/ | exhume inspect -"


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
            path
            if path != "-" and not path.lower().startswith("kafka://")
            # Both become files of this machine.
            else _fetched(path, stack.enter_context(TemporaryDirectory(prefix="exhume-", dir=temp_dir)), groups, with_listing=with_listing)
            for path in paths
        ]
        bar = stack.enter_context(Progress("reading"))
        with _saying_what_it_waits_for(paths):
            topic = open_topic(local, include=[item.value for item in include or ()], temp_dir=temp_dir, verify=verify, progress=bar.reach)
        stack.enter_context(topic)
        if local != list(paths):
            topic.show_places_as(paths)
        yield topic


def _fetched(path: str, directory: str, groups: Sequence[str] | None, *, with_listing: bool) -> str:
    return _from_stdin(directory) if path == "-" else _captured(path, directory, groups, with_listing=with_listing)


@contextmanager
def _saying_what_it_waits_for(paths: Sequence[str]) -> Iterator[None]:
    """Note the remote places on standard error if the work inside takes longer than a person expects."""
    remote = [path for path in paths if "://" in path and not path.lower().startswith(("kafka://", "file://"))]
    shown = ""
    if remote:
        from exhume.codecs.uris import parse_place

        shown = ", ".join(str(parse_place(path)) for path in remote)
    timer = Timer(_SAID_AFTER_SECONDS, note, (f"waiting for {shown}: its client tries again for up to a minute",))
    timer.daemon = True
    if remote:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _from_stdin(directory: str) -> str:
    """Copy standard input, a segment or an archive of logs, into the directory. Returns its path.

    Raises:
        RequestError: standard input is a terminal, or is empty.
    """
    from exhume.codecs.archive_streams import archive_kind

    if sys.stdin.isatty():
        raise RequestError("standard input is a terminal", remedy=_SEND)
    path = Path(directory) / "stdin"
    with path.open("w+b") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        if not file.tell():
            raise RequestError("standard input is empty", remedy=_SEND)
        file.seek(0)
        is_archive = archive_kind(file) is not None
        file.seek(0)
        # A segment has the name of its first record offset, with which its first batch begins.
        base_offset = int.from_bytes(file.read(8), "big") & LARGEST_INT64
    return str(path if is_archive else path.rename(path.with_name(f"{base_offset:020}.log")))


def _captured(place: str, directory: str, groups: Sequence[str] | None, *, with_listing: bool) -> str:
    """Capture this cluster into the directory, and return the directory."""
    from exhume.capture import capture_into
    from exhume.cli.groups import is_pattern

    exact = None if not groups or any(map(is_pattern, groups)) else groups
    with Progress("capturing") as bar:

        def report(totals: Totals) -> None:
            bar.advance(totals.bytes - bar.done_bytes)

        warnings = capture_into(place, Path(directory), groups=exact, with_listing=with_listing, progress=report)
    for warning in warnings:
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
