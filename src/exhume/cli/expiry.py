"""`exhume expiry`, and the options that it shares with `exhume why`."""

from __future__ import annotations

from typing import Annotated

import typer

from exhume.cli.moments import parse_moment
from exhume.cli.options import CsvRaw, EvidencePaths, Groups, Output, OutputFile, OutputOption, TempDir
from exhume.durations import parse_duration
from exhume.errors import RequestError


def parse_retention(text: str) -> int:
    """A retention in milliseconds, from `7d`, `168h`, `10080m`, or the milliseconds themselves.

    Raises:
        RequestError: none of these.
    """
    retention_ms = parse_duration(text)
    if retention_ms is None:
        raise RequestError(
            f"{text!r} is no length of time", remedy="Write days, hours, minutes or milliseconds, such as 7d, 168h or 10080m"
        )
    return retention_ms


Now = Annotated[
    int | None,
    typer.Option(
        "--now", parser=parse_moment, metavar="TIME", help="The time to ask for, as --at-time of state.", show_default="this moment"
    ),
]
Retention = Annotated[
    int | None,
    typer.Option(
        "--retention",
        parser=parse_retention,
        metavar="TIME",
        help="offsets.retention.minutes of the broker: 7d, 168h, 10080m, or milliseconds.",
        show_default="that of the release",
    ),
]
Release = Annotated[
    str | None,
    typer.Option("--release", metavar="R", help="The Kafka release whose rules count.", show_default="the newest"),
]

_SHOWN = ("kind", "group", "topic", "partition", "committed_offset", "rule", "base_timestamp_ms", "expires_at_ms", "is_past_due", "reason")
_SHOWN_TOMBSTONES = ("offsets_partition", "append", "type", "group", "topic", "partition", "reason")


def expiry_command(
    paths: EvidencePaths,
    now: Now = None,
    retention: Retention = None,
    release: Release = None,
    groups: Groups = None,
    as_records: Annotated[
        bool, typer.Option("--as-records", help="The tombstones that a pass would write now; json has their keys in base64.")
    ] = False,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Show which offsets and groups expire, when, and by which rule.

    A row for each committed offset and each group: when an expiry pass first removes it if nothing changes, what that is counted from,
    whether it is past due; for those that stay, why. Nothing is written to the log.

    Example: exhume expiry data/ --retention 7d --release 2.8.2 --group billing
    """
    from exhume.analysis.forecast import forecast_sentence
    from exhume.cli.escape import printable
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell

    refuse_unfit(None, output=output, output_file=output_file, evidence=paths)
    with opened(paths, temp_dir=temp_dir) as topic:
        expiry = topic.expiry(now_ms=now, retention_ms=retention, release=release, groups=groups or None)
        answer, columns = (expiry.tombstones, _SHOWN_TOMBSTONES) if as_records else (expiry.forecast, _SHOWN)
        render(answer, output=output, output_file=output_file, csv_raw=csv_raw, columns=columns, evidence=paths)
        if output is Output.table and not as_records:
            typer.echo(printable(forecast_sentence(expiry.forecast)), err=True)
        tell(topic.findings)
