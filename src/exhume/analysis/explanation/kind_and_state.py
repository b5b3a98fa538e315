"""The kind of the group, its first record and its offsets partition; its state at the moment, and how certain that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from exhume.analysis.detectors.report import counted, span
from exhume.analysis.explanation.facts import GroupFacts
from exhume.analysis.explanation.sentences import Sentence, named, records_of
from exhume.analysis.memberships import Membership
from exhume.codecs.offsets_topic import DEFAULT_PARTITION_COUNT, offsets_partition_of
from exhume.findings import Confidence
from exhume.moments import at, show_time
from exhume.replay.state_tables import GroupRow

#: The users of classic groups by protocol type. Kafka Streams states consumer too; its assignor gives it away.
_USERS: Mapping[str, str] = {
    "consumer": "of consumers",
    "connect": "of Kafka Connect workers",
    "sr": "of Schema Registry instances",
}
_KINDS: Mapping[str, str] = {
    "consumer": "a consumer group: its coordinator assigns the partitions (KIP-848)",
    "share": "a share group: several members read one partition (KIP-932), and its progress is in __share_group_state",
    "streams": "a streams group: its coordinator assigns the tasks of a topology (KIP-1071)",
}
_SURE: Mapping[str, tuple[str, Confidence]] = {
    "certain": ("This state is complete", "proof"),
    "at_least": ("The coordinator may have had more than this", "possible"),
    "unknown": ("This state may be incomplete", "undecidable"),
}

#: Answers of `why.WHY` about a group.
_WHY: Mapping[str, str] = {
    "pending": "It has only commits of open transactions",
    "aborted": "Its commits were aborted",
    "expired": "It expired",
    "group_deleted": "It was deleted by a request",
    "offsets_deleted": "Its offsets were deleted by a request",
    "topic_deleted": "It was removed with its topic",
    "last_member_left": "It was removed with its last member",
    "removed": "It was removed",
    "not_shown": "The coordinator loads it and does not show it",
    "not_read": "No broker reads it",
    "not_kept": "This release does not keep it",
}


def identity(facts: GroupFacts) -> Iterator[Sentence]:
    """Yield the kind of the group, its first record, earlier removals, and its offsets partition."""
    if facts.history:
        yield _kind(facts)
    yield from _begin(facts)
    yield from _earlier_groups(facts)
    yield from _place(facts)


def _kind(facts: GroupFacts) -> Sentence:
    verb = "is" if facts.group_row is not None else "was"
    described = next((step for step in reversed(facts.steps) if not step.is_tombstone and not step.is_placeholder), None)
    if facts.kind is None:
        records = records_of([*facts.held["offsets"], *facts.held["pending_offsets"]]) or records_of(facts.history[-1:])
        return Sentence(f"It {verb} a group of committed offsets alone: the log has no record of members", records)
    if described is None:
        tombstones = [step.record_offset for step in facts.steps]
        return Sentence(f"It was a {facts.kind} group; only its tombstone is left", tuple(tombstones[-1:]))
    records = (described.record_offset,)
    if facts.kind != "classic":
        return Sentence(f"It {verb} {_KINDS[facts.kind]}", records)
    return Sentence(f"It {verb} a classic group {_users(described, facts.steps)}", records)


def _users(described: Membership, steps: Sequence[Membership]) -> str:
    """Return the users of a classic group, by its last protocol: an Empty group has none."""
    if not described.protocol:
        described = next((step for step in reversed(steps) if step.protocol), described)
    protocol_type, protocol = described.protocol_type, described.protocol
    if not protocol_type:
        return "without a protocol type"
    if protocol_type == "consumer" and protocol == "stream":
        return "of Kafka Streams instances (protocol stream)"
    users = _USERS.get(protocol_type, f"of protocol type {named(protocol_type)}")
    return f"{users} (protocol {named(protocol)})" if protocol else users


def _begin(facts: GroupFacts) -> Iterator[Sentence]:
    if not facts.history:
        return
    first = facts.history[0]
    record = f"record {first['record_offset']}{at(first['timestamp_ms'])}"
    if facts.is_complete:
        yield Sentence(f"Its first record is {record}; no record of this log is missing", (first["record_offset"],))
    else:
        text = f"Its oldest record left is {record}; earlier records, if any, are gone"
        yield Sentence(text, records_of([first]))


def _earlier_groups(facts: GroupFacts) -> Iterator[Sentence]:
    ends = [step for step in facts.steps[:-1] if step.is_tombstone]
    if ends:
        times = "once" if len(ends) == 1 else f"{len(ends)} times"
        yield Sentence(f"It was removed {times} before and created again", tuple(step.record_offset for step in ends))
    for step in facts.steps:
        if step.converted_from is not None:
            record = f"Record {step.record_offset}{at(step.timestamp_ms)}"
            text = f"{record} converted it from a {step.converted_from} group to a {step.kind} group"
            yield Sentence(text, (step.record_offset, step.last_record_offset))


def _place(facts: GroupFacts) -> Iterator[Sentence]:
    number = facts.origin[1]
    if number is None:
        return
    usual = offsets_partition_of(facts.group)
    if usual == number:
        yield Sentence(
            f"Its records are in offsets partition {number}, as in any cluster with {DEFAULT_PARTITION_COUNT} offsets partitions"
        )
    else:
        text = f"Its records are in offsets partition {number}; with {DEFAULT_PARTITION_COUNT} offsets partitions they would be in {usual}"
        other = "the cluster has another number of offsets partitions, or these records were copied from elsewhere"
        yield Sentence(text, not_excluded=other)


def standing(facts: GroupFacts) -> Iterator[Sentence]:
    """Yield the state of the group in a coordinator, or why it has none; then how complete that is."""
    if not facts.history:
        yield Sentence(f"{_moment(facts)} the log has no record of the group: its first record is later")
    elif not facts.is_loaded:
        yield _not_loaded(facts)
    elif facts.group_row is not None:
        yield from _held(facts, facts.group_row)
    else:
        yield from _not_held(facts)
    sure, confidence = _SURE[facts.grade]
    yield Sentence(f"{sure}: {facts.grade_reason}", confidence=confidence)


def _moment(facts: GroupFacts) -> str:
    last = facts.last_record_offset
    if last is None:
        return "Before the first record" if facts.is_past else "In this log"
    record = f"record {last}{at(facts.end_ms)}"
    if facts.is_past:
        return f"As of {record}"
    return f"At the end of the log ({record})" if facts.is_loaded else "At the end of the log"


def _holder(facts: GroupFacts) -> str:
    return f"{_moment(facts)} a coordinator of {facts.load['release']} has"


def _not_loaded(facts: GroupFacts) -> Sentence:
    load = facts.load
    where = "" if load["record_offset"] is None else f" at record {load['record_offset']}"
    text = f"{_holder(facts)} nothing of the group: its load is {load['outcome']}{where}: {load['reason']}"
    command = facts.commands.by_release("state", "--mode", "lenient", purpose="See what the log has after the end of that load")
    return Sentence(text, records_of([load]), next_command=command)


def _held(facts: GroupFacts, row: GroupRow) -> Iterator[Sentence]:
    records = records_of([row])
    holder = f"{_holder(facts)} the group in state {row['group_state']}"
    if facts.kind is None:
        yield Sentence(f"{holder}, with {counted(len(facts.held['offsets']), 'offset')} and no member", records)
    elif row["group_type"] == "classic":
        yield Sentence(f"{holder}, in generation {row['generation']}, by record {row['record_offset']}{_time_of(facts)}", records)
    else:
        yield Sentence(f"{holder}, at group epoch {row['group_epoch']}{_assignment_epoch(row)}", records)
    if row["group_state"] == "Empty" and facts.kind == "classic" and row["current_state_timestamp_ms"] is not None:
        since_ms = row["current_state_timestamp_ms"]
        yield Sentence(f"It became Empty at {show_time(since_ms)}{_before_end(facts, since_ms)}", records)
    if facts.held["members"] and row["group_type"] == "classic":
        hidden = "a rebalance was in progress at this moment"
        yield Sentence("Only a finished rebalance leaves a record", records, not_excluded=hidden)


def _time_of(facts: GroupFacts) -> str:
    step = facts.step
    return "" if step is None else at(step.timestamp_ms)


def _assignment_epoch(row: GroupRow) -> str:
    if row["assignment_epoch"] is None or row["assignment_epoch"] == row["group_epoch"]:
        return ""
    return f", with an assignment of epoch {row['assignment_epoch']}"


def _before_end(facts: GroupFacts, since_ms: int) -> str:
    if facts.end_ms is None or facts.end_ms <= since_ms:
        return ""
    return f", {span(facts.end_ms - since_ms)} before {'this moment' if facts.is_past else 'the log ends'}"


def _not_held(facts: GroupFacts) -> Iterator[Sentence]:
    why = next((row for row in facts.why if row["topic"] is None), None)
    offsets = facts.held["offsets"]
    if offsets:
        yield Sentence(f"{_holder(facts)} {counted(len(offsets), 'offset')} of the group, but no group of this name", records_of(offsets))
    else:
        yield Sentence(f"{_holder(facts)} nothing of the group", records_of(facts.history[-1:]))
    if why is not None and not why["is_there"]:
        command = facts.commands.by_release("why", purpose="See why the group and its offsets are gone")
        text = f"{_WHY.get(why['code'], 'The coordinator does not have it')}: {why['sentence']}"
        yield Sentence(text, tuple(why["records"]), why["confidence"], why["not_excluded"], None if facts.is_past else command)
