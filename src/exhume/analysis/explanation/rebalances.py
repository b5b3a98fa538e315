"""The last rebalances of the group: when, why as far as the log shows, and what moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from exhume.analysis.detectors.report import counted, span
from exhume.analysis.explanation.facts import GroupFacts
from exhume.analysis.explanation.sentences import Sentence, listed, named, records_of
from exhume.analysis.rebalance_rows import RebalanceRow
from exhume.analysis.rebalances import REBALANCE_EVENTS
from exhume.analysis.storms import storms
from exhume.analysis.times import at

#: The last ones that get a sentence of their own.
_MOST_REBALANCES = 5
_MOST_CLIENTS = 5
#: Causes of the first row of each life of a group.
_BEGINNINGS = frozenset({"group_began", "first_seen"})
_CAUSES: Mapping[str, str] = {
    "group_began": "the group began",
    "first_seen": "what was before it is not in the log",
    "subscription_changed": "a member changed its subscription",
    "protocol_changed": "the protocol changed",
    "leader_changed": "the leader changed",
    "cooperative_follow_up": "partitions given up before found their owners",
    "topics_changed": "the topics changed",
    "topology_changed": "the topology changed",
    "partitions_initialized": "more partitions could be given to its members",
    "converted": "the group was converted",
    "unknown": "why is not in the log",
}


def rebalances(facts: GroupFacts) -> Iterator[Sentence]:
    """How many there were and how many left no record, storms, then the last ones."""
    rows = [row for row in facts.rebalances if row["event"] in REBALANCE_EVENTS]
    if not rows:
        return
    yield _summary(facts, rows)
    for storm in storms(facts.rebalances):
        confidence = "proof" if storm.flappers else "likely"
        first = storm.rows[0]
        text = f"A storm from record {first['record_offset']}{at(first['timestamp_ms'])} on: {storm.sentence}"
        yield Sentence(text, records_of(storm.rows), confidence)  # type: ignore[arg-type]
    for row in rows[-_MOST_REBALANCES:]:
        yield _rebalance(row)


def _summary(facts: GroupFacts, rows: list[RebalanceRow]) -> Sentence:
    words = {"generation" if row["group_type"] == "classic" else "epoch" for row in rows}
    word, many = (*words, f"{next(iter(words))}s") if len(words) == 1 else ("generation or epoch", "generations and epochs")
    command = facts.commands.of("rebalances", purpose="See its rebalances, one by one")
    first, last = rows[0], rows[-1]
    lost = sum(row["skipped"] or 0 for row in rows if row["is_complete"])
    unsure = sum(row["skipped"] or 0 for row in rows if not row["is_complete"])
    lives = sum(not _BEGINNINGS.isdisjoint(row["causes"]) for row in rows)
    if len(rows) == 1:
        parts = [f"The log has {word} {_number(last)} of it"]
    elif lives > 1:
        parts = [f"The log has {counted(len(rows), word, many)} of {lives} lives of it"]
    else:
        parts = [f"The log has {counted(len(rows), word, many)} of it, from {_number(first)} to {_number(last)}"]
    if lost:
        parts.append(f"{counted(lost, word, many)} besides never got an assignment, and left no record")
    if unsure:
        parts.append(f"of {counted(unsure, word, many)} besides no record is left, or there never was one")
    return Sentence("; ".join(parts), records_of([first, last]), next_command=command)


def _rebalance(row: RebalanceRow) -> Sentence:
    word = "Generation" if row["group_type"] == "classic" else "Epoch"
    told = [f"{word} {_number(row)}, record {row['record_offset']}{at(row['timestamp_ms'])}: {_why(row)}"]
    if row["event"] == "emptied":
        told.append("nobody was left")
    else:
        told.append(counted(row["members"], "member"))
    if row["partitions_moved"]:
        told.append(f"{counted(row['partitions_moved'], 'partition')} moved")
    if row["partitions_lost"]:
        told.append(f"{counted(row['partitions_lost'], 'partition')} left without an owner")
    # Who had something before is not known where the log begins with this.
    if row["no_assignment_ms"] and "first_seen" not in row["causes"]:
        how = "" if row["no_assignment_is"] == "exactly" else "at least "
        told.append(f"nobody had anything for {how}{span(row['no_assignment_ms'])}")
    if row["reconciliation_ms"] is not None:
        told.append(f"settled after {span(row['reconciliation_ms'])}")
    elif row["waiting"]:
        told.append(f"{counted(len(row['waiting']), 'member')} never settled in it")
    records = records_of([row], "record_offset", "last_record_offset", "reconciled_record_offset")
    return Sentence("; ".join(told), records)


def _why(row: RebalanceRow) -> str:
    causes = [_CAUSES[cause] for cause in row["causes"] if cause in _CAUSES]
    back = set(row["joined_clients"] or ()) & set(row["left_clients"] or ())
    for clients, word in ((row["joined_clients"], "joined"), (row["left_clients"], "left")):
        names = [named(client) for client in dict.fromkeys(clients or ()) if client not in back]
        if names and "first_seen" not in row["causes"]:
            causes.append(f"{listed(names, most=_MOST_CLIENTS)} {word}")
    if back:
        causes.append(f"{listed([named(client) for client in sorted(back)], most=_MOST_CLIENTS)} came back under another member id")
    return ", ".join(causes) or "why is not in the log"


def _number(row: RebalanceRow) -> int:
    number = row["generation"] if row["group_type"] == "classic" else row["group_epoch"]
    return -1 if number is None else number
