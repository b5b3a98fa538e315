"""Run detectors over cases, and sort their findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from exhume.analysis.detectors.cases import GroupCase, PartitionCase, TopicCase
from exhume.analysis.detectors.catalogue import DETECTORS, WITHOUT_DETECTOR
from exhume.analysis.detectors.gathered import gathered
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.removal_facts import learn_removals
from exhume.analysis.detectors.report import counted, undecidable
from exhume.errors import RequestError
from exhume.findings import Finding, worst_first
from exhume.gc_control import infrequent_gc
from exhume.replay.topic_names import TopicNames, tells_topic_names


def chosen(codes: Collection[str] | None) -> list[Detector]:
    """Return the detectors of these codes. A code names a class (`IC-28`) or one case of it (`IC-28a`). None means all.

    Raises:
        RequestError: No detector has this code.
    """
    if codes is None:
        return [*DETECTORS]
    found = {}
    for code in codes:
        named = [detector for detector in DETECTORS if detector.finds(code) or detector.code.rstrip("abc") == code]
        if not named:
            remedy = WITHOUT_DETECTOR.get(code, "exhume diagnose --list prints all codes, for example IC-02")
            raise RequestError(f"no detector has the code {code!r}", remedy=remedy)
        found.update({detector.code: detector for detector in named})
    return [*found.values()]


@infrequent_gc()
def diagnose(
    case: TopicCase, inputs: Inputs, *, codes: Collection[str] | None = None, groups: Collection[str] | None = None
) -> list[Finding]:
    """Return the findings of the detectors of these codes, the worst first. With `groups`, only those about these groups.

    Findings that are equal in several replicas are returned once, for the first replica. A detector that cannot decide returns a finding
    with confidence `undecidable`.

    Raises:
        RequestError: No detector has this code.
    """
    detectors = chosen(codes)
    learn_removals(case, inputs)
    for partition in case.partitions:
        partition.log_context.names.take(learned_names(partition))
    return worst_first_once(finding for finding in _found(case, inputs, detectors, groups) if is_wanted(finding, codes, groups))


def worst_first_once(findings: Iterable[Finding]) -> list[Finding]:
    """Return these findings, the worst first; of equal ones, from several replicas, the first."""
    return sorted(_once(findings), key=_rank)


def is_wanted(finding: Finding, codes: Collection[str] | None, groups: Collection[str] | None) -> bool:
    """Return True if the code and the group of this finding were requested."""
    return (groups is None or finding.group is None or finding.group in groups) and (codes is None or _is_named(finding.code, codes))


def learned_names(partition: PartitionCase) -> TopicNames:
    """Return the names of topic ids that records of this log contain."""
    names = TopicNames()
    names.add_all("commit", partition.topics_by_id)
    for group in partition.groups:
        for record in group.records if any(map(tells_topic_names, group.record_types)) else ():
            if tells_topic_names(record.record_type):
                decoded = record.decoded
                names.learn_from_record(record.record_type, decoded.key, decoded.value)
    return names


def diagnose_topic(case: TopicCase, inputs: Inputs, detectors: Iterable[Detector]) -> Iterator[Finding]:
    """Run the detectors that need all logs, and report the detectors that cannot decide because records have no time."""
    without_time = sum(partition.log_context.without_time for partition in case.partitions)
    for detector in detectors:
        if detector.in_topic is not None:
            yield from gathered(detector.in_topic(case, inputs))
        if detector.by_time and without_time:
            reason = f"the rule needs times, and message format 0 stores none: {counted(without_time, 'record')} without a time"
            yield undecidable(detector.code, reason)


def diagnose_partition(
    partition: PartitionCase, inputs: Inputs, detectors: Sequence[Detector], groups: Collection[str] | None = None
) -> Iterator[Finding]:
    """Run the detectors that need one log or one group of it. With `groups`, only these groups."""
    for detector in detectors:
        if detector.in_partition is not None:
            yield from detector.in_partition(partition, inputs)
    for group in partition.groups:
        if groups is None or group.group in groups:
            yield from diagnose_group(group, inputs, detectors)
        group.forget()
    partition.forget_members()


def diagnose_group(group: GroupCase, inputs: Inputs, detectors: Iterable[Detector]) -> Iterator[Finding]:
    """Run the detectors that need one group alone."""
    for detector in detectors:
        if detector.in_group is not None:
            yield from gathered(detector.in_group(group, inputs))


def _found(case: TopicCase, inputs: Inputs, detectors: list[Detector], groups: Collection[str] | None) -> Iterator[Finding]:
    begun = [detector for detector in detectors if detector.begin is not None]
    for detector in begun:
        assert detector.begin is not None
        detector.begin(case)
    yield from diagnose_topic(case, inputs, [detector for detector in detectors if detector.begin is None])
    for partition in case.partitions:
        yield from diagnose_partition(partition, inputs, detectors, groups)
    yield from diagnose_topic(case, inputs, begun)


def _once(findings: Iterable[Finding]) -> Iterator[Finding]:
    seen = set()
    for finding in findings:
        identity = (
            finding.code,
            finding.group,
            finding.topic,
            finding.partition,
            finding.offsets_partition,
            finding.first_record_offset,
            finding.last_record_offset,
            finding.sentence,
        )
        if identity not in seen:
            seen.add(identity)
            yield finding


def _is_named(code: str, codes: Collection[str]) -> bool:
    return any(code == each or (code.startswith(each) and code[len(each) :].isalpha()) or each.startswith(code) for each in codes)


def _rank(finding: Finding) -> tuple[object, ...]:
    return (
        worst_first(finding.severity),
        finding.confidence == "undecidable",
        finding.code,
        finding.group or "",
        finding.topic or "",
        -1 if finding.partition is None else finding.partition,
        finding.first_record_offset or 0,
    )
