"""Arguments and options that several commands share. This module imports no heavy package, so that `--help` stays fast."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from exhume.cli.panels import LOADING, OUTPUT
from exhume.durations import parse_duration
from exhume.errors import RequestError
from exhume.moments import Clock, parse_moment


class Output(StrEnum):
    """The format of an answer: `table` or `record` for people, the others for programs."""

    table = "table"
    record = "record"
    json = "json"
    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"


#: The formats for people. The others have all columns, and times as numbers.
PEOPLE = (Output.table, Output.record)


class PictureOutput(StrEnum):
    """The format of an answer that can also be a picture, as SVG or as a page in HTML."""

    table = "table"
    record = "record"
    json = "json"
    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"
    svg = "svg"
    html = "html"

    @property
    def is_picture(self) -> bool:
        """True for a picture."""
        return self in {PictureOutput.svg, PictureOutput.html}

    @property
    def of_rows(self) -> Output:
        """The format for the rows of the answer; `table` for a picture."""
        return Output.table if self.is_picture else Output(self.value)


class ClockOption(StrEnum):
    """The time of a record: its append time, or the commit timestamp inside an offset commit."""

    append = "append"
    commit = "commit"


class Leftover(StrEnum):
    """Files and directories that a broker does not read: segment files by suffix, then partition directories by suffix."""

    deleted = "deleted"
    swap = "swap"
    cleaned = "cleaned"
    delete = "delete"
    future = "future"
    stray = "stray"


EvidencePaths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...",
        show_default=False,
        help="Data directories, partition directories, segment files, or archives of them; s3://, gs://, hdfs:// and kafka:// URIs; or -.",
    ),
]
TempDir = Annotated[
    Path | None,
    typer.Option(
        "--temp-dir",
        metavar="DIR",
        help="The directory for unpacked archives and fetched segments.",
        rich_help_panel=LOADING,
        show_default="the system's",
    ),
]
Include = Annotated[
    list[Leftover] | None,
    typer.Option(
        "--include",
        metavar="KIND",
        help="Also read files (deleted, swap, cleaned) or directories (delete, future, stray) of this kind. Repeatable.",
        show_default=False,
    ),
]

NoVerify = Annotated[bool, typer.Option("--no-verify", help="Do not check the checksums of batches.", rich_help_panel=LOADING)]

OutputOption = Annotated[Output, typer.Option("--output", "-o", help="The format of the answer.", rich_help_panel=OUTPUT)]
PictureOutputOption = Annotated[
    PictureOutput,
    typer.Option("--output", "-o", help="The format of the answer; svg and html are a picture.", rich_help_panel=OUTPUT),
]
OutputFile = Annotated[
    Path | None,
    typer.Option(
        "--output-file",
        metavar="FILE",
        help="Write the answer to this file instead of standard output.",
        rich_help_panel=OUTPUT,
        show_default=False,
    ),
]
CsvRaw = Annotated[
    bool,
    typer.Option(
        "--csv-raw",
        help="Write CSV cells unchanged: without a quote before formulas, without escapes for control characters.",
        rich_help_panel=OUTPUT,
    ),
]

FromOffset = Annotated[
    int | None,
    typer.Option("--from-offset", min=0, metavar="N", help="From this record offset, inclusive.", show_default=False),
]
ToOffset = Annotated[
    int | None,
    typer.Option("--to-offset", min=0, metavar="N", help="Up to this record offset, inclusive.", show_default=False),
]
FromTime = Annotated[
    int | None,
    typer.Option(
        "--from-time",
        parser=parse_moment,
        metavar="TIME",
        help="From this time, inclusive: ISO 8601, -2h, 'yesterday 14:00', or epoch milliseconds.",
        show_default=False,
    ),
]
ToTime = Annotated[
    int | None,
    typer.Option(
        "--to-time",
        parser=parse_moment,
        metavar="TIME",
        help="Up to this time, inclusive.",
        show_default=False,
    ),
]


def typed_name(text: str) -> str:
    """A name from the command line as the decoders read it: bytes that are not UTF-8 become U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


AtOffset = Annotated[
    list[str] | None,
    typer.Option(
        "--at-offset",
        metavar="P:N",
        help="The state after record N of offsets partition P. N alone if the log has one partition. Repeatable.",
        show_default=False,
    ),
]
AtTime = Annotated[
    int | None,
    typer.Option(
        "--at-time",
        parser=parse_moment,
        metavar="TIME",
        help="The state at this time: ISO 8601, -2h, 'yesterday 14:00', or epoch milliseconds.",
        show_default=False,
    ),
]
WhichClock = Annotated[
    ClockOption | None,
    typer.Option("--clock", help="The time of a record: its append time, or the commit timestamp inside commits.", show_default="append"),
]


def parse_retention(text: str) -> int:
    """Parse a retention: `7d`, `168h`, `10080m`, or milliseconds.

    Returns:
        milliseconds.

    Raises:
        RequestError: the text is none of these.
    """
    retention_ms = parse_duration(text)
    if retention_ms is None:
        raise RequestError(
            f"{text!r} is not a duration", remedy="Write weeks, days, hours, minutes or milliseconds, such as 1w, 7d, 1d12h or 10080m"
        )
    return retention_ms


Now = Annotated[
    int | None,
    typer.Option(
        "--now",
        parser=parse_moment,
        metavar="TIME",
        help="Judge expiry and age at this time: ISO 8601, -2h, 'yesterday 14:00', or epoch milliseconds.",
        show_default="now",
    ),
]
Retention = Annotated[
    int | None,
    typer.Option(
        "--retention",
        parser=parse_retention,
        metavar="TIME",
        help="offsets.retention.minutes of the broker: 7d, 1w, 168h, 10080m, or milliseconds.",
        show_default="the default of the release",
    ),
]
Release = Annotated[
    str | None,
    typer.Option("--release", metavar="R", help="The Kafka release whose rules apply.", show_default="the newest"),
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
    """Parse record offsets: `P:N` for each offsets partition, or one `N`.

    Returns:
        a mapping of offsets partition to record offset, or one offset; None without texts.

    Raises:
        RequestError: a text has neither form, or two texts name one partition; names the option.
    """
    if not texts:
        return None
    remedy = f"Write {option} P:N once for each offsets partition, such as {option} 7:1200, or {option} N if the log has only one"
    if len(texts) == 1 and texts[0].isascii() and texts[0].isdigit():
        return int(texts[0])
    by_partition: dict[int, int] = {}
    for text in texts:
        match = re.fullmatch(r"([0-9]{1,10}):([0-9]{1,19})", text)
        if match is None or int(match[1]) in by_partition:
            problem = "is not P:N" if match is None else "names this partition for the second time"
            raise RequestError(f"{option} {text!r} {problem}", remedy=remedy)
        by_partition[int(match[1])] = int(match[2])
    return by_partition


class Moment(TypedDict):
    """The moment of an answer, as the library takes it; the end of the log without a record offset and a time."""

    at_offset: int | dict[int, int] | None
    at_time_ms: int | None
    clock: Clock | None


def chosen_moment(at_offset: list[str] | None, at_time_ms: int | None, clock: ClockOption | None) -> Moment:
    """Parse the options `--at-offset`, `--at-time` and `--clock`."""
    return {
        "at_offset": record_offsets(at_offset, "--at-offset"),
        "at_time_ms": at_time_ms,
        "clock": None if clock is None else clock.value,
    }


def _groups(context: typer.Context, incomplete: str) -> list[str]:
    from exhume.cli.completion import names

    return names(context, "group", incomplete)


def _topics(context: typer.Context, incomplete: str) -> list[str]:
    from exhume.cli.completion import names

    return names(context, "topic", incomplete)


Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        "-g",
        parser=typed_name,
        autocompletion=_groups,
        metavar="GROUP",
        help="Only this group: a name, a glob such as 'pay*', or a,b. Repeatable.",
        show_default=False,
    ),
]
Group = Annotated[
    str, typer.Option("--group", "-g", parser=typed_name, autocompletion=_groups, metavar="GROUP", help="The group.", show_default=False)
]
Topic = Annotated[
    str | None,
    typer.Option(
        "--topic", "-t", parser=typed_name, autocompletion=_topics, metavar="TOPIC", help="Only commits for this topic.", show_default=False
    ),
]
Partition = Annotated[
    int | None,
    typer.Option("--partition", "-p", min=0, metavar="N", help="Only commits for this partition of a topic.", show_default=False),
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", "-t", parser=typed_name, autocompletion=_topics, metavar="TOPIC", help="Only this topic. Repeatable.", show_default=False
    ),
]
Partitions = Annotated[
    list[int] | None,
    typer.Option("--partition", "-p", min=0, metavar="N", help="Only this partition of a topic. Repeatable.", show_default=False),
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
