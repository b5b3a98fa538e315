"""Options of `exhume diagnose` and `exhume export`: which detectors run, and their inputs besides the logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exhume.cli.options import parse_retention

if TYPE_CHECKING:
    from exhume.analysis.detectors import Inputs

Codes = Annotated[
    list[str] | None,
    typer.Option("--code", metavar="CODE", help="Only this detector, such as IC-02. Repeatable.", show_default="all"),
]
EndOffsets = Annotated[
    Path | None,
    typer.Option(
        "--end-offsets",
        metavar="FILE",
        help="The latest offsets of data topics, as kafka-get-offsets.sh prints them: topic:partition:offset.",
        show_default=False,
    ),
]
StartOffsets = Annotated[
    Path | None,
    typer.Option(
        "--start-offsets",
        metavar="FILE",
        help="The earliest offsets of data topics, as kafka-get-offsets.sh prints them: topic:partition:offset.",
        show_default=False,
    ),
]
TopicsFile = Annotated[
    Path | None,
    typer.Option("--topics", metavar="FILE", help="CSV: topic,topic_id,partitions[,racks].", show_default=False),
]
Live = Annotated[
    Path | None,
    typer.Option("--live", metavar="FILE", help="The output of kafka-consumer-groups.sh --describe --all-groups.", show_default=False),
]
Retention = Annotated[
    int | None,
    typer.Option(
        "--retention",
        parser=parse_retention,
        metavar="TIME",
        help="offsets.retention.minutes of the broker: 7d, 168h, 10080m, or milliseconds.",
        show_default="the retention that most removals fit",
    ),
]
WrittenBy = Annotated[
    str | None,
    typer.Option("--release", metavar="R", help="The Kafka release of the brokers that wrote the logs.", show_default="not known"),
]
OffsetsPartitionCount = Annotated[
    int | None,
    typer.Option(
        "--offsets-partitions", min=1, metavar="N", help="The number of partitions of __consumer_offsets.", show_default="unknown"
    ),
]


def detector_inputs(
    end_offsets: Path | None,
    start_offsets: Path | None,
    topics_file: Path | None,
    live: Path | None,
    retention_ms: int | None,
    offsets_partitions: int | None,
    release: str | None = None,
) -> Inputs:
    """The inputs of detectors from these options.

    Raises:
        RequestError: exhume cannot read a file, or a line has another format; names file and line. Or there is no such release.
    """
    from exhume.analysis.detectors import Inputs
    from exhume.analysis.detectors.inputs import read_live_file, read_offsets_file
    from exhume.replay.releases import profile_for
    from exhume.replay.topic_names import read_topics_file

    profile_for(release)
    return Inputs(
        end_offsets=None if end_offsets is None else read_offsets_file(end_offsets),
        start_offsets=None if start_offsets is None else read_offsets_file(start_offsets),
        topics=None if topics_file is None else read_topics_file(topics_file),
        live=None if live is None else read_live_file(live),
        retention_ms=retention_ms,
        release=release,
        offsets_partitions=offsets_partitions,
    )
