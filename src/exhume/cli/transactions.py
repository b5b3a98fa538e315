"""`exhume transactions`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from exhume.cli.notes import note
from exhume.cli.options import CsvRaw, EvidencePaths, NoVerify, Output, OutputFile, OutputOption, TempDir, parse_retention
from exhume.durations import DEFAULT_MAX_TIMEOUT_MS


class TransactionsTable(StrEnum):
    """The table to show: transactions, or the last stable offset of each partition."""

    transactions = "transactions"
    partitions = "partitions"


_SHOWN = {
    TransactionsTable.transactions: (
        "replica",
        "offsets_partition",
        "producer_id",
        "producer_epoch",
        "outcome",
        "is_late",
        "duration_ms",
        "first_record_offset",
        "first_timestamp_ms",
        "marker_record_offset",
        "staged",
        "held_up_bytes",
    ),
    TransactionsTable.partitions: (
        "replica",
        "offsets_partition",
        "last_stable_offset",
        "end_offset",
        "open_transactions",
        "late_transactions",
        "finished_transactions",
        "held_up_bytes",
        "newest_timestamp_ms",
    ),
}


def transactions_command(
    paths: EvidencePaths,
    with_finished: Annotated[bool, typer.Option("--all", help="Also show finished transactions, with their outcome.")] = False,
    table: Annotated[
        TransactionsTable, typer.Option("--table", help="Transactions, or the last stable offset of each partition.")
    ] = TransactionsTable.transactions,
    max_timeout: Annotated[
        int | None,
        typer.Option(
            "--max-timeout",
            parser=parse_retention,
            metavar="TIME",
            help="transaction.max.timeout.ms of the brokers: 15m, 1h, or milliseconds.",
            show_default="15m",
        ),
    ] = None,
    no_verify: NoVerify = False,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Show open transactions, and the offsets and records that they block.

    Their start, their idle time, the offsets that are not stable because of them, and the part of the log that neither the cleaner nor a
    read_committed consumer can pass. A late transaction is one that its coordinator should have aborted.

    Example: exhume transactions data/ --all
    """
    from exhume.analysis.transactions import transactions_sentence
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell

    refuse_unfit(None, output=output, output_file=output_file, evidence=paths)
    with opened(paths, temp_dir=temp_dir, verify=not no_verify) as topic:
        found = topic.transactions(
            max_timeout_ms=DEFAULT_MAX_TIMEOUT_MS if max_timeout is None else max_timeout, with_finished=with_finished
        )
        answer = found.table if table is TransactionsTable.transactions else found.partitions
        render(answer, output=output, output_file=output_file, csv_raw=csv_raw, columns=_SHOWN[table], evidence=paths)
        if output is Output.table:
            note(transactions_sentence(found))
        tell(topic.findings)
