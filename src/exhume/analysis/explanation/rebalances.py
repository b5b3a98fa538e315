"""The last rebalances of the group: time, causes that the log shows, and moved partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from exhume.analysis.detectors.report import counted, span
from exhume.analysis.explanation.facts import GroupFacts
from exhume.analysis.explanation.sentences import Sentence, listed, named, records_of
from exhume.analysis.rebalance_rows import RebalanceRow, storms
from exhume.analysis.rebalances import REBALANCE_EVENTS
from exhume.moments import at

#: The number of last rebalances that get a sentence of their own.
_MOST_REBALANCES = 5
_MOST_CLIENTS = 5
#: Causes of the first row after a group was created.
_BEGINNINGS = frozenset({"group_began", "first_seen"})
_CAUSES: Mapping[str, str] = {
    "group_began": "the group was created",
    "first_seen": "the log has nothing from before",
    "subscription_changed": "a member changed its subscription",
    "protocol_changed": "the protocol changed",
    "leader_changed": "the leader changed",
    "cooperative_follow_up": "partitions released before got new owners",
    "topics_changed": "the topics changed",
    "topology_changed": "the topology changed",
    "partitions_initialized": "more partitions became assignable",
    "converted": "the group was converted",
    "unknown": "the log does not show why",
}


def rebalances(facts: GroupFacts) -> Iterator[Sentence]:
    """Yield the number of rebalances, with and without a record; storms; then the last rebalances."""
    rows = [row for row in facts.rebalances if row["event"] in REBALANCE_EVENTS]
    if not rows:
        return
    yield _summary(facts, rows)
    for storm in storms(facts.rebalances):
        confidence = "proof" if storm.flappers else "likely"
        first = storm.rows[0]
        text = f"Rebalance storm since record {first['record_offset']}{at(first['timestamp_ms'])}: {storm.sentence}"
        yield Sentence(text, records_of(storm.rows), confidence)  # type: ignore[arg-type]
    for row in rows[-_MOST_REBALANCES:]:
        yield _rebalance(row)


def _summary(facts: GroupFacts, rows: list[RebalanceRow]) -> Sentence:
    words = {"generation" if row["group_type"] == "classic" else "epoch" for row in rows}
    word, many = (*words, f"{next(iter(words))}s") if len(words) == 1 else ("generation or epoch", "generations and epochs")
    command = facts.commands.of("rebalances", purpose="See the rebalances of the group, one by one")
    first, last = rows[0], rows[-1]
    lost = sum(row["skipped"] or 0 for row in rows if row["is_complete"])
    unsure = sum(row["skipped"] or 0 for row in rows if not row["is_complete"])
    lives = sum(not _BEGINNINGS.isdisjoint(row["causes"]) for row in rows)
    if len(rows) == 1:
        parts = [f"The log has {word} {_number(last)} of the group"]
    elif lives > 1:
        times = "once" if lives == 2 else f"{lives - 1} times"
        parts = [f"The log has {counted(len(rows), word, many)} of the group, which was removed and created again {times}"]
    else:
        parts = [f"The log has {counted(len(rows), word, many)} of the group, from {_number(first)} to {_number(last)}"]
    if lost:
        parts.append(f"{counted(lost, f'more {word}', f'more {many}')} never got an assignment and left no record")
    if unsure:
        parts.append(f"{counted(unsure, f'more {word}', f'more {many}')} left no record, or none that is still in the log")
    return Sentence("; ".join(parts), records_of([first, last]), next_command=command)


def _rebalance(row: RebalanceRow) -> Sentence:
    word = "Generation" if row["group_type"] == "classic" else "Epoch"
    clauses = [f"{word} {_number(row)}, record {row['record_offset']}{at(row['timestamp_ms'])}: {_why(row)}"]
    if row["event"] == "emptied":
        clauses.append("no member was left")
    else:
        clauses.append(counted(row["members"], "member"))
    if row["partitions_moved"]:
        clauses.append(f"{counted(row['partitions_moved'], 'partition')} moved")
    if row["partitions_lost"]:
        clauses.append(f"{counted(row['partitions_lost'], 'partition')} left without an owner")
    # If the log begins here, it does not show the owners before.
    if row["no_assignment_ms"] and "first_seen" not in row["causes"]:
        how = "" if row["no_assignment_is"] == "exactly" else "at least "
        clauses.append(f"no partition was assigned for {how}{span(row['no_assignment_ms'])}")
    if row["reconciliation_ms"] is not None:
        clauses.append(f"the members reconciled after {span(row['reconciliation_ms'])}")
    elif row["waiting"]:
        clauses.append(f"{counted(len(row['waiting']), 'member')} did not reconcile")
    records = records_of([row], "record_offset", "last_record_offset", "reconciled_record_offset")
    return Sentence("; ".join(clauses), records)


def _why(row: RebalanceRow) -> str:
    causes = [_CAUSES[cause] for cause in row["causes"] if cause in _CAUSES]
    back = set(row["joined_clients"] or ()) & set(row["left_clients"] or ())
    for clients, word in ((row["joined_clients"], "joined"), (row["left_clients"], "left")):
        names = [named(client) for client in dict.fromkeys(clients or ()) if client not in back]
        if names and "first_seen" not in row["causes"]:
            causes.append(f"{listed(names, most=_MOST_CLIENTS)} {word}")
    if back:
        causes.append(f"{listed([named(client) for client in sorted(back)], most=_MOST_CLIENTS)} came back under another member id")
    return ", ".join(causes) or "the log does not show why"


def _number(row: RebalanceRow) -> int:
    number = row["generation"] if row["group_type"] == "classic" else row["group_epoch"]
    return -1 if number is None else number
