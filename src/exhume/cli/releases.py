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
    """Show the releases there are rules for, and what differs.

    A row is a span of releases that load alike. More columns, the names of all rules that changed among them, are in json, jsonl, csv and
    parquet.

    Example: exhume releases --output json
    """
    from exhume.cli.render import render
    from exhume.replay.release_table import release_table

    render(release_table(), output=output, output_file=output_file, csv_raw=csv_raw, columns=_SHOWN)
