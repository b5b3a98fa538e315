"""Detectors run over cases, and their findings put in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from exhume.analysis.detectors.cases import GroupCase, PartitionCase, TopicCase
from exhume.analysis.detectors.catalogue import DETECTORS, WITHOUT_DETECTOR
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import counted, undecidable
from exhume.analysis.detectors.retention import likely_retention_ms
from exhume.errors import RequestError
from exhume.findings import Finding
from exhume.gc_control import infrequent_gc
from exhume.replay.topic_names import TopicNames, tells_topic_names

_SEVERITIES = ("incident", "warn", "info")


def chosen(codes: Collection[str] | None) -> list[Detector]:
    """The detectors that these codes name, whole (`IC-28`) or one case of theirs (`IC-28a`); all for None.

    Raises:
        RequestError: no detector has this code; lists those that are near.
    """
    if codes is None:
        return [*DETECTORS]
    found = {}
    for code in codes:
        named = [detector for detector in DETECTORS if detector.finds(code) or detector.code.rstrip("ab") == code]
        if not named:
            remedy = WITHOUT_DETECTOR.get(code, "exhume diagnose --list has all codes, such as IC-02")
            raise RequestError(f"no detector has the code {code!r}", remedy=remedy)
        found.update({detector.code: detector for detector in named})
    return [*found.values()]


@infrequent_gc()
def diagnose(
    case: TopicCase, inputs: Inputs, *, codes: Collection[str] | None = None, groups: Collection[str] | None = None
) -> list[Finding]:
    """Everything that the detectors of these codes find, about these groups only where some are named; the worst first.

    What several replicas show alike is there once, for the first of them. Those that cannot decide say so, with confidence `undecidable`.

    Raises:
        RequestError: no such code.
    """
    detectors = chosen(codes)
    retention_ms = inputs.retention_ms if inputs.retention_ms is not None else likely_retention_ms(case)
    for partition in case.partitions:
        partition.log_context.likely_retention_ms = retention_ms
        partition.log_context.names.take(told_names(partition))
    found = _once(_found(case, inputs, detectors, groups))
    return sorted((finding for finding in found if is_wanted(finding, codes, groups)), key=_rank)


def is_wanted(finding: Finding, codes: Collection[str] | None, groups: Collection[str] | None) -> bool:
    """Whether it was asked for: its code, and the group that it is about, if any."""
    return (groups is None or finding.group is None or finding.group in groups) and (codes is None or _is_named(finding.code, codes))


def told_names(partition: PartitionCase) -> TopicNames:
    """The names of topic ids that records of this log tell."""
    names = TopicNames()
    names.add_all("commit", partition.topics_by_id)
    for group in partition.groups:
        for record in group.records:
            if tells_topic_names(record.record_type):
                decoded = record.decoded
                names.learn_from_record(record.record_type, decoded.key, decoded.value)
    return names


def diagnose_topic(case: TopicCase, inputs: Inputs, detectors: Iterable[Detector]) -> Iterator[Finding]:
    """What the detectors find that look at all logs, and which of all cannot decide for want of times."""
    without_time = sum(partition.log_context.without_time for partition in case.partitions)
    for detector in detectors:
        if detector.in_topic is not None:
            yield from detector.in_topic(case, inputs)
        if detector.by_time and without_time:
            reason = f"{counted(without_time, 'record')} of message format 0 have no time, and the rule goes by times"
            yield undecidable(detector.code, reason)


def diagnose_partition(
    partition: PartitionCase, inputs: Inputs, detectors: Sequence[Detector], groups: Collection[str] | None = None
) -> Iterator[Finding]:
    """What the detectors find that look at one log, or at one group of it alone; of groups only these, where some are named."""
    for detector in detectors:
        if detector.in_partition is not None:
            yield from detector.in_partition(partition, inputs)
    for group in partition.groups:
        if groups is None or group.group in groups:
            yield from diagnose_group(group, inputs, detectors)
        group.forget()


def diagnose_group(group: GroupCase, inputs: Inputs, detectors: Iterable[Detector]) -> Iterator[Finding]:
    """What the detectors find that look at one group alone."""
    for detector in detectors:
        if detector.in_group is not None:
            yield from detector.in_group(group, inputs)


def _found(case: TopicCase, inputs: Inputs, detectors: list[Detector], groups: Collection[str] | None) -> Iterator[Finding]:
    yield from diagnose_topic(case, inputs, detectors)
    for partition in case.partitions:
        yield from diagnose_partition(partition, inputs, detectors, groups)


def _once(findings: Iterable[Finding]) -> Iterator[Finding]:
    seen = set()
    for finding in findings:
        told = (
            finding.code,
            finding.group,
            finding.topic,
            finding.partition,
            finding.offsets_partition,
            finding.first_record_offset,
            finding.last_record_offset,
            finding.sentence,
        )
        if told not in seen:
            seen.add(told)
            yield finding


def _is_named(code: str, codes: Collection[str]) -> bool:
    return any(code == each or (code.startswith(each) and code[len(each) :].isalpha()) or each.startswith(code) for each in codes)


def _rank(finding: Finding) -> tuple[object, ...]:
    return (
        _SEVERITIES.index(finding.severity),
        finding.confidence == "undecidable",
        finding.code,
        finding.group or "",
        finding.topic or "",
        -1 if finding.partition is None else finding.partition,
        finding.first_record_offset or 0,
    )
