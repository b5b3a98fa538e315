"""Write tables on Spark to a directory of Parquet files, for `exhume export`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict, Unpack

from exhume._version import __version__
from exhume.analysis.detectors.diagnose import chosen
from exhume.analysis.detectors.distributed import DiagnosisRequest
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.summary import GROUP_SUMMARY, summarize_groups
from exhume.codecs.log_directory import Evidence, PartitionDirectory
from exhume.codecs.uris import PathOrUri
from exhume.errors import RequestError
from exhume.moments import Clock
from exhume.replay.spark.group_tables import GroupTable
from exhume.replay.spark.inputs import InputRow, read_inputs
from exhume.replay.spark.output import OutputDirectory
from exhume.replay.spark.state import StateFrames, all_tables
from exhume.spark.diagnosis import Diagnosis
from exhume.spark.options import StateKeywords, StateOptions
from exhume.spark.records import RECORD_TABLES, group_records
from exhume.spark.states import reconstruct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Called before each phase with its name and the partitions that it reads.
OnPhase = Callable[[str, Iterable[PartitionDirectory]], None]

#: The table that is always written.
FINDINGS = "findings"
#: More tables of `write_tables`, made from the state of one group at a time. Others can be added.
GROUP_TABLES: dict[str, GroupTable] = {
    "summary": GroupTable(GROUP_SUMMARY, ("groups", "members", "assignments", "offsets", "pending_offsets"), summarize_groups),
}


class Manifest(TypedDict):
    """The content of `manifest.json`: the programs, the state, and every file that was read."""

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
    """Write these tables of a state as Parquet with a manifest of all files that were read; return the manifest.

    `output_dir` then has `NAME/offsets_partition=N/*.parquet` for each table, and `manifest.json`. It is written to another
    directory and renamed at the end: a reader sees the old directory or the whole new one.

    `findings` is always written, with the findings of reading and loading. If it is one of `tables` and the state is that of whole logs,
    the detectors of these `codes` (default: all) run with `detector_inputs`, and their findings are added.

    Raises:
        RequestError: no such table or code, or a directory that is not an output of this function; or there are inputs for detectors that
        do not run.
    """
    check_tables(tables, at_moment=state.moment is not None, detector_inputs=detector_inputs, codes=codes)
    begin_phase = on_phase or _ignore_phase
    output = OutputDirectory(state.spark, output_dir)
    written = [*dict.fromkeys([*tables, FINDINGS])]
    runs_detectors = FINDINGS in tables and state.moment is None
    try:
        records = group_records(state.spark, evidence, state.groups, state.request.read)
        for name in written:
            reads_logs = name in RECORD_TABLES or (name == FINDINGS and runs_detectors)
            begin_phase(name, evidence.partitions if reads_logs else ())
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
        begin_phase("manifest", evidence.partitions)
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


def _ignore_phase(name: str, partitions: Iterable[PartitionDirectory]) -> None:
    pass


def _detectors(tables: Collection[str], state: StateFrames, codes: Collection[str] | None) -> str:
    """Describe for the manifest which detectors ran."""
    if FINDINGS not in tables:
        return "not run: the table findings was not requested"
    if state.moment is not None:
        return "not run: detectors judge whole logs, and this is a state at a moment"
    return "run" if codes is None else f"run: {', '.join(codes)}"


def check_tables(
    tables: Collection[str], *, at_moment: bool, detector_inputs: Inputs | None = None, codes: Collection[str] | None = None
) -> None:
    """Check that these tables can be written, and that detectors run if there are inputs for them.

    Raises:
        RequestError: no such table or code, or not at a moment; or there are inputs for detectors that do not run.
    """
    for name in tables:
        if name not in _written_tables():
            raise RequestError(f"no table {name!r}", remedy=f"Choose from {', '.join(_written_tables())}")
        if name in RECORD_TABLES and at_moment:
            raise RequestError(
                f"{name} cannot be exported at a moment",
                remedy="This table is made from whole logs: leave out the moment, and filter the rows",
            )
    chosen(codes)
    # The list of topics is not for detectors only: a state takes names from it.
    has_detector_inputs = codes is not None or replace(detector_inputs or Inputs(), topics=None) != Inputs()
    if has_detector_inputs and FINDINGS not in tables:
        raise RequestError("there are inputs or codes for detectors, but no detector runs", remedy=f"Name {FINDINGS} among the tables")
    if has_detector_inputs and at_moment:
        raise RequestError(
            "detectors cannot run at a moment",
            remedy="Detectors judge whole logs: leave out the moment, or the inputs and codes of detectors",
        )


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
    """Call `reconstruct` and `write_tables`, for `exhume export`. The moment and `options` are those of `reconstruct`.

    `on_phase` is called before each phase with its name (`loading`, a table, or `manifest`) and the partitions that it reads.

    Raises:
        RequestError: as both functions.
        EvidenceError: as `reconstruct`; with `strict`, damage, after everything is written.
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
