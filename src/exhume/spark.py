"""Offsets topics on Apache Spark, where one machine ends: `pip install 'exhume[spark]'`, PySpark 4.0 or later.

    import exhume.spark

    exhume.spark.register(spark)
    commits = spark.read.format("offsets-topic").option("kind", "offset_commit").load("s3://backups/kafka")

    with exhume.spark.reconstruct(spark, "s3://backup/2026-11-21", release="4.3") as state:
        state["offsets"].where("`group` = 'billing'").show()

Every row is the one that `exhume.open(…)` gives; docs/spark.md says what runs where.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from exhume._version import __version__
from exhume.analysis.completeness import COMPLETENESS, grade_groups
from exhume.analysis.group_lives import GROUP_RECORD_TYPES, group_lives
from exhume.analysis.log_spans import LogSpans, joined, log_spans
from exhume.analysis.ownership import OWNERS
from exhume.analysis.ownership import owners as owners_of
from exhume.analysis.rebalances import REBALANCES
from exhume.analysis.rebalances import rebalances as rebalances_of
from exhume.analysis.summary import GROUP_SUMMARY, summarize_groups
from exhume.codecs.compression import DEFAULT_CAP_BYTES
from exhume.codecs.log_directory import Evidence, discover
from exhume.codecs.record_filter import RecordFilter
from exhume.errors import RequestError
from exhume.findings import Findings
from exhume.replay.broker_log import Stop
from exhume.replay.local import Mode
from exhume.replay.moment import Clock, Moment, moment
from exhume.replay.reading import LoadInputs
from exhume.replay.releases import newer_release_findings, profile_for
from exhume.replay.snapshot_times import snapshot_times
from exhume.replay.spark.graded import NAMING, Grading
from exhume.replay.spark.group_records import GroupRecords, RecordTable
from exhume.replay.spark.group_tables import GroupTable
from exhume.replay.spark.inputs import read_inputs
from exhume.replay.spark.loads import WORTH_STRETCHES_BYTES, Request, load_logs
from exhume.replay.spark.output import OutputDirectory
from exhume.replay.spark.source_options import SourceOptions
from exhume.replay.spark.state import AT_TIME, StateFrames, all_tables
from exhume.replay.topic_names import TopicNames, names_beside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "GROUP_TABLES",
    "RECORD_TABLES",
    "GroupTable",
    "RecordTable",
    "StateFrames",
    "batch",
    "completeness",
    "owners",
    "rebalances",
    "reconstruct",
    "register",
    "snapshots",
    "write_tables",
]

Place = str | PathLike[str]


def register(spark: SparkSession) -> None:
    """Make the format `offsets-topic` known to this session. Options, kinds and schemas: docs/spark.md.

    Filters are pushed down where `spark.sql.python.filterPushdown.enabled` is true when this is called (PySpark 4.1 and later).

    Raises:
        RequestError: no PySpark that knows Python data sources is here.
    """
    try:
        from exhume.replay.spark import data_source
    except ImportError as error:
        raise RequestError(f"PySpark 4.0 or later is missing: {error}", remedy="Install exhume[spark]") from error
    data_source.register(spark)


def reconstruct(
    spark: SparkSession,
    places: Place | Sequence[Place],
    *,
    release: str | None = None,
    mode: Mode = "strict",
    stop: Stop | None = None,
    view: Literal["shown", "held"] = "shown",
    groups: Collection[str] | None = None,
    tables: Collection[str] | None = None,
    topics_file: Place | None = None,
    inputs: LoadInputs | None = None,
    at_offset: int | Mapping[int, int] | None = None,
    at_time_ms: int | None = None,
    clock: Clock | None = None,
    include: Collection[str] = (),
    verify: bool = True,
    cap_bytes: int = DEFAULT_CAP_BYTES,
    filesystem_options: Mapping[str, str] | None = None,
    least_bytes: int = WORTH_STRETCHES_BYTES,
    stretch_bytes: int | None = None,
    strict: bool = False,
) -> StateFrames:
    """What a coordinator of this release (default: the newest known) holds after loading these logs, as DataFrames by table name.

    All that `OffsetsTopic.state` takes means here what it means there. `tables` are those wanted (default: all). Logs of `least_bytes` and
    more are loaded in stretches of about `stretch_bytes`, side by side. Damage never fails a job: it is in `findings`, and `strict`
    makes an error of it at the end.

    Raises:
        RequestError: no such release or table, or a moment that these logs cannot have.
        EvidenceError: nothing of the offsets topic is there, or it cannot be read; or damage, with `strict`.
    """
    wanted = _known_tables(tables)
    evidence = _found(places, include, filesystem_options)
    at = moment(_offsets_partitions(evidence), at_offset=at_offset, at_time_ms=at_time_ms, clock=clock)
    profile = profile_for(release)
    request = Request(
        release=profile.release,
        mode=mode,
        stop=stop,
        view=view,
        inputs=inputs or LoadInputs(),
        moments=[at],
        tables=wanted,
        verify=verify,
        cap_bytes=cap_bytes,
        least_bytes=least_bytes,
        stretch_bytes=stretch_bytes,
    )
    names = names_beside(evidence.log_directories, None if topics_file is None else Path(topics_file))
    findings = Findings([*evidence.findings, *newer_release_findings([release])])
    loaded = load_logs(spark, evidence.log_directories, request)
    state = StateFrames(spark, loaded, request, names=names, findings=findings, groups=groups)
    if strict:
        state.refuse_damage()
    return state


def completeness(state: StateFrames) -> DataFrame:
    """How much the logs still know of the moment of this state: a grade for each group, of `completeness.COMPLETENESS`.

    Raises:
        RequestError: the state lacks a table that is needed, or has several moments.
    """
    missing = [name for name in (*NAMING, "loads") if name not in state]
    if missing or AT_TIME in state["groups"].columns:
        raise RequestError("no grade without these tables at one moment", remedy=f"Ask for {', '.join((*NAMING, 'loads'))} too")
    return state.graded(Grading(COMPLETENESS, grade_groups))


def snapshots(
    spark: SparkSession,
    places: Place | Sequence[Place],
    *,
    every: str | int = "1h",
    from_time_ms: int | None = None,
    to_time_ms: int | None = None,
    tables: Collection[str] = ("offsets",),
    release: str | None = None,
    mode: Mode = "strict",
    stop: Stop | None = None,
    view: Literal["shown", "held"] = "shown",
    groups: Collection[str] | None = None,
    topics_file: Place | None = None,
    inputs: LoadInputs | None = None,
    clock: Clock = "append",
    include: Collection[str] = (),
    verify: bool = True,
    cap_bytes: int = DEFAULT_CAP_BYTES,
    filesystem_options: Mapping[str, str] | None = None,
    least_bytes: int = WORTH_STRETCHES_BYTES,
    stretch_bytes: int | None = None,
) -> StateFrames:
    """The state at many moments, in one pass over the logs: `every` so often (`1h`, `15m`, milliseconds), both ends included. Without
    `from_time_ms` it begins with the first whole step behind the first batch, without `to_time_ms` it ends behind the last one.

    Rows of `tables` are those of `reconstruct(…, at_time_ms=…)` for each moment; the column `at_time_ms` in front says for which.

    Raises:
        RequestError: no such release, table or step.
        EvidenceError: nothing of the offsets topic is there, or it cannot be read.
    """
    wanted = _known_tables(tables)
    evidence = _found(places, include, filesystem_options)
    profile = profile_for(release)
    times_ms = snapshot_times(evidence.partitions, every, from_time_ms, to_time_ms)
    request = Request(
        release=profile.release,
        mode=mode,
        stop=stop,
        view=view,
        inputs=inputs or LoadInputs(),
        moments=[Moment(time_ms=time_ms, clock=clock) for time_ms in times_ms],
        tables=wanted,
        verify=verify,
        cap_bytes=cap_bytes,
        least_bytes=least_bytes,
        stretch_bytes=stretch_bytes,
    )
    names = names_beside(evidence.log_directories, None if topics_file is None else Path(topics_file))
    findings = Findings([*evidence.findings, *newer_release_findings([release])])
    loaded = load_logs(spark, evidence.log_directories, request)
    return StateFrames(spark, loaded, request, names=names, findings=findings, groups=groups, has_moments=True)


def _found(places: Place | Sequence[Place], include: Collection[str], filesystem_options: Mapping[str, str] | None) -> Evidence:
    listed = [places] if isinstance(places, str | PathLike) else list(places)
    return discover(
        [place if isinstance(place, Path) else str(place) for place in listed],
        include=frozenset(include),
        filesystem_options=filesystem_options,
    )


def _offsets_partitions(evidence: Evidence) -> list[int | None]:
    return [partition.offsets_partition for partition in evidence.partitions if any(file.is_read for file in partition.segments)]


def _known_tables(tables: Collection[str] | None) -> list[str]:
    known = all_tables()
    if tables is None:
        return known
    for name in tables:
        if name not in known:
            raise RequestError(f"no table {name!r}", remedy=f"Choose of {', '.join(known)}")
    return list(tables)


#: Tables that `write_tables` knows besides those of the state: made of each group by itself. Others can be added.
GROUP_TABLES: dict[str, GroupTable] = {
    "summary": GroupTable(GROUP_SUMMARY, ("groups", "members", "assignments", "offsets", "pending_offsets"), summarize_groups),
}


def _rebalances(records: Iterable[pa.RecordBatch], names: TopicNames, spans: LogSpans) -> pa.Table:
    return rebalances_of(group_lives(records, names), spans)


def _owners(records: Iterable[pa.RecordBatch], names: TopicNames, spans: LogSpans) -> pa.Table:
    return owners_of(group_lives(records, names), spans)


#: Tables that `write_tables` knows besides: made of the group records of each group, over the whole of a log. Others can be added.
RECORD_TABLES: dict[str, RecordTable] = {
    "rebalances": RecordTable(REBALANCES, _rebalances),
    "owners": RecordTable(OWNERS, _owners),
}


def rebalances(
    spark: SparkSession,
    places: Place | Sequence[Place],
    *,
    groups: Collection[str] | None = None,
    include: Collection[str] = (),
    verify: bool = True,
    cap_bytes: int = DEFAULT_CAP_BYTES,
    filesystem_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The generations and epochs of these groups (default: all), with the rows of `rebalances.REBALANCES`, in no order.

    Raises:
        EvidenceError: nothing of the offsets topic is there, or it cannot be read.
    """
    evidence = _found(places, include, filesystem_options)
    return _group_records(spark, evidence, groups, verify, cap_bytes).table(RECORD_TABLES["rebalances"])


def owners(
    spark: SparkSession,
    places: Place | Sequence[Place],
    *,
    groups: Collection[str] | None = None,
    include: Collection[str] = (),
    verify: bool = True,
    cap_bytes: int = DEFAULT_CAP_BYTES,
    filesystem_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Who had which partition when, in these groups (default: all), with the rows of `ownership.OWNERS`, in no order.

    Raises:
        EvidenceError: nothing of the offsets topic is there, or it cannot be read.
    """
    evidence = _found(places, include, filesystem_options)
    return _group_records(spark, evidence, groups, verify, cap_bytes).table(RECORD_TABLES["owners"])


def _group_records(spark: SparkSession, evidence: Evidence, groups: Collection[str] | None, verify: bool, cap_bytes: int) -> GroupRecords:
    def names() -> TopicNames:
        """As `OffsetsTopic` learns them: by a load that goes on over everything."""
        request = Request(
            release=profile_for(None).release,
            mode="lenient",
            stop=None,
            view="shown",
            inputs=LoadInputs(),
            moments=[None],
            # Names of topics come with it.
            tables=["assignments"],
            verify=verify,
            cap_bytes=cap_bytes,
            least_bytes=WORTH_STRETCHES_BYTES,
            stretch_bytes=None,
        )
        loaded = load_logs(spark, evidence.log_directories, request)
        with StateFrames(spark, loaded, request, names=names_beside(evidence.log_directories), findings=Findings()) as state:
            return state.topic_names

    options = SourceOptions(
        kind="records", of="records", places=(), wanted=RecordFilter(groups=groups), filesystem_options={}, verify=verify
    )
    return GroupRecords(
        spark,
        evidence,
        options,
        cap_bytes,
        GROUP_RECORD_TYPES,
        [name for name in GROUP_RECORD_TYPES if name != "group_metadata"],
        log_spans,
        joined,
        names,
    )


def write_tables(state: StateFrames, evidence: Evidence, output_dir: str, tables: Sequence[str]) -> dict[str, Any]:
    """Write these tables of a state as Parquet, with a manifest of all that was read: what comes back.

    `output_dir` then has `NAME/offsets_partition=N/*.parquet` for each table, and `manifest.json`. It is written aside and put in its place
    at the end: whoever looks sees what was there before, or all of this.

    Raises:
        RequestError: no such table, or a directory that is no output of this function.
    """
    for name in tables:
        if name not in _written_tables():
            raise RequestError(f"no table {name!r}", remedy=f"Choose of {', '.join(_written_tables())}")
        if name in RECORD_TABLES and state.moment is not None:
            raise RequestError(f"{name} at a moment", remedy="They are told of whole logs: leave out the moment, and filter the rows")
    asked = state.request
    records = _group_records(state.spark, evidence, state.groups, asked.verify, asked.cap_bytes)
    output = OutputDirectory(state.spark, output_dir)
    try:
        for name in tables:
            if name in RECORD_TABLES:
                output.write(name, records.table(RECORD_TABLES[name]))
            else:
                output.write(name, state.of_groups(GROUP_TABLES[name]) if name in GROUP_TABLES else state[name])
        manifest = {
            "exhume": __version__,
            "spark": state.spark.version,
            "python": sys.version.split()[0],
            "release": state.release,
            "mode": state.mode,
            "moment": state.moment,
            "tables": list(tables),
            "is_damaged": state.has_damage,
            "inputs": read_inputs(state.spark, evidence.log_directories),
        }
        output.finish(manifest)
    except BaseException:
        output.abandon()
        raise
    return manifest


def _written_tables() -> list[str]:
    return [*all_tables(), "findings", *GROUP_TABLES, *RECORD_TABLES]


def batch(
    spark: SparkSession,
    places: Place | Sequence[Place],
    output_dir: Place,
    *,
    tables: Sequence[str] = ("groups", "members", "offsets", "loads", "findings"),
    strict: bool = False,
    include: Collection[str] = (),
    filesystem_options: Mapping[str, str] | None = None,
    **options: Any,
) -> StateFrames:
    """`reconstruct` and `write_tables` in one: what `exhume batch` does. `options` are those of `reconstruct`.

    Raises:
        RequestError: as both of them.
        EvidenceError: as `reconstruct`; with `strict`, damage, once everything is written.
    """
    needed = {name for table in tables if table in GROUP_TABLES for name in GROUP_TABLES[table].needs}
    plain = {name for name in tables if name not in GROUP_TABLES and name not in RECORD_TABLES and name != "findings"}
    wanted = [name for name in all_tables() if name in needed | plain | {"loads", "groups"}]
    unknown = sorted(plain - set(all_tables()))
    if unknown:
        raise RequestError(f"no table {unknown[0]!r}", remedy=f"Choose of {', '.join(_written_tables())}")
    state = reconstruct(spark, places, tables=wanted, include=include, filesystem_options=filesystem_options, **options)
    write_tables(state, _found(places, include, filesystem_options), os.fspath(output_dir), tables)
    if strict:
        state.refuse_damage()
    return state
