"""Make one finding of findings about several partitions of a topic that have one cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from exhume.analysis.detectors.report import MORE_NAMED, EvidenceRow, counted, most_of
from exhume.durations import MINUTE_MS
from exhume.findings import CONFIDENCES, Finding, worst_first

#: The codes of findings that are gathered by group and topic, and the longest time between two of them that have one cause. None: any.
_GATHERED: Mapping[str, int | None] = {
    "IC-02": 15 * MINUTE_MS,
    "IC-07": None,
    "IC-13": 60 * MINUTE_MS,
    "IC-16": 15 * MINUTE_MS,
    "IC-20b": 15 * MINUTE_MS,
    "IC-22": None,
    "IC-29": None,
    "IC-31": 15 * MINUTE_MS,
    "IC-38": 15 * MINUTE_MS,
    "IC-39": None,
}


def gathered(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield these findings. Those of one cause are one finding without a partition, in the place of the first one."""
    listed = [*findings]
    if not listed:
        return
    together: dict[object, list[Finding]] = {}
    for finding in listed:
        if _is_gathered(finding):
            together.setdefault(_subject(finding), []).append(finding)
    if all(len(each) == 1 for each in together.values()):
        yield from listed
        return
    ones = {subject: _by_time(each) for subject, each in together.items()}
    for finding in listed:
        if not _is_gathered(finding):
            yield finding
        else:
            yield from (_one(each) for each in ones.pop(_subject(finding), ()))


def _is_gathered(finding: Finding) -> bool:
    is_of_key = finding.topic is not None and finding.partition is not None
    return finding.code in _GATHERED and is_of_key and finding.confidence != "undecidable"


def _subject(finding: Finding) -> tuple[object, ...]:
    return finding.code, finding.replica, finding.offsets_partition, finding.group, finding.topic


def _by_time(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Split findings of one subject where the time between two of them is too long for one cause."""
    longest_ms = _GATHERED[findings[0].code]
    if longest_ms is None:
        return [[*findings]]
    parts: list[list[Finding]] = []
    for finding in sorted(findings, key=_time):
        if not parts or _time(finding) - _time(parts[-1][-1]) > longest_ms:
            parts.append([])
        parts[-1].append(finding)
    return parts


def _time(finding: Finding) -> int:
    return finding.last_timestamp_ms or 0


def _one(findings: Sequence[Finding]) -> Finding:
    if len(findings) == 1:
        return findings[0]
    worst = min(findings, key=lambda each: (worst_first(each.severity), CONFIDENCES.index(each.confidence), each.partition))
    first = min(findings, key=lambda each: -1 if each.first_record_offset is None else each.first_record_offset)
    partitions = sorted({each.partition for each in findings if each.partition is not None})
    if len(partitions) == 1:
        place = f"{counted(len(findings), 'time')} in {worst.topic}-{partitions[0]}, once"
    else:
        named = ", ".join(map(str, partitions[:MORE_NAMED])) + (" …" if len(partitions) > MORE_NAMED else "")
        place = f"{counted(len(partitions), 'partition')} of {worst.topic} ({named}); {worst.topic}-{worst.partition}"
    rows: list[EvidenceRow] = [row for each in findings for row in (each.evidence if isinstance(each.evidence, list) else ())]
    offsets = [offset for each in findings for offset in (each.first_record_offset, each.last_record_offset) if offset is not None]
    times = [time for each in findings for time in (each.first_timestamp_ms, each.last_timestamp_ms) if time is not None]
    not_excluded = dict.fromkeys(chain.from_iterable((each.not_excluded or "").split("; ") for each in findings))
    members = {each.member_id for each in findings}
    return replace(
        worst,
        sentence=f"{place}: {worst.sentence}",
        partition=partitions[0] if len(partitions) == 1 else None,
        member_id=members.pop() if len(members) == 1 else None,
        first_record_offset=min(offsets, default=None),
        last_record_offset=max(offsets, default=None),
        first_timestamp_ms=min(times, default=None),
        last_timestamp_ms=max(times, default=None),
        not_excluded="; ".join(filter(None, not_excluded)) or None,
        remedy=first.remedy,
        remedy_commands=first.remedy_commands,
        evidence=most_of(rows) or None,
    )
