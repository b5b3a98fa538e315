"""States on Spark, at one moment and at many."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from exhume.analysis.completeness import COMPLETENESS, grade_groups
from exhume.codecs.compression import DEFAULT_CAP_BYTES
from exhume.codecs.log_directory import Evidence
from exhume.errors import RequestError
from exhume.findings import Findings
from exhume.replay.broker_log import Stop
from exhume.replay.moment import Clock, Moment, moment
from exhume.replay.partition_load import Mode, View
from exhume.replay.reading import LoadInputs
from exhume.replay.releases import newer_release_findings, profile_for
from exhume.replay.snapshot_times import snapshot_times
from exhume.replay.spark.graded import Grading
from exhume.replay.spark.loads import WORTH_STRETCHES_BYTES, Request, load_logs
from exhume.replay.spark.state import AT_TIME, StateFrames, all_tables
from exhume.replay.state import NAMING_TABLES
from exhume.replay.topic_names import names_beside
from exhume.spark.places import Place, found

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def reconstruct(
    spark: SparkSession,
    places: Place | Sequence[Place] | Evidence,
    *,
    release: str | None = None,
    mode: Mode = "strict",
    stop: Stop | None = None,
    view: View = "committed",
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
    evidence = found(places, include, filesystem_options)
    at = moment(evidence.offsets_partitions, at_offset=at_offset, at_time_ms=at_time_ms, clock=clock)
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
    state = _loaded(spark, evidence, request, release=release, groups=groups, topics_file=topics_file)
    if strict:
        state.refuse_damage()
    return state


def completeness(state: StateFrames) -> DataFrame:
    """How much the logs still know of the moment of this state: a grade for each group, of `completeness.COMPLETENESS`.

    Raises:
        RequestError: the state lacks a table that is needed, or has several moments.
    """
    missing = [name for name in (*NAMING_TABLES, "loads") if name not in state]
    if missing or AT_TIME in state["groups"].columns:
        raise RequestError("no grade without these tables at one moment", remedy=f"Ask for {', '.join((*NAMING_TABLES, 'loads'))} too")
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
    view: View = "committed",
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
    evidence = found(places, include, filesystem_options)
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
    return _loaded(spark, evidence, request, release=release, groups=groups, topics_file=topics_file, has_moments=True)


def _loaded(
    spark: SparkSession,
    evidence: Evidence,
    request: Request,
    *,
    release: str | None,
    groups: Collection[str] | None,
    topics_file: Place | None,
    has_moments: bool = False,
) -> StateFrames:
    """What comes of this request; `release` as it was asked for."""
    names = names_beside(evidence.log_directories, None if topics_file is None else Path(topics_file))
    findings = Findings([*evidence.findings, *newer_release_findings([release])])
    loaded = load_logs(spark, evidence.log_directories, request)
    return StateFrames(spark, loaded, request, names=names, findings=findings, groups=groups, has_moments=has_moments)


def _known_tables(tables: Collection[str] | None) -> list[str]:
    known = all_tables()
    if tables is None:
        return known
    for name in tables:
        if name not in known:
            raise RequestError(f"no table {name!r}", remedy=f"Choose of {', '.join(known)}")
    return list(tables)
