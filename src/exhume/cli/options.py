"""What many commands share: their arguments and options, declared once. Imports nothing heavy, so that `--help` stays quick."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from exhume.cli.moments import parse_moment
from exhume.durations import parse_duration
from exhume.errors import RequestError


class Output(StrEnum):
    """How an answer is written: `table` for people, the others for programs."""

    table = "table"
    json = "json"
    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"


class ClockOption(StrEnum):
    """Which time of a record counts: when it was appended, or for offset commits the commit timestamp inside."""

    append = "append"
    commit = "commit"


class Leftover(StrEnum):
    """What a broker left lying about and would not read: segment files by their suffix, then partition directories by theirs."""

    deleted = "deleted"
    swap = "swap"
    cleaned = "cleaned"
    delete = "delete"
    future = "future"
    stray = "stray"


EvidencePaths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        show_default=False,
        help="Data directories, partition directories, segment files, or archives of them; s3://, gs:// and hdfs:// URIs too.",
    ),
]
TempDir = Annotated[
    Path | None,
    typer.Option(
        "--temp-dir",
        metavar="DIR",
        help="Where archives are unpacked, and what URIs name is kept while it is read.",
        show_default="the system's",
    ),
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

OutputOption = Annotated[Output, typer.Option("--output", help="How to write the answer.")]
OutputFile = Annotated[
    Path | None,
    typer.Option("--output-file", metavar="FILE", help="Write there instead of standard output.", show_default=False),
]
CsvRaw = Annotated[
    bool,
    typer.Option("--csv-raw", help="CSV cells as they are: formulas not disarmed, control characters not shown."),
]

FromOffset = Annotated[
    int | None,
    typer.Option("--from-offset", min=0, metavar="N", help="From this record offset on.", show_default=False),
]
ToOffset = Annotated[
    int | None,
    typer.Option("--to-offset", min=0, metavar="N", help="Up to and with this record offset.", show_default=False),
]
FromTime = Annotated[
    int | None,
    typer.Option(
        "--from-time",
        parser=parse_moment,
        metavar="TIME",
        help="From this moment on: ISO 8601 (no zone: UTC) or epoch milliseconds.",
        show_default=False,
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
    ),
]


def typed_name(text: str) -> str:
    """A name from the command line as the decoders read one: bytes that are no UTF-8 become U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


AtOffset = Annotated[
    list[str] | None,
    typer.Option(
        "--at-offset",
        metavar="P:N",
        help="As of record offset N of offsets partition P, N included; N alone where there is one partition only. Repeatable.",
        show_default=False,
    ),
]
AtTime = Annotated[
    int | None,
    typer.Option(
        "--at-time",
        parser=parse_moment,
        metavar="TIME",
        help="As of this moment: ISO 8601 (no zone: UTC) or epoch milliseconds.",
        show_default=False,
    ),
]
WhichClock = Annotated[
    ClockOption | None,
    typer.Option("--clock", help="The time of a record: its append time, or the commit timestamp inside commits.", show_default="append"),
]


def parse_retention(text: str) -> int:
    """A retention in milliseconds, from `7d`, `168h`, `10080m`, or the milliseconds themselves.

    Raises:
        RequestError: none of these.
    """
    retention_ms = parse_duration(text)
    if retention_ms is None:
        raise RequestError(
            f"{text!r} is no length of time", remedy="Write days, hours, minutes or milliseconds, such as 7d, 168h or 10080m"
        )
    return retention_ms


Now = Annotated[
    int | None,
    typer.Option(
        "--now", parser=parse_moment, metavar="TIME", help="The time to ask for, as --at-time of state.", show_default="this moment"
    ),
]
Retention = Annotated[
    int | None,
    typer.Option(
        "--retention",
        parser=parse_retention,
        metavar="TIME",
        help="offsets.retention.minutes of the broker: 7d, 168h, 10080m, or milliseconds.",
        show_default="that of the release",
    ),
]
Release = Annotated[
    str | None,
    typer.Option("--release", metavar="R", help="The Kafka release whose rules count.", show_default="the newest"),
]
LoadRelease = Annotated[
    str | None,
    typer.Option("--release", metavar="R", help="The Kafka release whose coordinator loads the log.", show_default="the newest"),
]
TopicNamesFile = Annotated[
    Path | None,
    typer.Option("--topics", metavar="FILE", help="Names of topic ids: CSV topic,topic_id,partitions[,racks].", show_default=False),
]


def record_offsets(texts: list[str] | None, option: str) -> int | dict[int, int] | None:
    """Record offsets by offsets partition, from `P:N` each, or the one that stands alone; None where there is none.

    Raises:
        RequestError: neither of the two, or two offsets for one partition; names the option.
    """
    if not texts:
        return None
    remedy = f"Write {option} P:N once for each offsets partition, such as {option} 7:1200, or {option} N where there is only one"
    if len(texts) == 1 and texts[0].isascii() and texts[0].isdigit():
        return int(texts[0])
    by_partition: dict[int, int] = {}
    for text in texts:
        match = re.fullmatch(r"([0-9]{1,10}):([0-9]{1,19})", text)
        if match is None or int(match[1]) in by_partition:
            what = "is no record offset of a partition" if match is None else "is the second one of this partition"
            raise RequestError(f"{option} {text!r} {what}", remedy=remedy)
        by_partition[int(match[1])] = int(match[2])
    return by_partition


Groups = Annotated[
    list[str] | None,
    typer.Option("--group", parser=typed_name, metavar="GROUP", help="Only this group. Repeatable.", show_default=False),
]
Group = Annotated[str, typer.Option("--group", parser=typed_name, metavar="GROUP", help="The group.", show_default=False)]
Topic = Annotated[
    str | None,
    typer.Option("--topic", parser=typed_name, metavar="TOPIC", help="Only commits for this topic.", show_default=False),
]
Partition = Annotated[
    int | None,
    typer.Option("--partition", min=0, metavar="N", help="Only commits for this partition of a topic.", show_default=False),
]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", parser=typed_name, metavar="TOPIC", help="Only this topic. Repeatable.", show_default=False),
]
Partitions = Annotated[
    list[int] | None,
    typer.Option("--partition", min=0, metavar="N", help="Only this partition of a topic. Repeatable.", show_default=False),
]
OffsetsPartitions = Annotated[
    list[int] | None,
    typer.Option(
        "--offsets-partition",
        min=0,
        metavar="N",
        help="Only this partition of __consumer_offsets. Repeatable.",
        show_default=False,
    ),
]
RecordTypes = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", help="Only this record type, by name or number. Repeatable.", show_default=False),
]
