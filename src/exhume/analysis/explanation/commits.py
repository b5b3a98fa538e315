"""The commits of the group: offsets, rate, last commit, and commits of transactions."""

from __future__ import annotations

from collections.abc import Iterator

from exhume.analysis.detectors.report import counted, span
from exhume.analysis.explanation.facts import GroupFacts
from exhume.analysis.explanation.sentences import Command, Sentence, listed, named, numbers, often, partitions, records_of
from exhume.moments import at
from exhume.replay.state_tables import OffsetRow

#: The number of topics that get a sentence of their own.
_MOST_TOPICS = 8
#: Fewer commits, or a shorter time, give no rate.
_LEAST_COMMITS, _LEAST_TIME_MS = 3, 10_000


def commits(facts: GroupFacts) -> Iterator[Sentence]:
    """Yield the offsets that the coordinator has, topic by topic; the commits in the log, the last one, and those of transactions."""
    held = facts.held["offsets"]
    if held:
        if len({row["topic"] for row in held}) > 1:
            keys = partitions((row["topic"], row["partition"]) for row in held)
            yield Sentence(f"The coordinator has {counted(len(held), 'offset')}: {keys}", records_of(held))
        yield from _by_topic(facts)
    elif facts.kind == "share":
        yield Sentence("A share group commits no offsets here: its progress is in __share_group_state")
    elif facts.history and facts.is_loaded:
        yield Sentence("The coordinator has no committed offset of the group", records_of(facts.commits[-1:]))
    yield from _in_the_log(facts)
    yield from _pending(facts)
    yield from _aborted(facts)


def _by_topic(facts: GroupFacts) -> Iterator[Sentence]:
    by_topic: dict[str, list[OffsetRow]] = {}
    for row in facts.held["offsets"]:
        by_topic.setdefault(row["topic"], []).append(row)
    newest = sorted(by_topic.values(), key=lambda rows: max(row["record_offset"] for row in rows), reverse=True)
    for rows in newest[:_MOST_TOPICS]:
        low, high = (pick(rows, key=lambda row: row["committed_offset"]) for pick in (min, max))
        last = max(rows, key=lambda row: row["record_offset"])
        if len(rows) == 1:
            where = f"{named(last['topic'])} {last['partition']} is at {last['committed_offset']}"
        else:
            lowest, highest = (f"{row['committed_offset']} (partition {row['partition']})" for row in (low, high))
            topic = f"{named(last['topic'])} {numbers(row['partition'] for row in rows)}"
            same = low["committed_offset"] == high["committed_offset"]
            where = f"{topic} are at {low['committed_offset']}" if same else f"{topic} are between {lowest} and {highest}"
        when = f"last committed by record {last['record_offset']}{at(last['commit_timestamp_ms'])}"
        yield Sentence(f"{where}, {when}", records_of(rows))
    if len(newest) > _MOST_TOPICS:
        left = newest[_MOST_TOPICS:]
        command = facts.commands.by_release("state", *facts.commands.moment, "--table", "offsets", purpose="See all committed offsets")
        yield Sentence(
            f"{counted(len(left), 'more topic')} {'is' if len(left) == 1 else 'are'} not listed here",
            records_of(row for rows in left for row in rows),
            next_command=command,
        )


def _in_the_log(facts: GroupFacts) -> Iterator[Sentence]:
    found = facts.commits
    if not found:
        return
    first, last = found[0], found[-1]
    what = f"The log has {counted(len(found), 'commit')} of the group"
    if len(found) > 1 and None not in (first["timestamp_ms"], last["timestamp_ms"]):
        begin, end = (f"record {row['record_offset']}{at(row['timestamp_ms'])}" for row in (first, last))
        what += f", from {begin} to {end}"
    yield Sentence(what, records_of([first, last]))
    yield from _rate(facts)
    if facts.end_ms is not None and last["timestamp_ms"] is not None and facts.end_ms > last["timestamp_ms"]:
        end = "this moment" if facts.is_past else "the log ends"
        text = f"Its last commit is record {last['record_offset']}, {span(facts.end_ms - last['timestamp_ms'])} before {end}"
        yield Sentence(text, records_of([last]))


def _rate(facts: GroupFacts) -> Iterator[Sentence]:
    """Yield the rate of commits since the record offset from which the log is complete."""
    whole = [row for row in facts.commits if row["record_offset"] >= facts.complete_from and row["timestamp_ms"] is not None]
    # Commits of one append are one request.
    times_ms = {(row["path"], row["byte_position"]): row["timestamp_ms"] or 0 for row in whole}
    first_ms, last_ms = next(iter(times_ms.values()), 0), next(reversed(times_ms.values()), 0)
    length_ms = last_ms - first_ms
    if len(times_ms) < _LEAST_COMMITS or length_ms < _LEAST_TIME_MS:
        return
    it = "It" if not facts.complete_from else f"From record {facts.complete_from} on, where the log is complete, it"
    text = f"{it} committed {len(times_ms)} times in {span(length_ms)}, {often(len(times_ms) - 1, length_ms)}"
    yield Sentence(text, records_of([whole[0], whole[-1]]))


def _pending(facts: GroupFacts) -> Iterator[Sentence]:
    by_producer: dict[tuple[int | None, int | None], list[OffsetRow]] = {}
    for row in facts.held["pending_offsets"]:
        by_producer.setdefault((row["producer_id"], row["producer_epoch"]), []).append(row)
    for (producer_id, producer_epoch), rows in by_producer.items():
        opened = next((row for row in facts.held["open_transactions"] if row["producer_id"] == producer_id), None)
        since = "" if opened is None else f", open since record {opened['first_record_offset']}{at(opened['first_timestamp_ms'])}"
        length = "" if opened is None else _open_for(facts, opened["first_timestamp_ms"])
        keys = partitions((row["topic"], row["partition"]) for row in rows)
        verb = "waits" if len(rows) == 1 else "wait"
        text = f"{keys} {verb} for the end of a transaction of producer {producer_id}, epoch {producer_epoch}{since}{length}"
        refused = facts.profile.require_stable == "refused"
        text += "; the coordinator refuses a fetch of it that requires stable offsets" if refused and len(rows) == 1 else ""
        text += "; the coordinator refuses a fetch of them that requires stable offsets" if refused and len(rows) > 1 else ""
        command = Command("transactions", (), "See open transactions and the offsets that wait for them")
        records = (*records_of(rows), *(() if opened is None else records_of([opened], "first_record_offset", "last_record_offset")))
        yield Sentence(text, records, next_command=command)


def _open_for(facts: GroupFacts, since_ms: int | None) -> str:
    if since_ms is None or facts.end_ms is None or facts.end_ms <= since_ms:
        return ""
    return f", {span(facts.end_ms - since_ms)} before {'this moment' if facts.is_past else 'the log ends'}"


def _aborted(facts: GroupFacts) -> Iterator[Sentence]:
    rows = [row for row in facts.commits if row["transaction_outcome"] == "ABORT"]
    if rows:
        keys = listed(sorted({f"{named(row['topic'])} {row['partition']}" for row in rows}))
        verb = "was aborted with its transaction" if len(rows) == 1 else "were aborted with their transactions"
        text = f"{counted(len(rows), 'commit')} ({keys}) {verb} and never counted"
        yield Sentence(text, records_of(rows, "record_offset", "marker_record_offset"))
