"""`exhume diff`."""

from __future__ import annotations

from typing import Annotated

import typer

from exhume.cli.options import (
    CsvRaw,
    EvidencePaths,
    FromTime,
    Groups,
    LoadRelease,
    Output,
    OutputFile,
    OutputOption,
    TempDir,
    ToTime,
    WhichClock,
    record_offsets,
)

EXIT_DIFFERENT = 1

_FromOffset = Annotated[
    list[str] | None,
    typer.Option(
        "--from-offset", metavar="P:N", help="The earlier state: after record N of offsets partition P. Repeatable.", show_default=False
    ),
]
_ToOffset = Annotated[
    list[str] | None,
    typer.Option("--to-offset", metavar="P:N", help="The later state; default: the end of the log. Repeatable.", show_default=False),
]


def diff_command(
    paths: EvidencePaths,
    from_offset: _FromOffset = None,
    from_time: FromTime = None,
    to_offset: _ToOffset = None,
    to_time: ToTime = None,
    clock: WhichClock = None,
    live: Annotated[
        str | None,
        typer.Option("--live", metavar="kafka://HOST:PORT", help="The later state: that of this cluster, as of now.", show_default=False),
    ] = None,
    release: LoadRelease = None,
    groups: Groups = None,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Show the differences between two moments of a log, or between two copies.

    Give one path and an earlier moment, or two paths without a moment. Each row is a group, member, assignment or offset that was added
    (+), removed (-) or changed (~): its value before and after, and the record that set it. json, jsonl, csv and parquet have a row for
    each value. The exit code is 1 if there is a difference.

    Example: exhume diff data/ --from-time 2026-11-20T14:00Z --to-time 2026-11-20T15:00Z --group billing
    """
    from exhume.analysis.diff_lines import diff_lines
    from exhume.cli.groups import matched
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell
    from exhume.errors import RequestError
    from exhume.replay.moment import refuse_lone_clock

    refuse_unfit(None, output=output, output_file=output_file, evidence=paths)
    earlier, later = record_offsets(from_offset, "--from-offset"), record_offsets(to_offset, "--to-offset")
    has_moment = any(end is not None for end in (earlier, later, from_time, to_time))
    if live is not None:
        if not live.lower().startswith("kafka://"):
            raise RequestError(f"--live {live!r} is no cluster", remedy="Write --live kafka://host:port")
        paths = [*paths, live]
    if len(paths) != (1 if has_moment else 2):
        raise RequestError(
            "diff compares two moments of one log, or the ends of two copies",
            remedy="Give one path with --from-offset or --from-time, one path with --live, or two paths without moments",
        )

    refuse_lone_clock(clock.value if clock else None, from_time, to_time)

    with opened(paths[:1], temp_dir=temp_dir, groups=groups) as topic:
        if has_moment:
            answer = topic.diff(
                from_offset=earlier,
                from_time_ms=from_time,
                to_offset=later,
                to_time_ms=to_time,
                clock=clock.value if clock else None,
                release=release,
                groups=matched(topic, groups),
            )
        else:
            with opened(paths[1:], temp_dir=temp_dir, groups=groups) as other:
                answer = topic.diff_with(other, release=release, groups=matched(topic, groups))
        shown = diff_lines(answer) if output is Output.table else answer
        render(shown, output=output, output_file=output_file, csv_raw=csv_raw, evidence=paths)
        tell(topic.findings)
        if answer.num_rows:
            raise typer.Exit(EXIT_DIFFERENT)
