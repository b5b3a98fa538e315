"""Build the findings of detectors: sentence, places, and the records as evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from sys import intern
from typing import NotRequired, TypedDict, TypeVar

from exhume.analysis.detectors.cases import GroupCase, GroupRecord, LogContext
from exhume.analysis.detectors.commits import Change, CommitRow, Dropped, Removal
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.explanation.sentences import Command
from exhume.analysis.memberships import Membership
from exhume.codecs.record_types import RECORD_TYPES
from exhume.findings import Confidence, Finding, Remedy, Severity


class EvidenceRow(TypedDict):
    """A record that a finding rests on, and what it says."""

    record_offset: int
    timestamp_ms: int | None
    what: str
    #: Of a record that cannot be decoded: its first bytes, in hexadecimal.
    key: NotRequired[str | None]
    value: NotRequired[str | None]


_Row = TypeVar("_Row")
#: What a finding can rest on.
Proof = CommitRow | Change | Removal | Dropped | GroupRecord | Membership | EvidenceRow

#: The remedy where the retention decides.
ADD_RETENTION = "Add --retention, the offsets.retention.minutes of the brokers"
#: The largest number of evidence rows of a finding.
_MOST_EVIDENCE = 50
#: The largest number of things that a sentence lists.
NAMED = 5
#: The same for the partitions of one topic, and for the owners of one.
MORE_NAMED = 10
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
    remedy: Remedy | str | None = None,
    most_evidence: int = _MOST_EVIDENCE,
) -> Finding:
    """Return a finding about a group, a key (with its `log_context`), or a log (with an optional `group`).

    The first and last record offset and time are those of the evidence, in log order. `not_excluded` are other explanations that the log
    does not rule out.
    """
    where = about.log_context if isinstance(about, GroupCase) else about if isinstance(about, LogContext) else log_context
    rows = sorted(chain.from_iterable(map(_rows, evidence)), key=_record_offset)
    rows = [row for number, row in enumerate(rows) if number == 0 or row != rows[number - 1]]
    times = [row["timestamp_ms"] for row in rows if row["timestamp_ms"] is not None]
    if isinstance(about, KeyHistory):
        topic, partition = about.topic, about.partition
    rows = most_of(rows, most_evidence)
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
        # Many findings have the same few texts.
        not_excluded=intern("; ".join(not_excluded)) or None,
        remedy=None if remedy is None else str(remedy),
        remedy_commands=remedy.commands if isinstance(remedy, Remedy) else (),
        evidence=rows or None,
    )


def most_of(rows: list[_Row], most: int = _MOST_EVIDENCE) -> list[_Row]:
    """Return these rows of evidence; of too many the first and the last ones."""
    return rows if len(rows) <= most else [*rows[: most // 2], *rows[-most // 2 :]]


def undecidable(
    code: str,
    reason: str,
    about: GroupCase | LogContext | None = None,
    *,
    remedy: Remedy | str | None = None,
    evidence: Iterable[Proof] = (),
) -> Finding:
    """Return the finding that a detector cannot decide, with the reason. Without `about`, it concerns all logs."""
    sentence = f"cannot decide: {reason}"
    if about is None:
        return Finding(
            code=code, sentence=sentence, severity="info", confidence="undecidable", remedy=None if remedy is None else str(remedy)
        )
    return finding(code, sentence, about, severity="info", confidence="undecidable", evidence=evidence, remedy=remedy)


def next_step(purpose: str, inputs: Inputs, subcommand: str, *arguments: str) -> Remedy:
    """Return a command as a remedy; without the command for a name that no command line can carry."""
    line = Command(subcommand, arguments, purpose).line(inputs.paths)
    return Remedy(purpose, () if line is None else (line,))


def before_record(log_context: LogContext, record_offset: int) -> tuple[str, str]:
    """Return the option for the moment before a record."""
    number = log_context.offsets_partition
    return "--at-offset", f"{record_offset - 1}" if number is None else f"{number}:{record_offset - 1}"


def only_record(log_context: LogContext, record_offset: int) -> tuple[str, ...]:
    """Return the options of `exhume dump` that select one record."""
    number = log_context.offsets_partition
    which = () if number is None else ("--offsets-partition", f"{number}")
    return *which, "--from-offset", f"{record_offset}", "--to-offset", f"{record_offset}"


def span(length_ms: float) -> str:
    """Format a length of time in at most two units: `7 d 6 min`, `2 h 5 min`, `80 s`, `250 ms`; `-80 s` if clocks went back."""
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
    """Format a count: `1 partition`, `2 partitions`."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def _rows(proof: Proof) -> list[EvidenceRow]:
    """Return rows of evidence: the record offset, the time, and a text about the record."""
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


@lru_cache(maxsize=4096)
def _row(record_offset: int, timestamp_ms: int | None, what: str) -> EvidenceRow:
    """Return a row of evidence. Many findings rest on the same few records: their rows are one object."""
    return {"record_offset": record_offset, "timestamp_ms": timestamp_ms, "what": what}


def partitions_of(topic: str, partitions: Sequence[int]) -> str:
    """Format the offsets of partitions: `the offset of orders-0`, `2 offsets of orders (0, 1)`."""
    if len(partitions) == 1:
        return f"the offset of {topic}-{partitions[0]}"
    return f"{counted(len(partitions), 'offset')} of {topic} ({some([str(partition) for partition in sorted(partitions)])})"


def partition_list(places: Sequence[tuple[str, int]]) -> str:
    """Format partitions of several topics: `t-0`, `3 partitions (t-0, t-1, u-0)`."""
    names = [f"{topic}-{partition}" for topic, partition in sorted(places)]
    return names[0] if len(names) == 1 else f"{counted(len(names), 'partition')} ({some(names)})"


def some(texts: Sequence[str]) -> str:
    """List the first few texts, and the number of the others."""
    more = f" and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
    return ", ".join(texts[:NAMED]) + more
