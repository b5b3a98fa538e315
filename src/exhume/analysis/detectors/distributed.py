"""A diagnosis in parts, for logs that are not in one place: each log is condensed by itself; what all have to know of one another is
small; then detectors that compare groups or logs look at all of it, and those of one log or group at each log by itself.

    facts, case = condense_log(reader)                 anywhere, for each log
    known = known_of([facts, …])                       once
    diagnose_all([case, …], known, …)                  once, over what the logs were condensed to
    diagnose_copies([facts, …], …)                     for each offsets partition of which there are several copies
    diagnose_log(case, known, …)                       anywhere, for each log
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from exhume.analysis.detectors.cases import LogContext, PartitionCase, TopicCase
from exhume.analysis.detectors.cleaning import first_open
from exhume.analysis.detectors.condense import condense
from exhume.analysis.detectors.copies import find_replicas_diverge
from exhume.analysis.detectors.diagnose import chosen, diagnose_partition, diagnose_topic, is_wanted, told_names
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.log_files import LogFiles
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.retention import most_likely_ms, swept_groups
from exhume.arrow_rows import Origin
from exhume.codecs.record_chunks import record_chunks
from exhume.codecs.segment_reader import SegmentReader
from exhume.findings import Finding
from exhume.replay.topic_names import TopicNames

#: Compares whole copies, record by record, and looks at no group.
_COMPARES_COPIES = find_replicas_diverge


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What others have to know of a log. `log_context` is bare: no sweeps, no names.

    `swept` are the groups that each retention would explain, `names` the topic names that its records tell, as `TopicNames.learned`;
    `first_open` is the record offset that the oldest open transaction began with.
    """

    log_context: LogContext
    sweeps: list[tuple[int, str, str]]
    swept: Mapping[int, set[str]]
    names: list[tuple[str, str, str]]
    first_open: int | None

    @property
    def origin(self) -> Origin:
        return self.log_context.origin


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of all logs together."""

    sweeps: list[tuple[int, str, str]]
    names: TopicNames
    retention_ms: int | None


def condense_log(reader: SegmentReader) -> tuple[LogFacts, PartitionCase] | None:
    """What others have to know of the one log of this reader, and its case; None where it has no record."""
    case = condense(record_chunks(reader), compiled=reader.is_worth_compiling)
    if not case.partitions:
        return None
    (partition,) = case.partitions
    log_context = partition.log_context
    names = told_names(partition)
    open_since = first_open(case)
    log_context.sweeps, log_context.names = [], TopicNames()
    facts = LogFacts(log_context, partition.sweeps, swept_groups(case), names.learned(), next(iter(open_since.values()), None))
    return facts, partition


def known_of(facts: Iterable[LogFacts], names: TopicNames, inputs: Inputs) -> Known:
    """What follows from the facts of all logs; `names` are those that lie beside them."""
    all_names = TopicNames()
    all_names.take(names)
    swept: dict[int, set[str]] = {}
    sweeps: list[tuple[int, str, str]] = []
    for each in facts:
        sweeps += each.sweeps
        for source, topic_id, topic in each.names:
            all_names.add(source, topic_id, topic)
        for retention_ms, groups in each.swept.items():
            swept.setdefault(retention_ms, set()).update(groups)
    return Known(sorted(sweeps), all_names, inputs.retention_ms if inputs.retention_ms is not None else most_likely_ms(swept))


def diagnose_all(
    cases: Sequence[PartitionCase],
    known: Known,
    files: LogFiles,
    inputs: Inputs,
    *,
    codes: Collection[str] | None = None,
    groups: Collection[str] | None = None,
) -> Iterator[Finding]:
    """What the detectors find that look at all logs; copies of a partition are not compared where there are several."""
    for case in cases:
        _let_know(case, known)
    detectors = chosen(codes)
    if several_copies(each.log_context for each in cases):
        detectors = [each for each in detectors if each.in_topic is not _COMPARES_COPIES]
    return (finding for finding in diagnose_topic(TopicCase([*cases], files), inputs, detectors) if is_wanted(finding, codes, groups))


def several_copies(arounds: Iterable[LogContext]) -> list[list[LogContext]]:
    """The logs of each offsets partition of which there are several, in their order."""
    by_number: dict[int | None, list[LogContext]] = {}
    for log_context in arounds:
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
    """What differs between these copies of an offsets partition."""
    detectors: list[Detector] = [each for each in chosen(codes) if each.in_topic is _COMPARES_COPIES]
    case = TopicCase([PartitionCase(log_context, []) for log_context in copies], files)
    return (finding for finding in diagnose_topic(case, inputs, detectors) if is_wanted(finding, codes, groups))


def diagnose_log(
    case: PartitionCase, known: Known, inputs: Inputs, *, codes: Collection[str] | None = None, groups: Collection[str] | None = None
) -> Iterator[Finding]:
    """What the detectors find that look at one log, or at one group, alone."""
    _let_know(case, known)
    return (finding for finding in diagnose_partition(case, inputs, chosen(codes), groups) if is_wanted(finding, codes, groups))


def _let_know(case: PartitionCase, known: Known) -> None:
    log_context = case.log_context
    log_context.sweeps, log_context.likely_retention_ms, log_context.names = known.sweeps, known.retention_ms, known.names


@dataclass(slots=True)
class KnownFiles(LogFiles):
    """Files of logs that are too large to be read again by whoever looks at all of them: what would be read was found out elsewhere.

    `rows` are those of `growth.COMPACTION` by origin, `failed` those of `load_check.given_up`.
    """

    rows: Mapping[Origin, dict[str, Any]] = field(default_factory=dict)
    failed: Sequence[dict[str, Any]] | None = None

    def compaction(
        self,
        origins: Collection[Origin],
        open_transactions: Mapping[Origin, int],  # noqa: ARG002
        now_ms: int,  # noqa: ARG002
    ) -> dict[Origin, dict[str, Any]]:
        return {origin: row for origin, row in self.rows.items() if origin in origins}

    def given_up(self, releases: Sequence[str]) -> list[dict[str, Any]]:
        if self.failed is None:
            # Called by name: a class with slots is another one than `super` was written in.
            return LogFiles.given_up(self, releases)
        return [row for row in self.failed if row["release"] in releases]
