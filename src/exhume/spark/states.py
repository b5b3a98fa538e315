"""States on Spark, at one moment and at many."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from exhume.analysis.completeness import COMPLETENESS
from exhume.analysis.grading import grade_groups
from exhume.codecs.log_directory import Evidence
from exhume.codecs.uris import PathOrUri
from exhume.errors import RequestError
from exhume.findings import Findings
from exhume.moments import Clock
from exhume.replay.moment import Moment, moment
from exhume.replay.releases import newer_release_findings, profile_for
from exhume.replay.snapshot_times import snapshot_times
from exhume.replay.spark.graded import Grading
from exhume.replay.spark.loads import load_logs
from exhume.replay.spark.request import Request
from exhume.replay.spark.state import AT_TIME, StateFrames, all_tables
from exhume.replay.state import NAMING_TABLES
from exhume.replay.topic_names import names_beside
from exhume.spark.options import StateKeywords, StateOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def reconstruct(
    spark: SparkSession,
    places: PathOrUri | Sequence[PathOrUri] | Evidence,
    *,
    tables: Collection[str] | None = None,
    at_offset: int | Mapping[int, int] | None = None,
    at_time_ms: int | None = None,
    clock: Clock | None = None,
    strict: bool = False,
    **options: Unpack[StateKeywords],
) -> StateFrames:
    """Return the state of a coordinator after loading these logs, as DataFrames by table name.

    The arguments of `OffsetsTopic.state` have the same meaning here; `options` are the fields of `options.StateOptions`. `tables` are the
    tables to make (default: all). Damage never fails a job: it is in `findings`, and with `strict` it raises an error at the end.

    Raises:
        RequestError: no such release or table, or a moment that these logs cannot have.
        EvidenceError: the places have no partition of the offsets topic, or it cannot be read; or damage, with `strict`.
    """
    wanted, load = _known_tables(tables), StateOptions(**options)
    evidence = load.evidence(places)
    at = moment(evidence.offsets_partitions, at_offset=at_offset, at_time_ms=at_time_ms, clock=clock)
    state = _loaded(spark, evidence, load, load.request(wanted, [at]))
    if strict:
        state.refuse_damage()
    return state


def completeness(state: StateFrames) -> DataFrame:
    """Grade for each group how much of the state at its moment the logs still show, as `completeness.COMPLETENESS`.

    Raises:
        RequestError: the state lacks a table that is needed, or has several moments.
    """
    missing = [name for name in (*NAMING_TABLES, "loads") if name not in state]
    if missing or AT_TIME in state["groups"].columns:
        raise RequestError("a grade needs these tables, at one moment", remedy=f"Ask for {', '.join((*NAMING_TABLES, 'loads'))} too")
    return state.graded(Grading(COMPLETENESS, grade_groups))


def snapshots(
    spark: SparkSession,
    places: PathOrUri | Sequence[PathOrUri],
    *,
    every: str | int = "1h",
    from_time_ms: int | None = None,
    to_time_ms: int | None = None,
    tables: Collection[str] = ("offsets",),
    clock: Clock = "append",
    **options: Unpack[StateKeywords],
) -> StateFrames:
    """Return the state at many moments in one pass over the logs, with the step `every` (`1h`, `15m`, milliseconds), both ends included.

    Without `from_time_ms` it begins with the first whole step after the first batch, without `to_time_ms` it ends after the last one.

    Rows of `tables` are those of `reconstruct(…, at_time_ms=…)` for each moment; the first column, `at_time_ms`, is the moment. `options`
    are those of `reconstruct`.

    Raises:
        RequestError: no such release, table or step.
        EvidenceError: the places have no partition of the offsets topic, or it cannot be read.
    """
    wanted, load = _known_tables(tables), StateOptions(**options)
    evidence = load.evidence(places)
    profile_for(load.release)
    times_ms = snapshot_times(evidence.partitions, every, from_time_ms, to_time_ms)
    request = load.request(wanted, [Moment(time_ms=time_ms, clock=clock) for time_ms in times_ms])
    return _loaded(spark, evidence, load, request, has_moments=True)


def _loaded(spark: SparkSession, evidence: Evidence, load: StateOptions, request: Request, *, has_moments: bool = False) -> StateFrames:
    names = names_beside(evidence.log_directories, load.topics_file)
    findings = Findings([*evidence.findings, *newer_release_findings([load.release])])
    loaded = load_logs(spark, evidence.log_directories, request)
    return StateFrames(spark, loaded, request, names=names, findings=findings, groups=load.groups, has_moments=has_moments)


def _known_tables(tables: Collection[str] | None) -> list[str]:
    known = all_tables()
    if tables is None:
        return known
    for name in tables:
        if name not in known:
            raise RequestError(f"no table {name!r}", remedy=f"Choose from {', '.join(known)}")
    return list(tables)
