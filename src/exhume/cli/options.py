"""What many commands share: their arguments and options, declared once. Imports nothing heavy, so that `--help` stays quick."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from exhume.cli.moments import parse_moment


class Output(StrEnum):
    """How an answer is written: `table` for people, the others for programs."""

    table = "table"
    json = "json"
    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"


class Leftover(StrEnum):
    """What a broker left lying about and would not read: segment files by their suffix, then partition directories by theirs."""

    deleted = "deleted"
    swap = "swap"
    cleaned = "cleaned"
    delete = "delete"
    future = "future"
    stray = "stray"


_RANGE = "Range"
_FILTER = "Filters"
_OUTPUT = "Output"

EvidencePath = Annotated[
    Path,
    typer.Argument(metavar="PATH", show_default=False, help="Data directory, partition directory, segment file, or an archive of them."),
]
EvidencePaths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH", show_default=False, help="Data directories, partition directories, segment files, or archives of them."),
]
TempDir = Annotated[
    Path | None,
    typer.Option("--temp-dir", metavar="DIR", help="Where archives are spilled that do not fit in memory.", show_default="the system's"),
]
Include = Annotated[
    list[Leftover] | None,
    typer.Option(
        "--include",
        metavar="KIND",
        help="Read leftovers of this kind too: files (deleted, swap, cleaned), directories (delete, future, stray). Repeatable.",
        show_default=False,
    ),
]

NoVerify = Annotated[bool, typer.Option("--no-verify", help="Do not check the checksums of batches.")]

OutputOption = Annotated[Output, typer.Option("--output", help="How to write the answer.", rich_help_panel=_OUTPUT)]
OutputFile = Annotated[
    Path | None,
    typer.Option(
        "--output-file", metavar="FILE", help="Write there instead of standard output.", show_default=False, rich_help_panel=_OUTPUT
    ),
]
CsvRaw = Annotated[
    bool,
    typer.Option("--csv-raw", help="CSV cells as they are: formulas not disarmed, control characters not shown.", rich_help_panel=_OUTPUT),
]

FromOffset = Annotated[
    int | None,
    typer.Option("--from-offset", min=0, metavar="N", help="From this record offset on.", show_default=False, rich_help_panel=_RANGE),
]
ToOffset = Annotated[
    int | None,
    typer.Option("--to-offset", min=0, metavar="N", help="Up to and with this record offset.", show_default=False, rich_help_panel=_RANGE),
]
FromTime = Annotated[
    int | None,
    typer.Option(
        "--from-time",
        parser=parse_moment,
        metavar="TIME",
        help="From this moment on: ISO 8601 (no zone: UTC) or epoch milliseconds.",
        show_default=False,
        rich_help_panel=_RANGE,
    ),
]
ToTime = Annotated[
    int | None,
    typer.Option(
        "--to-time",
        parser=parse_moment,
        metavar="TIME",
        help="Up to and with this moment.",
        show_default=False,
        rich_help_panel=_RANGE,
    ),
]

Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="GROUP", help="Only this group. Repeatable.", show_default=False, rich_help_panel=_FILTER),
]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="TOPIC", help="Only this topic. Repeatable.", show_default=False, rich_help_panel=_FILTER),
]
Partitions = Annotated[
    list[int] | None,
    typer.Option(
        "--partition", min=0, metavar="N", help="Only this partition of a topic. Repeatable.", show_default=False, rich_help_panel=_FILTER
    ),
]
OffsetsPartitions = Annotated[
    list[int] | None,
    typer.Option(
        "--offsets-partition",
        min=0,
        metavar="N",
        help="Only this partition of __consumer_offsets. Repeatable.",
        show_default=False,
        rich_help_panel=_FILTER,
    ),
]
RecordTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--type", metavar="TYPE", help="Only this record type, by name or number. Repeatable.", show_default=False, rich_help_panel=_FILTER
    ),
]
