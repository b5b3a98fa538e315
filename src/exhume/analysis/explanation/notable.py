"""Notable changes: offsets that a commit set back, and other findings about the group."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from exhume.analysis.detectors.report import counted
from exhume.analysis.explanation.facts import GroupFacts
from exhume.analysis.explanation.sentences import Sentence, named, partitions, records_of
from exhume.analysis.history import HistoryRow
from exhume.analysis.positions import committed, is_rewind, position_changes, topic_partition
from exhume.moments import at

#: The number of last rewinds that get a sentence of their own.
_MOST_REWINDS = 5
#: The number of findings that get a sentence of their own.
_MOST_FINDINGS = 12
#: The section about rebalances has the storms, that about the state the load, and that about missing records the damage.
_IN_OTHER_SECTIONS = ("IC-04", "rebalance_storm", "IC-36", "load_aborted")
#: The commit before, and the commit that sets the offset back.
_Rewind = tuple[HistoryRow, HistoryRow]


def notable(facts: GroupFacts) -> Iterator[Sentence]:
    """Yield rewinds, by the append that made them; then the findings about the group."""
    rewinds = list(_rewinds(facts))
    if len(rewinds) > _MOST_REWINDS:
        left = [row for rewind in rewinds[:-_MOST_REWINDS] for _, row in rewind]
        text = f"Offsets were set back {counted(len(rewinds), 'time')}; the last {_MOST_REWINDS} follow"
        yield Sentence(text, records_of(left))
    for rewind in rewinds[-_MOST_REWINDS:]:
        yield _rewind(facts, rewind)
    if not rewinds and facts.commits:
        lower = list(_lower_after_removals(facts))
        records = records_of([facts.commits[0], facts.commits[-1]])
        if lower:
            held, row = lower[-1]
            way = f"from {committed(held)} to {committed(row)}"
            text = f"After a removal, {counted(len(lower), 'commit')} began below the removed offset, the last of"
            key = partitions([topic_partition(row)])
            yield Sentence(f"{text} {key}: {way}", records_of([row for pair in lower for row in pair]))
        else:
            yield Sentence("No commit in the log set an offset back", records)
    found = [finding for finding in facts.findings if finding.code not in _IN_OTHER_SECTIONS]
    for finding in found[:_MOST_FINDINGS]:
        offsets = (finding.first_record_offset, finding.last_record_offset)
        records = tuple(offset for offset in offsets if offset is not None)
        command = facts.commands.of("diagnose", purpose="See these findings with their evidence")
        key = "" if finding.topic is None else f"{_key(finding.topic, finding.partition)}: "
        text = f"{key}{finding.sentence} ({finding.code})"
        yield Sentence(text, records, finding.confidence, finding.not_excluded, None if facts.is_past else command)
    if len(found) > _MOST_FINDINGS:
        yield Sentence(f"{counted(len(found) - _MOST_FINDINGS, 'more finding')}: exhume diagnose lists all")


def _rewinds(facts: GroupFacts) -> Iterator[list[_Rewind]]:
    """Yield commits that set an offset back, each with the commit before it; those of one append together."""
    by_append: dict[tuple[str, int], list[_Rewind]] = {}
    for held, row in position_changes(facts.history, by_producer_id=facts.profile.coordinator == "java"):
        if held is not None and is_rewind(held, row):
            by_append.setdefault((row["path"], row["byte_position"]), []).append((held, row))
    yield from by_append.values()


def _lower_after_removals(facts: GroupFacts) -> Iterator[_Rewind]:
    """Yield the first commits of keys after their removal that are below the removed offset, each with the commit that was removed."""
    removed: dict[tuple[str, int], HistoryRow] = {}
    for held, row in position_changes(facts.history, by_producer_id=facts.profile.coordinator == "java"):
        key = topic_partition(row)
        if row["is_tombstone"]:
            if held is not None:
                removed[key] = held
        elif held is None and key in removed:
            before = removed.pop(key)
            if is_rewind(before, row):
                yield before, row


def _rewind(facts: GroupFacts, rewind: Sequence[_Rewind]) -> Sentence:
    now = {(row["topic"], row["partition"]): row["committed_offset"] for row in facts.held["offsets"]}
    last = rewind[-1][1]
    keys = [topic_partition(row) for _, row in rewind]
    further = sum(key in now and now[key] >= committed(held) for key, (held, _) in zip(keys, rewind, strict=True))
    if len(rewind) == 1:
        held, row = rewind[0]
        by = f"by record {row['record_offset']}{at(row['timestamp_ms'])}"
        way = f"from {held['committed_offset']} to {row['committed_offset']}"
        text = f"{partitions(keys)} was set back {way} {by}{_since(now.get(keys[0]), row)}"
    else:
        deltas = [committed(held) - committed(row) for held, row in rewind]
        by = f"by records {rewind[0][1]['record_offset']} to {last['record_offset']}{at(last['timestamp_ms'])}"
        amount = f"{deltas[0]} each" if len(set(deltas)) == 1 else f"{min(deltas)} to {max(deltas)}"
        come = f"{further} of {len(rewind)} have" if further else "none has"
        text = f"{partitions(keys)} were set back by {amount}, {by}; {come} reached the earlier offset again"
    recreated = sorted({named(row["topic"]) for held, row in rewind if _is_recreated(held, row)})
    if recreated:
        text += f"; {', '.join(recreated)} had another topic id before: the topic was created again"
    purpose = "See the offsets before they went back, as a reset plan"
    command = facts.commands.by_release("reset-plan", "--before-rewind", "--output", "table", purpose=purpose)
    return Sentence(text, records_of([row for pair in rewind for row in pair]), next_command=None if facts.is_past else command)


def _key(topic: str, partition: int | None) -> str:
    return named(topic) if partition is None else f"{named(topic)} {partition}"


def _since(now: int | None, row: HistoryRow) -> str:
    if now is None:
        return "; the coordinator no longer has it"
    return "; it is still there" if now == row["committed_offset"] else f"; it is now at {now}"


def _is_recreated(held: HistoryRow, row: HistoryRow) -> bool:
    ids = [json.loads(each["value"] or "{}").get("topic_id") for each in (held, row)]
    return None not in ids and ids[0] != ids[1]
