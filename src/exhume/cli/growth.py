"""`exhume growth`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from exhume.cli.notes import note
from exhume.cli.options import CsvRaw, EvidencePaths, NoVerify, Now, Output, OutputFile, OutputOption, TempDir

if TYPE_CHECKING:
    from exhume.analysis.growth import GrowthBy


class By(StrEnum):
    """The key to count by."""

    GROUP = "group"
    TOPIC = "topic"
    TYPE = "type"
    HOUR = "hour"
    PARTITION = "partition"


_MEASURES = (
    "records",
    "size_bytes",
    "share",
    "keys",
    "live_bytes",
    "superseded_bytes",
    "tombstone_bytes",
    "freeable_bytes",
    "last_timestamp_ms",
)
_BY: dict[By, GrowthBy] = {By.GROUP: "group", By.TOPIC: "topic", By.TYPE: "type", By.HOUR: "hour", By.PARTITION: "group"}
_LABELS = {By.GROUP: "group", By.TOPIC: "topic", By.TYPE: "type", By.HOUR: "hour_at_ms"}
_OF_PARTITIONS = (
    "replica",
    "offsets_partition",
    "segments",
    "size_bytes",
    "live_bytes",
    "superseded_bytes",
    "freeable_bytes",
    "first_dirty_offset",
    "first_uncleanable_offset",
    "stopped_by",
    "dirty_ratio",
)


def growth_command(
    paths: EvidencePaths,
    by: Annotated[
        By, typer.Option("--by", help="Count by this key; partition shows how far the cleaner may go in each offsets partition.")
    ] = By.GROUP,
    now: Now = None,
    no_verify: NoVerify = False,
    temp_dir: TempDir = None,
    output: OutputOption = Output.table,
    output_file: OutputFile = None,
    csv_raw: CsvRaw = False,
) -> None:
    """Show which groups or topics fill the log, and what compaction would free.

    Records and bytes on disk by group, topic, record type or hour: live, superseded by a later record of their key, tombstones, and
    freeable by the cleaner now. The cleaner cannot free the active segment, nor records after the start of an open transaction.

    Example: exhume growth data/ --by topic
    """
    from exhume.analysis.growth import growth_sentence
    from exhume.cli.render import refuse_unfit, render
    from exhume.cli.run import opened, tell

    refuse_unfit(None, output=output, output_file=output_file, evidence=paths)
    with opened(paths, temp_dir=temp_dir, verify=not no_verify) as topic:
        growth = topic.growth(_BY[by], now_ms=now)
        answer = growth.partitions if by is By.PARTITION else growth.table
        columns = _OF_PARTITIONS if by is By.PARTITION else ("replica", "offsets_partition", _LABELS[by], *_MEASURES)
        render(answer, output=output, output_file=output_file, csv_raw=csv_raw, columns=columns, evidence=paths)
        if output is Output.table:
            note(growth_sentence(growth))
        tell(topic.findings)
