"""The findings of `exhume diagnose` on Spark: the same detectors, over logs that executors read and condense."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack, cast

import pyarrow as pa

from exhume.analysis.detectors.cases import LogContext, PartitionCase
from exhume.analysis.detectors.cleaning import may_have_stopped
from exhume.analysis.detectors.diagnose import chosen
from exhume.analysis.detectors.distributed import (
    DiagnosisRequest,
    Known,
    KnownFiles,
    LogFacts,
    condense_log,
    diagnose_all,
    diagnose_copies,
    diagnose_log,
    known_of,
    several_copies,
)
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.loading import is_large, tried_releases
from exhume.analysis.growth import COMPACTION, CompactionRow, growth_of
from exhume.analysis.load_check import FAILED, FailedLoad, tried_stops
from exhume.arrow_rows import Origin, of_log
from exhume.codecs.log_directory import Evidence, LogDirectory
from exhume.codecs.one_log import OneLog, logs_of
from exhume.codecs.record_chunks import record_sizes
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.codecs.uris import PathOrUri
from exhume.findings import SCHEMA as FINDINGS
from exhume.findings import Finding, Findings
from exhume.replay.load_request import LoadRequest
from exhume.replay.reading import CompiledLoad
from exhume.replay.releases import profile_for
from exhume.replay.spark.condensed import CondensedLogs
from exhume.replay.spark.loads import load_logs
from exhume.replay.spark.numbered import first_of_each, for_each_number
from exhume.replay.spark.request import Request
from exhume.replay.spark.wide import TABLE, plain_schema
from exhume.replay.topic_names import TopicNames, names_beside
from exhume.spark.options import EvidenceKeywords, EvidenceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The first column of a finding: its place among all; of equal findings only the first one counts.
_PLACE = "its_place"
_PLACED = pa.schema([(_PLACE, pa.int64()), *plain_schema(FINDINGS)])
_PER_LOG = 1 << 40
#: The columns in which equal findings about replicas of a partition agree.
_EQUAL_COLUMNS = ("code", "group", "topic", "partition", "offsets_partition", "first_record_offset", "last_record_offset", "sentence")
_BATCH_FINDINGS = 1024


def diagnose(
    spark: SparkSession,
    places: PathOrUri | Sequence[PathOrUri],
    inputs: Inputs | None = None,
    *,
    codes: Collection[str] | None = None,
    groups: Collection[str] | None = None,
    topics_file: PathOrUri | None = None,
    **options: Unpack[EvidenceKeywords],
) -> Diagnosis:
    """Return the findings of `OffsetsTopic.diagnose` in these logs.

    See there for the arguments; `options` are those of `EvidenceOptions`.

    Raises:
        RequestError: no such code.
        EvidenceError: the places have no partition of the offsets topic, or it cannot be read.
    """
    how = EvidenceOptions(**options)
    evidence = how.evidence(places)
    names = names_beside(evidence.log_directories, topics_file)
    return Diagnosis(spark, evidence, DiagnosisRequest(inputs or Inputs(), codes, groups), names, how.read)


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of all logs, as executors get them; the content that detectors need of large ones is known."""

    directories: Sequence[LogDirectory]
    options: ReadOptions
    damage: Sequence[Finding]
    compaction: Mapping[Origin, CompactionRow]
    failed: Sequence[FailedLoad] | None

    def opened(self) -> KnownFiles:
        """The files in the form that detectors take."""
        damage = Findings(self.damage)
        evidence = Evidence([*self.directories], Findings())
        options = self.options
        return KnownFiles(
            evidence,
            lambda: SegmentReader(evidence, options, damage),
            lambda: CompiledLoad(options, least_bytes=options.least_compiled_bytes),
            damage,
            rows=self.compaction,
            failed=self.failed,
        )


@dataclass(slots=True)
class Diagnosis:
    """The findings of detectors in this evidence.

    Executors keep the condensed logs until it is closed: use it in a `with` statement, or `close` it. `names` are the topic names from
    files beside the logs.
    """

    spark: SparkSession
    evidence: Evidence
    request: DiagnosisRequest
    names: TopicNames
    options: ReadOptions
    _logs: CondensedLogs = field(init=False)
    _known: Known = field(init=False)

    def __post_init__(self) -> None:
        chosen(self.request.codes)
        self.request = replace(
            self.request, inputs=self.request.inputs.with_captured(self.evidence.log_directories).with_paths(self.evidence.paths)
        )
        self._logs = CondensedLogs(self.spark, logs_of(self.evidence, self.options), condense_log)
        self._known = known_of(self._facts(), self.names, self.request.inputs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Release the data that executors keep."""
        self._logs.close()

    @property
    def damage(self) -> Findings:
        """The findings about damage from reading the logs."""
        return self._logs.damage

    def findings(self) -> DataFrame:
        """Rows of `findings.SCHEMA`, JSON as text, in no order."""
        copies = several_copies(each.log_context for each in self._facts())
        files = self._files()
        rows = self._logs.together(partial(_of_all, self._known, files, self.request), _PLACED)
        rows = rows.unionAll(self._logs.each(partial(_of_log, self._known, self.request), _PLACED))
        if copies:
            look = partial(_of_copies, copies, replace(files, damage=()), self.request)
            rows = rows.unionAll(for_each_number(self.spark, len(copies), look, _PLACED))
        return first_of_each(rows, _EQUAL_COLUMNS, _PLACE)

    def _facts(self) -> Iterator[LogFacts]:
        return (self._logs.facts[number] for number in sorted(self._logs.facts))

    # Facts that detectors would read again

    def _files(self) -> _Files:
        size_bytes = sum(each.size_bytes for each in self.evidence.partitions)
        damage = Findings([*self.evidence.findings, *self._logs.damage])
        codes = {detector.code for detector in chosen(self.request.codes)}
        # Small logs are loaded by the task that diagnoses them.
        failed = self._failed(size_bytes) if "IC-06" in codes and is_large(size_bytes) else None
        compaction = self._compaction() if "IC-03" in codes else {}
        options = self._logs.logs[0].options if self._logs.logs else self.options
        return _Files(self.evidence.log_directories, options, tuple(damage), compaction, failed)

    def _failed(self, size_bytes: int) -> list[FailedLoad]:
        """The rows of `load_check.given_up`."""
        rows: list[FailedLoad] = []
        for release in dict.fromkeys([*tried_releases(size_bytes), profile_for(self.request.inputs.release).release]):
            for stop in tried_stops(self.evidence.log_directories):
                request = Request(load=LoadRequest(release=release, stop=stop), tables=["loads"], read=self.options)
                loaded = load_logs(self.spark, self.evidence.log_directories, request)
                loads = loaded.rows.where(loaded.rows[TABLE] == "loads").select("unit", "loads.*")
                found = loads.where(loads["outcome"].isin(*FAILED)).collect()
                problems = loaded.problems() if found else {}
                rows += [
                    {
                        **of_log(row["replica"], row["offsets_partition"]),
                        "release": release,
                        "coordinator": row["coordinator"],
                        "stop": stop,
                        "outcome": row["outcome"],
                        "record_offset": row["record_offset"],
                        "problem": problems[row["unit"]],
                    }
                    for row in sorted(found, key=lambda row: int(row["unit"]))
                ]
                loaded.unpersist()
                if set(loaded.ways.values()) == {"fold"} and self.options.verify:
                    # After a clean stop and verified checksums, another start gives the same load.
                    break
        return rows

    def _compaction(self) -> dict[Origin, CompactionRow]:
        """The progress of the cleaner in the logs that may block it."""
        first_open = {each.origin: each.first_open for each in self._facts() if each.first_open is not None}
        newest_ms = max((each.log_context.last_timestamp_ms or 0 for each in self._facts()), default=0)
        suspects = [
            self._logs.logs[number]
            for number, facts in sorted(self._logs.facts.items())
            if any(may_have_stopped(directory, facts.log_context) for directory in self._logs.logs[number].partitions)
        ]
        if not suspects:
            return {}
        look = partial(_compaction_of, suspects, first_open, newest_ms)
        found = for_each_number(self.spark, len(suspects), look, COMPACTION).collect()
        rows = [cast("CompactionRow", row.asDict()) for row in found]
        return {(row["replica"], row["offsets_partition"]): row for row in rows}


# The work of executors


def _of_all(known: Known, files: _Files, request: DiagnosisRequest, cases: Iterable[tuple[int, PartitionCase]]) -> Iterator[pa.RecordBatch]:
    found = diagnose_all([case for _, case in cases], known, files.opened(), request.inputs, **request.named())
    return _placed(0, found)


def _of_log(known: Known, request: DiagnosisRequest, number: int, case: PartitionCase) -> Iterator[pa.RecordBatch]:
    return _placed((number + 1) * _PER_LOG, diagnose_log(case, known, request.inputs, **request.named()))


def _of_copies(copies: Sequence[Sequence[LogContext]], files: _Files, request: DiagnosisRequest, number: int) -> Iterator[pa.RecordBatch]:
    return _placed(0, diagnose_copies(copies[number], files.opened(), request.inputs, **request.named()))


def _placed(first: int, findings: Iterator[Finding]) -> Iterator[pa.RecordBatch]:
    place = first
    while some := [*islice(findings, _BATCH_FINDINGS)]:
        table = Findings(some).to_table().cast(plain_schema(FINDINGS))
        places = pa.array(range(place, place + table.num_rows), pa.int64())
        yield from table.add_column(0, _PLACE, places).cast(_PLACED).to_batches()
        place += len(some)


def _compaction_of(logs: Sequence[OneLog], first_open: Mapping[Origin, int], newest_ms: int, number: int) -> Iterator[pa.RecordBatch]:
    log = logs[number]
    growth = growth_of(record_sizes(log.reader(Findings())), log.partitions, first_open, by=None, now_ms=newest_ms)
    yield from growth.partitions.to_batches()
