"""`exhume history`."""

from __future__ import annotations

from typing import Annotated

import typer

from exhume.cli.options import CsvRaw, EvidencePaths, Group, Output, OutputFile, OutputOption, Partition, TempDir, Topic

_SHOWN = (
    "offsets_partition",
    "record_offset",
    "timestamp_ms",
    "type",
    "topic",
    "partition",
    "is_tombstone",
    "committed_offset",
    "committed_offset_delta",
    "fate",
    "ended_by_record_offset",
    "member_id",
    "generation",
    "group_epoch",
    "owner_member_id",
    "committer",
    "committer_confidence",
    "transaction_outcome",
)


def history_command(
    paths: EvidencePaths,
    group: Group,
    topic: Topic = None,
    partition: Partition = None,
    release: Annotated[
        str | None,
        typer.Option("--release", metavar="R", help="The Kafka release whose rules decide which records count.", show_default="the newest"),
    ] = None,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Show the history of a group or of one key, record by record.

    Each record in the log: whether it counts at the end, or which record superseded or deleted it, the outcome of its transaction, the
    owner of the partition at each commit, and who can have committed. No record names its author.

    Example: exhume history data/ --group billing --topic orders --partition 3
    """
    from exhume.cli.groups import the_one
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell

    refuse_unfit(None, output=output, output_file=output_file, evidence=paths)
    with opened(paths, temp_dir=temp_dir, groups=[group]) as evidence:
        group = the_one(evidence, group)
        answer = evidence.history(group, topic=topic, partition=partition, release=release)
        render(answer, output=output, output_file=output_file, csv_raw=csv_raw, columns=_SHOWN, evidence=paths)
        tell(evidence.findings)
