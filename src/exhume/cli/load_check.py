"""`exhume load-check`."""

from __future__ import annotations

from typing import Annotated

import typer

from exhume.cli.options import CsvRaw, EvidencePaths, Output, OutputFile, OutputOption, TempDir
from exhume.cli.state import STOP_HELP, StopOption


def load_check_command(
    paths: EvidencePaths,
    releases: Annotated[
        list[str] | None,
        typer.Option("--release", metavar="R", help="Only this release. Repeatable.", show_default="all spans of releases"),
    ] = None,
    stop: Annotated[
        StopOption | None,
        typer.Option("--stop", help=STOP_HELP, show_default="as the directory shows, else both"),
    ] = None,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Show which releases load these logs, and which records each of them loses or refuses.

    Run it before you start a broker on the logs. One line for each release; json, jsonl, csv and parquet have a row for each offsets
    partition. The exit code is 1 if a release refuses or loses a record.

    Example: exhume load-check data/ --release 2.8.2 --release 4.3
    """
    from exhume.analysis.load_check import is_refused, load_matrix
    from exhume.cli.render import render
    from exhume.cli.run import EXIT_DAMAGE, opened, tell

    with opened(paths, temp_dir=temp_dir) as topic:
        checked = topic.load_check(releases or None, stop=stop.value if stop else None)
        answer = load_matrix(checked) if output is Output.table else checked
        render(answer, output=output, output_file=output_file, csv_raw=csv_raw, evidence=paths)
        tell(topic.findings)
        if is_refused(checked):
            raise typer.Exit(EXIT_DAMAGE)
