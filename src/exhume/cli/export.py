"""`exhume export`: a state on Spark, as a directory of Parquet tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exhume import without_pandas
from exhume.cli.detector_options import (
    Codes,
    EndOffsets,
    Live,
    OffsetsPartitionCount,
    Retention,
    StartOffsets,
    TopicsFile,
    detector_inputs,
)
from exhume.cli.options import (
    AtOffset,
    AtTime,
    EvidencePaths,
    Groups,
    Include,
    LoadRelease,
    NoVerify,
    WhichClock,
    chosen_moment,
)
from exhume.errors import RequestError

if TYPE_CHECKING:
    from exhume.spark import StateFrames

_DEFAULT_TABLES = "groups,members,offsets,loads"
_OutputDirectory = Annotated[
    str, typer.Option("--output-dir", metavar="DIR", help="The directory to write; replaces an earlier output of this command.")
]
_Tables = Annotated[
    str,
    typer.Option(
        "--tables",
        metavar="NAME,…",
        help="The tables to write: those of state, summary, rebalances, owners, findings (with findings, detectors run).",
    ),
]
_Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="The Spark master, such as local[*] or spark://host:7077.",
        show_default="that of spark-submit, else local[*]",
    ),
]
_Strict = Annotated[bool, typer.Option("--strict", help="End with an error if damage made the answer partial.")]


def export_command(
    paths: EvidencePaths,
    output_dir: _OutputDirectory,
    tables: _Tables = _DEFAULT_TABLES,
    release: LoadRelease = None,
    at_offset: AtOffset = None,
    at_time: AtTime = None,
    clock: WhichClock = None,
    groups: Groups = None,
    codes: Codes = None,
    end_offsets: EndOffsets = None,
    start_offsets: StartOffsets = None,
    topics_file: TopicsFile = None,
    live: Live = None,
    retention: Retention = None,
    offsets_partitions: OffsetsPartitionCount = None,
    include: Include = None,
    master: _Master = None,
    strict: _Strict = False,
    no_verify: NoVerify = False,
) -> None:
    """Reconstruct the state of large logs on Apache Spark, as Parquet.

    DIR gets a directory for each table, with one directory for each offsets partition, and manifest.json, which lists each segment with its
    digest and the result of its checksums. DIR appears whole, or stays unchanged.

    The command always writes the table findings, with damage and other findings of the load. If --tables names findings, the table also has
    those of exhume diagnose, with the same options (--code to --offsets-partitions). Detectors judge whole logs: they do not run at a
    moment.

    Example: exhume export s3://backup/kafka-1 s3://backup/kafka-2 --output-dir /data/state --tables groups,offsets --release 4.3
    """
    without_pandas.let_in()
    from exhume import spark as on_spark
    from exhume.cli.export_progress import shown_phases
    from exhume.spark.export import check_tables

    wanted = _table_names(tables)
    # Check before a session starts, which takes seconds.
    inputs = detector_inputs(end_offsets, start_offsets, topics_file, live, retention, offsets_partitions)
    check_tables(wanted, at_moment=at_offset is not None or at_time is not None, detector_inputs=inputs, codes=codes or None)
    with _spark_session(master) as session:
        with shown_phases(session) as on_phase:
            state = on_spark.export_tables(
                session,
                paths,
                output_dir,
                tables=wanted,
                release=release,
                **chosen_moment(at_offset, at_time, clock),
                groups=groups or None,
                detector_inputs=inputs,
                codes=codes or None,
                topics_file=topics_file,
                include=[item.value for item in include or ()],
                verify=not no_verify,
                on_phase=on_phase,
            )
        _end(state, strict=strict)


@contextmanager
def _spark_session(master: str | None) -> Iterator[Any]:
    from exhume.replay.spark.session import open_session

    session = open_session("exhume export", master)
    try:
        yield session
    finally:
        session.stop()


def _table_names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise RequestError("no table", remedy=f"Name some, such as --tables {_DEFAULT_TABLES}")
    return names


def _end(state: StateFrames, *, strict: bool) -> None:
    """Print the outcomes of the loads, and end with an error if damage made the answer partial."""
    typer.echo(", ".join(f"{outcome}: {count}" for outcome, count in state.outcomes().items()) or "nothing was loaded", err=True)
    if state.has_damage:
        typer.echo("the answer is partial: see the table findings", err=True)
    if strict:
        state.refuse_damage()
    if state.has_damage:
        raise typer.Exit(1)
