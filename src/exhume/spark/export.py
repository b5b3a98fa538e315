"""Tables on Spark as a directory of Parquet: what `exhume export` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict, Unpack

from exhume._version import __version__
from exhume.analysis.detectors.diagnose import chosen
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.summary import GROUP_SUMMARY, summarize_groups
from exhume.codecs.log_directory import Evidence, PartitionDirectory
from exhume.codecs.uris import PathOrUri
from exhume.errors import RequestError
from exhume.replay.moment import Clock
from exhume.replay.spark.group_tables import GroupTable
from exhume.replay.spark.inputs import InputRow, read_inputs
from exhume.replay.spark.output import OutputDirectory
from exhume.replay.spark.state import StateFrames, all_tables
from exhume.spark.diagnosis import Diagnosis, DiagnosisRequest
from exhume.spark.options import StateKeywords, StateOptions
from exhume.spark.records import RECORD_TABLES, group_records
from exhume.spark.states import reconstruct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Told what comes next: a name, and what it reads.
OnPhase = Callable[[str, Iterable[PartitionDirectory]], None]

#: The table that is always written.
FINDINGS = "findings"
#: Tables that `write_tables` knows besides those of the state: made of each group by itself. Others can be added.
GROUP_TABLES: dict[str, GroupTable] = {
    "summary": GroupTable(GROUP_SUMMARY, ("groups", "members", "assignments", "offsets", "pending_offsets"), summarize_groups),
}


class Manifest(TypedDict):
    """What `manifest.json` says of an output: what made it, of which state it is, and every file that was read."""

    exhume: str
    spark: str
    python: str
    release: str
    mode: str
    moment: Mapping[str, object] | None
    tables: list[str]
    detectors: str
    is_damaged: bool
    inputs: list[InputRow]


def write_tables(
    state: StateFrames,
    evidence: Evidence,
    output_dir: str,
    tables: Sequence[str],
    *,
    detector_inputs: Inputs | None = None,
    codes: Collection[str] | None = None,
    on_phase: OnPhase | None = None,
) -> Manifest:
    """Write these tables of a state as Parquet, with a manifest of all that was read: what comes back.

    `output_dir` then has `NAME/offsets_partition=N/*.parquet` for each table, and `manifest.json`. It is written aside and put in its place
    at the end: whoever looks sees what was there before, or all of this.

    `findings` is always written, with what reading and loading told. Where it is one of `tables` and the state is that of whole logs,
    detectors run, and what they find is in it too: those of these `codes` (default: all), told `detector_inputs` besides.

    Raises:
        RequestError: no such table or code, or a directory that is no output of this function; detectors are told something and do not run.
    """
    check_tables(tables, at_moment=state.moment is not None, detector_inputs=detector_inputs, codes=codes)
    tell = on_phase or _tell_nobody
    output = OutputDirectory(state.spark, output_dir)
    written = [*dict.fromkeys([*tables, FINDINGS])]
    runs_detectors = FINDINGS in tables and state.moment is None
    try:
        records = group_records(state.spark, evidence, state.groups, state.request.read)
        for name in written:
            reads_logs = name in RECORD_TABLES or (name == FINDINGS and runs_detectors)
            tell(name, evidence.partitions if reads_logs else ())
            if name in RECORD_TABLES:
                output.write(name, records.table(RECORD_TABLES[name]))
            elif name in GROUP_TABLES:
                output.write(name, state.of_groups(GROUP_TABLES[name]))
            elif name == FINDINGS and runs_detectors:
                look = DiagnosisRequest(detector_inputs or Inputs(), codes, state.groups)
                with Diagnosis(state.spark, evidence, look, state.names_beside, state.request.read) as diagnosis:
                    output.write(name, state[name].unionByName(diagnosis.findings()))
            else:
                output.write(name, state[name])
        tell("manifest", evidence.partitions)
        manifest: Manifest = {
            "exhume": __version__,
            "spark": state.spark.version,
            "python": sys.version.split()[0],
            "release": state.release,
            "mode": state.mode,
            "moment": state.moment,
            "tables": written,
            "detectors": _detectors(tables, state, codes),
            "is_damaged": state.has_damage,
            "inputs": read_inputs(state.spark, evidence.log_directories),
        }
        output.finish(manifest)
    except BaseException:
        output.abandon()
        raise
    return manifest


def _tell_nobody(name: str, partitions: Iterable[PartitionDirectory]) -> None:
    pass


def _detectors(tables: Collection[str], state: StateFrames, codes: Collection[str] | None) -> str:
    """Whether the table `findings` has what detectors find."""
    if FINDINGS not in tables:
        return "not run: the table findings was not asked for"
    if state.moment is not None:
        return "not run: they judge whole logs, and this is a state at a moment"
    return "run" if codes is None else f"run: {', '.join(codes)}"


def check_tables(
    tables: Collection[str], *, at_moment: bool, detector_inputs: Inputs | None = None, codes: Collection[str] | None = None
) -> None:
    """Know that these tables can be written, and that detectors run if they are told something.

    Raises:
        RequestError: there is no such table or code, or not at a moment; something is for detectors, which do not run.
    """
    for name in tables:
        if name not in _written_tables():
            raise RequestError(f"no table {name!r}", remedy=f"Choose of {', '.join(_written_tables())}")
        if name in RECORD_TABLES and at_moment:
            raise RequestError(f"{name} at a moment", remedy="They are told of whole logs: leave out the moment, and filter the rows")
    chosen(codes)
    # A state learns names from a list of topics, too.
    is_told = codes is not None or replace(detector_inputs or Inputs(), topics=None) != Inputs()
    if is_told and FINDINGS not in tables:
        raise RequestError("detectors are told something, and do not run", remedy=f"Name {FINDINGS} among the tables")
    if is_told and at_moment:
        raise RequestError("detectors at a moment", remedy="They judge whole logs: leave out the moment, or what is for detectors")


def _written_tables() -> list[str]:
    return [*all_tables(), FINDINGS, *GROUP_TABLES, *RECORD_TABLES]


def export_tables(
    spark: SparkSession,
    places: PathOrUri | Sequence[PathOrUri],
    output_dir: PathOrUri,
    *,
    tables: Sequence[str] = ("groups", "members", "offsets", "loads"),
    detector_inputs: Inputs | None = None,
    codes: Collection[str] | None = None,
    at_offset: int | Mapping[int, int] | None = None,
    at_time_ms: int | None = None,
    clock: Clock | None = None,
    strict: bool = False,
    on_phase: OnPhase | None = None,
    **options: Unpack[StateKeywords],
) -> StateFrames:
    """`reconstruct` and `write_tables` in one: what `exhume export` does. The moment and `options` are those of `reconstruct`.

    `on_phase` is told what comes next, `loading`, the name of a table, or `manifest`, and the partitions that are read for it.

    Raises:
        RequestError: as both of them.
        EvidenceError: as `reconstruct`; with `strict`, damage, once everything is written.
    """
    at_moment = at_offset is not None or at_time_ms is not None
    check_tables(tables, at_moment=at_moment, detector_inputs=detector_inputs, codes=codes)
    OutputDirectory(spark, os.fspath(output_dir))
    needed = {name for table in tables if table in GROUP_TABLES for name in GROUP_TABLES[table].needs}
    plain = {name for name in tables if name not in GROUP_TABLES and name not in RECORD_TABLES and name != FINDINGS}
    wanted = [name for name in all_tables() if name in needed | plain | {"loads", "groups"}]
    evidence = StateOptions(**options).evidence(places)
    if on_phase is not None:
        on_phase("loading", evidence.partitions)
    state = reconstruct(spark, evidence, tables=wanted, at_offset=at_offset, at_time_ms=at_time_ms, clock=clock, **options)
    try:
        write_tables(state, evidence, os.fspath(output_dir), tables, detector_inputs=detector_inputs, codes=codes, on_phase=on_phase)
        if strict:
            state.refuse_damage()
    except BaseException:
        state.close()
        raise
    return state
