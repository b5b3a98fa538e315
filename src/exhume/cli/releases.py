"""`exhume releases`."""

from __future__ import annotations

from exhume.cli.options import CsvRaw, Output, OutputFile, OutputOption

_SHOWN = (
    "first_release",
    "last_release",
    "coordinator",
    "read_bound",
    "unknown_record_type",
    "largest_versions",
    "transactional_by",
    "tail_without_records",
    "expiry",
    "defects",
)


def releases_command(output: OutputOption = Output.table, output_file: OutputFile = None, csv_raw: CsvRaw = False) -> None:
    """Show the releases that exhume can replay, and how their loads differ.

    A row is a span of releases that load alike. json, jsonl, csv and parquet have more columns, such as the names of all rules that
    changed.

    Example: exhume releases --output json
    """
    from exhume.cli.render import render
    from exhume.replay.release_table import release_table

    render(release_table(), output=output, output_file=output_file, csv_raw=csv_raw, columns=_SHOWN)
