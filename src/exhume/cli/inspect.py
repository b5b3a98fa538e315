"""`exhume inspect`."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from exhume.cli.notes import note
from exhume.cli.options import CsvRaw, EvidencePaths, Include, NoVerify, Output, OutputFile, OutputOption, TempDir

#: The tables and columns for a terminal, in this order; --table and --output json have all of them.
_SHOWN = {
    "findings": ("severity", "code", "path", "byte_position", "first_record_offset", "size_bytes", "sentence", "remedy"),
    "log_directories": ("replica", "path", "broker_id", "cluster_id", "is_whole", "clean_shutdown"),
    "partitions": (
        "replica",
        "offsets_partition",
        "segment_count",
        "size_bytes",
        "batch_count",
        "record_count",
        "tombstone_count",
        "first_offset",
        "last_offset",
        "missing_offsets",
        "high_watermark",
        "min_timestamp_ms",
        "max_timestamp_ms",
        "damaged_bytes",
    ),
    "segments": (
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
    ),
    "record_types": (
        "record_type",
        "type",
        "value_versions",
        "record_count",
        "tombstone_count",
        "transactional_count",
        "marked_count",
        "partition_count",
    ),
}


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
    """Show the contents of a copy: partitions, segments, formats, gaps and damage.

    First findings, then partitions, segments, formats, record types and time spans. Gaps, checkpoints, indexes, leader epochs and producer
    snapshots have tables of their own.

    Example: exhume inspect data/ --table segments
    """
    from exhume.analysis.inspection import INSPECTION_TABLES
    from exhume.analysis.summary import summarize_record_types
    from exhume.cli.document import head_of
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell
    from exhume.errors import RequestError, did_you_mean

    if table is not None and table not in INSPECTION_TABLES:
        raise RequestError(f"no table {table!r}", remedy=did_you_mean(table, INSPECTION_TABLES))
    refuse_unfit(INSPECTION_TABLES if table is None else None, output=output, output_file=output_file, evidence=paths)
    with opened(paths, include=include, temp_dir=temp_dir, verify=not no_verify) as topic:
        tables = topic.inspect().tables()
        if table is not None:
            render(tables[table], output=output, output_file=output_file, csv_raw=csv_raw, evidence=paths)
        elif output is Output.table:
            summaries = tables | {"record_types": summarize_record_types(tables["record_types"])}
            shown = {name: summaries[name] for name in _SHOWN if summaries[name].num_rows}
            render(shown, output=output, output_file=output_file, columns=_SHOWN, evidence=paths)
            more = [name for name, content in tables.items() if name not in _SHOWN and content.num_rows]
            if more:
                note(f"more with --table: {', '.join(more)}")
        else:
            head = partial(head_of, topic, paths)
            render(tables, output=output, output_file=output_file, csv_raw=csv_raw, evidence=paths, head=head)
        tell(topic.findings)
