"""Diagnose in parts, for logs on several machines.

Each log is condensed on its own; the facts that all logs share are small. Then the detectors that compare groups or logs run once over all
cases, and the other detectors run once for each log.

    facts, case = condense_log(reader)                 on any machine, for each log
    known = known_of([facts, …])                       once
    diagnose_all([case, …], known, …)                  once, over all condensed logs
    diagnose_copies([facts, …], …)                     for each offsets partition with several copies
    diagnose_log(case, known, …)                       on any machine, for each log
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from exhume.analysis.detectors.cases import LogContext, PartitionCase, TopicCase
from exhume.analysis.detectors.cleaning import first_open
from exhume.analysis.detectors.condense import condense
from exhume.analysis.detectors.copies import find_replicas_diverge
from exhume.analysis.detectors.diagnose import chosen, diagnose_partition, diagnose_topic, is_wanted, learned_names
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.log_files import LogFiles
from exhume.analysis.detectors.partition_sightings import PartitionSightings, Times
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.removal_facts import RemovalFacts, removal_facts
from exhume.analysis.growth import CompactionRow
from exhume.analysis.load_check import FailedLoad
from exhume.analysis.removals.sweeps import Sweeps
from exhume.analysis.removals.tombstones import OffsetTombstone, OffsetTombstones
from exhume.arrow_rows import Origin
from exhume.codecs.segment_reader import SegmentReader
from exhume.findings import Finding
from exhume.replay.topic_names import TopicNames

#: The detector that compares whole copies record by record, and needs no group.
_COMPARES_COPIES = find_replicas_diverge


@dataclass(frozen=True, slots=True)
class DiagnosisRequest:
    """The inputs, codes and groups of a diagnosis, as `OffsetsTopic.diagnose` takes them."""

    inputs: Inputs
    codes: Collection[str] | None = None
    groups: Collection[str] | None = None

    def named(self) -> dict[str, Collection[str] | None]:
        """Codes and groups, by their names."""
        return {"codes": self.codes, "groups": self.groups}


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The facts of one log that other logs need.

    Attributes:
        log_context: The context of the log, without tombstones and names.
        tombstones: Its offset tombstones.
        sightings: The times at which its commits named each partition.
        removals: The facts about its removals.
        names: The topic names in its records, as `TopicNames.learned`.
        first_open: The first record offset of the oldest open transaction.
    """

    log_context: LogContext
    tombstones: list[OffsetTombstone]
    sightings: Times
    removals: RemovalFacts
    names: list[tuple[str, str, str]]
    first_open: int | None

    @property
    def origin(self) -> Origin:
        return self.log_context.origin


@dataclass(frozen=True, slots=True)
class Known:
    """The facts of all logs."""

    tombstones: OffsetTombstones
    sightings: PartitionSightings
    names: TopicNames
    retention_ms: int | None
    sweeps: Sweeps


def condense_log(reader: SegmentReader) -> tuple[LogFacts, PartitionCase] | None:
    """Condense the one log of this reader: its facts and its case; None if it has no record."""
    case = condense(reader)
    if not case.partitions:
        return None
    (partition,) = case.partitions
    log_context = partition.log_context
    names = learned_names(partition)
    open_since = first_open(case)
    log_context.tombstones, log_context.names, log_context.sightings = OffsetTombstones(), TopicNames(), PartitionSightings()
    facts = LogFacts(
        log_context,
        partition.tombstones,
        partition.sightings,
        removal_facts(partition),
        names.learned(),
        next(iter(open_since.values()), None),
    )
    return facts, partition


def known_of(facts: Iterable[LogFacts], names: TopicNames, inputs: Inputs) -> Known:
    """Merge the facts of all logs. `names` are those of files next to the logs."""
    all_names = TopicNames()
    all_names.take(names)
    removals = RemovalFacts()
    tombstones: list[OffsetTombstone] = []
    sightings: list[Times] = []
    for each in facts:
        sightings.append(each.sightings)
        tombstones += each.tombstones
        for source, topic_id, topic in each.names:
            all_names.add(source, topic_id, topic)
        removals.add(each.removals)
    retention = removals.retention(inputs.retention_ms)
    sweeps = removals.sweeps(retention)
    return Known(OffsetTombstones(tombstones), PartitionSightings(*sightings), all_names, retention.likely_ms, sweeps)


def diagnose_all(
    cases: Sequence[PartitionCase],
    known: Known,
    files: LogFiles,
    inputs: Inputs,
    *,
    codes: Collection[str] | None = None,
    groups: Collection[str] | None = None,
) -> Iterator[Finding]:
    """Run the detectors that need all logs. Copies of a partition are not compared: `diagnose_copies` does that."""
    for case in cases:
        _share(case, known)
    detectors = chosen(codes)
    if several_copies(each.log_context for each in cases):
        detectors = [each for each in detectors if each.in_topic is not _COMPARES_COPIES]
    return (finding for finding in diagnose_topic(TopicCase([*cases], files), inputs, detectors) if is_wanted(finding, codes, groups))


def several_copies(contexts: Iterable[LogContext]) -> list[list[LogContext]]:
    """Return the logs of each offsets partition with several copies, in order."""
    by_number: dict[int | None, list[LogContext]] = {}
    for log_context in contexts:
        by_number.setdefault(log_context.offsets_partition, []).append(log_context)
    return [copies for copies in by_number.values() if len(copies) > 1]


def diagnose_copies(
    copies: Sequence[LogContext],
    files: LogFiles,
    inputs: Inputs,
    *,
    codes: Collection[str] | None = None,
    groups: Collection[str] | None = None,
) -> Iterator[Finding]:
    """Compare these copies of an offsets partition."""
    detectors: list[Detector] = [each for each in chosen(codes) if each.in_topic is _COMPARES_COPIES]
    case = TopicCase([PartitionCase(log_context, []) for log_context in copies], files)
    return (finding for finding in diagnose_topic(case, inputs, detectors) if is_wanted(finding, codes, groups))


def diagnose_log(
    case: PartitionCase, known: Known, inputs: Inputs, *, codes: Collection[str] | None = None, groups: Collection[str] | None = None
) -> Iterator[Finding]:
    """Run the detectors that need one log or one group alone."""
    _share(case, known)
    return (finding for finding in diagnose_partition(case, inputs, chosen(codes), groups) if is_wanted(finding, codes, groups))


def _share(case: PartitionCase, known: Known) -> None:
    log_context = case.log_context
    log_context.tombstones, log_context.likely_retention_ms, log_context.names = known.tombstones, known.retention_ms, known.names
    log_context.sightings, log_context.sweeps = known.sightings, known.sweeps


@dataclass(slots=True)
class KnownFiles(LogFiles):
    """Files of logs that are not read again: other machines have read them.

    `rows` are those of `growth.COMPACTION` by origin, `failed` those of `load_check.given_up`.
    """

    rows: Mapping[Origin, CompactionRow] = field(default_factory=dict)
    failed: Sequence[FailedLoad] | None = None

    def compaction(
        self,
        origins: Collection[Origin],
        open_transactions: Mapping[Origin, int],  # noqa: ARG002
        now_ms: int,  # noqa: ARG002
    ) -> dict[Origin, CompactionRow]:
        return {origin: row for origin, row in self.rows.items() if origin in origins}

    def given_up(self, releases: Sequence[str]) -> list[FailedLoad]:
        if self.failed is None:
            # `super()` fails here: `dataclass(slots=True)` replaces the class that it refers to.
            return LogFiles.given_up(self, releases)
        return [row for row in self.failed if row["release"] in releases]
