"""`exhume capture`."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from exhume.cli.options import Groups, parse_retention

if TYPE_CHECKING:
    from exhume.capture.capturing import Capture
    from exhume.capture.fetching import Totals
    from exhume.cli.progress import Progress

_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}


def parse_size(text: str) -> int:
    """Parse a size: bytes, or with k, m, g or t at the end.

    Raises:
        RequestError: the text is none of these.
    """
    from exhume.errors import RequestError

    number, unit = text[:-1], text[-1:].lower()
    if unit.isdigit():
        number, unit = text, ""
    if unit not in _UNITS or not (number.isascii() and number.isdigit()) or not int(number):
        raise RequestError(f"{text!r} is not a size", remedy="Write bytes, or a number with k, m, g or t, such as 100m or 50g")
    return int(number) * _UNITS[unit]


def _parse_partitions(text: str) -> list[int]:
    from exhume.errors import RequestError

    numbers = text.split(",")
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise RequestError(f"{text!r} is not a list of offsets partitions", remedy="Write numbers with commas, such as 3,17")
    return sorted({int(number) for number in numbers})


def capture_command(
    place: Annotated[str, typer.Argument(metavar="kafka://HOST:PORT,…", show_default=False, help="Bootstrap servers of the cluster.")],
    output_dir: Annotated[
        Path,
        typer.Option("--output-dir", metavar="DIR", help="The evidence directory. An earlier capture in it goes on.", show_default=False),
    ],
    command_config: Annotated[
        Path | None,
        typer.Option("--command-config", metavar="FILE", help="Java properties, as for Kafka's own tools.", show_default=False),
    ] = None,
    offsets_partitions: Annotated[
        str | None,
        typer.Option("--offsets-partitions", metavar="N,N", help="Only these partitions of __consumer_offsets.", show_default="all"),
    ] = None,
    groups: Groups = None,
    listing: Annotated[
        bool, typer.Option("--listing/--no-listing", help="Also ask the coordinators for groups, members and offsets.")
    ] = True,
    timeout: Annotated[
        int,
        typer.Option("--timeout", parser=parse_retention, metavar="TIME", help="End with an error after so much time without an answer."),
    ] = "60s",  # type: ignore[assignment]  # the parser reads it
    follow: Annotated[bool, typer.Option("--follow", help="Go on until SIGTERM or Ctrl-C: a flight recorder.")] = False,
    segment_bytes: Annotated[
        int, typer.Option("--segment-bytes", parser=parse_size, metavar="SIZE", help="Begin another segment after so many bytes.")
    ] = "100m",  # type: ignore[assignment]
    segment_time: Annotated[
        int | None,
        typer.Option(
            "--segment-time", parser=parse_retention, metavar="TIME", help="Begin another segment after this time.", show_default="none"
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep", parser=parse_retention, metavar="TIME", help="Remove segments that are older, such as 30d.", show_default="all"
        ),
    ] = None,
    keep_bytes: Annotated[
        int | None,
        typer.Option(
            "--keep-bytes", parser=parse_size, metavar="SIZE", help="Remove the oldest segments beyond this size.", show_default="all"
        ),
    ] = None,
    fsync: Annotated[
        int, typer.Option("--fsync", parser=parse_retention, metavar="TIME", help="Force bytes to the disk so often; 0: after each write.")
    ] = "1s",  # type: ignore[assignment]
    metrics_file: Annotated[
        Path | None, typer.Option("--metrics-file", metavar="FILE", help="Write metrics of Prometheus here.", show_default=False)
    ] = None,
    metrics_time: Annotated[
        int, typer.Option("--metrics-time", parser=parse_retention, metavar="TIME", help="Print and write metrics so often.")
    ] = "60s",  # type: ignore[assignment]
) -> None:
    """Copy __consumer_offsets from a running cluster, byte for byte, into an evidence directory.

    It reads only: no group is joined, nothing is committed, no topic is created. The directory has segments as on a broker's disk, the
    offsets of data topics, the live answers of the coordinators, and a manifest with the SHA-256 of each file. All commands take the
    directory as PATH. Without --follow it ends at the end of the log; a second run goes on where the first one ended.

    Example: exhume capture kafka://broker1:9092,broker2:9092 --output-dir evidence/ --command-config client.properties
    """
    from exhume.capture import open_capture
    from exhume.capture.capturing import CaptureOptions
    from exhume.cli.progress import Progress
    from exhume.errors import RequestError

    if (keep is not None or keep_bytes is not None or segment_time is not None) and not follow:
        raise RequestError("--keep, --keep-bytes and --segment-time are for a flight recorder", remedy="Add --follow, or leave them out")
    options = CaptureOptions(
        partitions=None if offsets_partitions is None else _parse_partitions(offsets_partitions),
        groups=groups or None,
        with_listing=listing,
        segment_bytes=segment_bytes,
        segment_ms=segment_time,
        fsync_ms=fsync,
        keep_ms=keep,
        keep_bytes=keep_bytes,
        timeout_ms=timeout,
    )
    stopped = Event()
    with Progress("capturing") as bar, _stopping(stopped):
        report = _Report(bar, metrics_file, metrics_time, is_following=follow)
        with open_capture(
            place, output_dir, options, command_config=command_config, progress=report.take, should_stop=stopped.is_set
        ) as capture:
            report.capture = capture
            if follow:
                capture.follow()
            else:
                capture.run_once()
            report.write()
    _tell(capture, output_dir, was_stopped=stopped.is_set() and not follow)


class _Report:
    """Progress on a terminal; for a flight recorder also metrics."""

    def __init__(self, bar: Progress, path: Path | None, every_ms: int, *, is_following: bool) -> None:
        self.capture: Capture | None = None
        self._bar = bar
        self._path = path
        self._every_s = every_ms / 1000
        self._is_following = is_following
        self._due = time.monotonic()

    def take(self, totals: Totals) -> None:
        self._bar.advance(totals.bytes - self._bar.done_bytes)
        if self._is_following and time.monotonic() >= self._due:
            self._due = time.monotonic() + self._every_s
            from exhume.capture.metrics import metrics_line

            assert self.capture is not None
            self._bar.make_way()
            typer.echo(metrics_line(self.capture), err=True)
            self.write()

    def write(self) -> None:
        if self._path is not None and self.capture is not None:
            from exhume.capture.metrics import write_metrics

            write_metrics(self.capture, self._path)


@contextmanager
def _stopping(stopped: Event) -> Iterator[None]:
    """Let SIGTERM and Ctrl-C end the capture between two answers; a second one ends it at once."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def stop(number: int, _: object) -> None:
        stopped.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell(capture: Capture, output_dir: Path, *, was_stopped: bool) -> None:
    from exhume.escape import printable

    for warning in capture.warnings:
        typer.echo(printable(f"warn: {warning}"), err=True)
    totals = capture.totals
    typer.echo(
        printable(
            f"{totals.records} records in {totals.batches} batches, {totals.bytes} bytes, "
            f"from {len(capture.parts)} partitions of __consumer_offsets into {output_dir}"
        ),
        err=True,
    )
    if was_stopped:
        typer.echo("the capture was stopped before its end; the same command goes on", err=True)
        raise typer.Exit(130)
