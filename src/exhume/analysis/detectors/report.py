"""Findings of detectors: how they are said, and the records that they rest on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from exhume.analysis.detectors.cases import GroupCase, GroupRecord, LogContext
from exhume.analysis.detectors.commits import Change, CommitRow, Dropped, Removal
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.memberships import Membership
from exhume.codecs.record_types import RECORD_TYPES
from exhume.findings import Confidence, Finding, Severity

#: What a finding can rest on; a dict is a row of evidence as it is: `record_offset`, `timestamp_ms`, `what`.
Proof = CommitRow | Change | Removal | Dropped | GroupRecord | Membership | dict[str, Any]

#: Rows of evidence of a finding at most.
_MOST_EVIDENCE = 50
#: How many of many things a sentence names.
_NAMED = 5
_record_offset = itemgetter("record_offset")
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


def finding(
    code: str,
    sentence: str,
    about: GroupCase | KeyHistory | LogContext,
    *,
    log_context: LogContext | None = None,
    severity: Severity = "warn",
    confidence: Confidence = "likely",
    evidence: Iterable[Proof] = (),
    group: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
    member_id: str | None = None,
    not_excluded: Iterable[str] = (),
    remedy: str | None = None,
) -> Finding:
    """A finding about a group, a key (with what is `log_context` it), or a log, where `group` may name whom it is about.

    First and last record and time are those of the evidence, in the order of the log; `not_excluded` are the traps that could not be ruled
    out.
    """
    where = about.log_context if isinstance(about, GroupCase) else about if isinstance(about, LogContext) else log_context
    rows = sorted(chain.from_iterable(map(_rows, evidence)), key=_record_offset)
    rows = [row for number, row in enumerate(rows) if number == 0 or row != rows[number - 1]]
    times = [row["timestamp_ms"] for row in rows if row["timestamp_ms"] is not None]
    if isinstance(about, KeyHistory):
        topic, partition = about.topic, about.partition
    if len(rows) > _MOST_EVIDENCE:
        rows = [*rows[: _MOST_EVIDENCE // 2], *rows[-_MOST_EVIDENCE // 2 :]]
    return Finding(
        code=code,
        sentence=sentence,
        severity=severity,
        confidence=confidence,
        replica=where.replica if where else None,
        offsets_partition=where.offsets_partition if where else None,
        group=group if isinstance(about, LogContext) else about.group,
        topic=topic,
        partition=partition,
        member_id=member_id,
        first_record_offset=rows[0]["record_offset"] if rows else None,
        last_record_offset=rows[-1]["record_offset"] if rows else None,
        first_timestamp_ms=times[0] if times else None,
        last_timestamp_ms=times[-1] if times else None,
        not_excluded="; ".join(not_excluded) or None,
        remedy=remedy,
        evidence=rows or None,
    )


def undecidable(
    code: str, reason: str, about: GroupCase | LogContext | None = None, *, remedy: str | None = None, evidence: Iterable[Proof] = ()
) -> Finding:
    """That a detector cannot decide, and why; about everything where it is about nothing in particular."""
    sentence = f"undecidable, because {reason}"
    if about is None:
        return Finding(code=code, sentence=sentence, severity="info", confidence="undecidable", remedy=remedy)
    return finding(code, sentence, about, severity="info", confidence="undecidable", evidence=evidence, remedy=remedy)


def span(length_ms: float) -> str:
    """A length of time for people, in two units at most: `7 d 6 min`, `2 h 5 min`, `80 s`, `250 ms`; `-80 s` where clocks went back."""
    if length_ms < 0:
        return f"-{span(-length_ms)}"
    if length_ms < 1000:
        return f"{length_ms:.0f} ms"
    seconds = round(length_ms / 1000)
    if seconds < 2 * _MINUTE_S:
        return f"{seconds} s"
    days, hours, minutes = seconds // _DAY_S, seconds % _DAY_S // _HOUR_S, seconds % _HOUR_S // _MINUTE_S
    parts = [f"{number} {unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if number]
    return " ".join(parts[:2])


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 partition`, `2 partitions`."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def _rows(proof: Proof) -> list[dict[str, Any]]:
    """A record, or what a change is made of, as rows: where it lies, when it was written, what it says."""
    match proof:
        case Membership():
            number = proof.generation if proof.kind == "classic" else proof.group_epoch
            text = "group removed" if proof.is_tombstone else f"{proof.kind} group at {number}, {counted(len(proof.members), 'member')}"
            return [_row(proof.record_offset, proof.timestamp_ms, text)]
        case CommitRow():
            detail = [f"leader epoch {proof.leader_epoch}"] if proof.leader_epoch >= 0 else []
            detail += [f"producer {proof.producer_id}"] if proof.producer_id is not None else []
            return [_row(proof.record_offset, proof.timestamp_ms, ", ".join([f"commit of {proof.committed_offset}", *detail]))]
        case dict():
            return [proof]
        case Change():
            return [row for commit in (proof.before, proof.commit) if commit is not None for row in _rows(commit)]
        case Removal():
            before = [] if proof.value is None else _rows(proof.value)
            return [*before, _row(proof.record_offset, proof.timestamp_ms, "tombstone")]
        case Dropped():
            staged = f"staged {proof.commit.committed_offset}, producer {proof.commit.producer_id}"
            rows = [_row(proof.commit.record_offset, proof.commit.timestamp_ms, staged)]
            if proof.marker_offset is not None:
                rows.append(_row(proof.marker_offset, proof.marker_timestamp_ms, f"{proof.outcome} marker"))
            return rows
        case GroupRecord():
            return [_row(proof.record_offset, proof.timestamp_ms, _group_text(proof))]


def _group_text(record: GroupRecord) -> str:
    name = RECORD_TYPES[record.record_type].name
    return f"{name} tombstone" if record.value is None else f"{name}: the group is {record.phase}"


def _row(record_offset: int, timestamp_ms: int | None, what: str) -> dict[str, Any]:
    return {"record_offset": record_offset, "timestamp_ms": timestamp_ms, "what": what}


def partitions_of(topic: str, partitions: Sequence[int]) -> str:
    """Offsets for people: `the offset of orders-0`, `2 offsets of orders (0, 1)`."""
    if len(partitions) == 1:
        return f"the offset of {topic}-{partitions[0]}"
    return f"{counted(len(partitions), 'offset')} of {topic} ({some([str(partition) for partition in sorted(partitions)])})"


def some(texts: Sequence[str]) -> str:
    """The first few of these, and how many more there are."""
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return ", ".join(texts[:_NAMED]) + more
