"""`exhume sql`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from exhume.cli.options import CsvRaw, LoadRelease, NoVerify, Output, OutputFile, OutputOption, TempDir


def sql_command(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH... [STATEMENT]",
            show_default=False,
            help="Where the logs are, as for the other commands; then a statement. Without one: standard input, or a shell on a terminal.",
        ),
    ],
    release: LoadRelease = None,
    external_access: Annotated[
        bool, typer.Option("--external-access", help="Let statements read and write files, use the network, and load extensions.")
    ] = False,
    memory_limit: Annotated[
        str, typer.Option("--memory-limit", metavar="SIZE", help="The memory of DuckDB; more goes to temporary files.")
    ] = "1GB",
    no_verify: NoVerify = False,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Ask any question in SQL: every table of docs/tables.md is a view of an embedded DuckDB.

    Needs the extra `sql`. docs/sql.md has twenty worked questions. Conditions on group, topic, partition, record type, offset and time are
    pushed down: what they leave out is not decoded.

    Example: exhume sql data/ "select group, count(*) from offset_commits group by 1 order by 2 desc"
    """
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell

    paths, statement = _split(arguments)
    if statement is None and sys.stdin.isatty():
        from exhume.cli.sql_shell import Shell

        with Shell(paths, temp_dir, verify=not no_verify) as shell:
            shell.run(release=release, external_access=external_access, memory_limit=memory_limit)
        return
    refuse_unfit(None, output=output, output_file=output_file, evidence=paths)
    text = sys.stdin.read() if statement is None else statement
    with opened(paths, temp_dir=temp_dir, verify=not no_verify) as topic:
        with topic.to_duckdb(release=release, external_access=external_access, memory_limit=memory_limit, temp_dir=temp_dir) as database:
            render(database.query(text), output=output, output_file=output_file, csv_raw=csv_raw, evidence=paths)
        tell(topic.findings)


def _split(arguments: list[str]) -> tuple[list[str], str | None]:
    """Return the places, and the statement if the last argument is one: it has a space, and is no file and no URI."""
    last = arguments[-1]
    is_statement = len(arguments) > 1 and re.search(r"\s", last.strip()) and "://" not in last and not _is_there(last)
    return (arguments[:-1], last) if is_statement else (arguments, None)


def _is_there(place: str) -> bool:
    try:
        return Path(place).exists()
    except OSError:
        # A long statement is longer than any name of a file.
        return False
