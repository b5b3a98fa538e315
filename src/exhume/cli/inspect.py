"""`exhume inspect`."""

from __future__ import annotations

from typing import Annotated

import typer

from exhume.cli.options import CsvRaw, EvidencePaths, Include, NoVerify, Output, OutputFile, OutputOption, TempDir

_SEGMENT_COLUMNS = (
    "offsets_partition",
    "path",
    "origin",
    "is_read",
    "first_offset",
    "last_offset",
    "size_bytes",
    "batch_count",
    "record_count",
    "magics",
    "codecs",
    "damage",
)
_FINDING_COLUMNS = ("severity", "code", "path", "byte_position", "size_bytes", "sentence", "remedy")


def inspect_command(
    paths: EvidencePaths,
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="Only this table, such as segments, record_types or findings.")
    ] = None,
    include: Include = None,
    no_verify: NoVerify = False,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Show what is here, what it holds, and what it lacks.

    Partitions, segments, formats, record types, time spans, checkpoints, indexes, snapshots, gaps, leftovers and damage.

    Example: exhume inspect data/ --table segments
    """
    from exhume.cli.render import render
    from exhume.cli.run import opened, tell
    from exhume.errors import RequestError

    with opened(paths, include=include, temp_dir=temp_dir, verify=not no_verify) as topic:
        tables = topic.inspect().tables()
        if table is not None:
            if table not in tables:
                raise RequestError(f"no table {table!r}", remedy=f"Choose one of {', '.join(tables)}")
            render(tables[table], output=output, output_file=output_file, csv_raw=csv_raw, evidence=paths)
        elif output is Output.table:
            shown = {name: content for name, content in tables.items() if content.num_rows}
            columns = {"segments": _SEGMENT_COLUMNS, "findings": _FINDING_COLUMNS}
            render(shown, output=output, output_file=output_file, columns=columns, evidence=paths)
        else:
            render(tables, output=output, output_file=output_file, csv_raw=csv_raw, evidence=paths)
        tell(topic.findings)
