"""`exhume releases`."""

from __future__ import annotations

from exhume.cli.options import CsvRaw, Output, OutputFile, OutputOption


def releases_command(output: OutputOption = Output.table, output_file: OutputFile = None, csv_raw: CsvRaw = False) -> None:
    """Show the releases that exhume can replay, and how their loads differ.

    A row is a span of releases. json, jsonl, csv and parquet have a row for each span that loads alike to the last patch, and more
    columns, such as the names of all rules that changed.

    Example: exhume releases --output json
    """
    from exhume.cli.render import render
    from exhume.replay.release_table import release_spans, release_table

    answer = release_spans() if output is Output.table else release_table()
    render(answer, output=output, output_file=output_file, csv_raw=csv_raw)
