"""Records and offsets that are gone, and offsets that expire next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from exhume.analysis.detectors.report import counted, span
from exhume.analysis.explanation.facts import GroupFacts
from exhume.analysis.explanation.sentences import Command, Sentence, partitions, records_of
from exhume.analysis.forecast import ForecastRow
from exhume.analysis.why import WhyRow
from exhume.moments import show_time

#: The number of answers about offsets that get a sentence of their own.
_MOST_ANSWERS = 6
#: Answers of `why.WHY` about offsets that the coordinator has, or never had.
_NOT_GONE = ("there", "never_there")


def missing(facts: GroupFacts) -> Iterator[Sentence]:
    """Yield damage, missing records, offsets that are gone with their causes, and offsets that expire next."""
    yield from _damage(facts)
    yield from _records(facts)
    yield from _offsets(facts)
    yield from _expiry(facts)


def _damage(facts: GroupFacts) -> Iterator[Sentence]:
    command = Command("inspect", (), "See what is damaged, by file and byte")
    for finding in facts.damage[:_MOST_ANSWERS]:
        offsets = (finding.first_record_offset, finding.last_record_offset)
        records = tuple(offset for offset in offsets if offset is not None)
        yield Sentence(f"Part of the log is damaged: {finding.sentence}", records, finding.confidence, finding.not_excluded, command)
    if len(facts.damage) > _MOST_ANSWERS:
        yield Sentence(f"{len(facts.damage) - _MOST_ANSWERS} more findings of damage are not listed here", next_command=command)


def _records(facts: GroupFacts) -> Iterator[Sentence]:
    if facts.missing_offsets:
        text = f"{counted(facts.missing_offsets, 'record offset')} of this log {'has' if facts.missing_offsets == 1 else 'have'} no record"
        tail = f"; from record {facts.complete_from} on the log is complete" if facts.complete_from else ""
        other = "records of this group among them: compaction leaves no trace of removed records"
        yield Sentence(f"{text}{tail}", not_excluded=other)
    elif facts.is_complete:
        yield Sentence("No record of this log is missing")


def _offsets(facts: GroupFacts) -> Iterator[Sentence]:
    alike: dict[tuple[str, str, str], list[WhyRow]] = {}
    for row in facts.why:
        if row["topic"] is not None and not row["is_there"] and row["code"] not in _NOT_GONE:
            alike.setdefault((row["topic"], row["code"], row["confidence"]), []).append(row)
    answers = list(alike.values())
    for rows in answers[:_MOST_ANSWERS]:
        yield _gone(facts, rows)
    if len(answers) > _MOST_ANSWERS:
        left = [row for rows in answers[_MOST_ANSWERS:] for row in rows]
        records = tuple(offset for row in left for offset in row["records"])
        yield Sentence(f"{counted(len(left), 'more offset')} {'is' if len(left) == 1 else 'are'} gone", records)


def _gone(facts: GroupFacts, rows: list[WhyRow]) -> Sentence:
    first = rows[0]
    code = "" if first["code"] == "removed" else f" ({first['code'].replace('_', ' ')})"
    likewise = "" if len(rows) == 1 else f"; the same for the other {len(rows) - 1}" if len(rows) > 2 else "; the same for the other"
    records = tuple(offset for row in rows for offset in row["records"])
    arguments = ("--topic", first["topic"] or "", *(("--partition", str(first["partition"])) if len(rows) == 1 else ()))
    command = facts.commands.by_release("why", *arguments, purpose="See why these offsets are gone")
    text = f"{_keys(rows)} {'is' if len(rows) == 1 else 'are'} gone{code}: {first['sentence']}{likewise}"
    return Sentence(text, records, first["confidence"], first["not_excluded"], None if facts.is_past else command)


def _expiry(facts: GroupFacts) -> Iterator[Sentence]:
    """Yield the offsets that expire next by the rules of the release, if nothing changes."""
    rows = [row for row in facts.forecast if row["kind"] == "offset"]
    if not rows:
        return
    rule = f"By the rules of {facts.load['release']}, with a retention of {span(facts.retention_ms)}"
    command = None if facts.is_past else facts.commands.by_release("expiry", purpose="See what expires, when, and by which rule")
    coming = [row for row in rows if row["expires_at_ms"] is not None]
    if coming:
        verb = "expires" if len(coming) == 1 else "expire"
        text = f"{rule}, {_keys(coming)} {verb} at {_expiry_times(coming)} if nothing changes: {coming[0]['reason']}"
        other = "another retention in the broker's configuration"
        yield Sentence(text, records_of(coming), not_excluded=other, next_command=command)
    staying = [row for row in rows if row["expires_at_ms"] is None]
    if staying:
        verb = "never expires" if len(staying) == 1 else "never expire"
        text = f"{rule}, {_keys(staying)} {verb} if nothing changes: {staying[0]['reason']}"
        yield Sentence(text, records_of(staying), next_command=command)


def _keys(rows: Sequence[WhyRow | ForecastRow]) -> str:
    return partitions((row["topic"] or "", row["partition"] or 0) for row in rows)


def _expiry_times(rows: Sequence[ForecastRow]) -> str:
    """Return the time at which these offsets expire, or the first and the last one."""
    times = [row["expires_at_ms"] or 0 for row in rows]
    first, last = min(times), max(times)
    return show_time(first) if first == last else f"{show_time(first)} to {show_time(last)}"
