"""What the group is: its kind, since when it is there, and where its records lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from exhume.analysis.explanation.facts import GroupFacts
from exhume.analysis.explanation.sentences import Sentence, named, records_of
from exhume.analysis.memberships import Membership
from exhume.analysis.times import at
from exhume.codecs.offsets_topic import DEFAULT_PARTITION_COUNT, offsets_partition_of

#: Protocol types of classic groups, and who uses them. Kafka Streams says consumer, too, and is known by its assignor.
_USERS: Mapping[str, str] = {
    "consumer": "of consumers",
    "connect": "of Kafka Connect workers",
    "sr": "of Schema Registry instances",
}
_KINDS: Mapping[str, str] = {
    "consumer": "a consumer group: its coordinator shares the partitions out (KIP-848)",
    "share": "a share group: its members read the same partitions side by side (KIP-932), and its progress is not kept in this topic",
    "streams": "a streams group: its coordinator shares the tasks of a topology out (KIP-1071)",
}


def identity(facts: GroupFacts) -> Iterator[Sentence]:
    """What kind of group it is, since when the log knows it, its earlier lives, and its place."""
    if facts.history:
        yield _kind(facts)
    yield from _begin(facts)
    yield from _lives(facts)
    yield from _place(facts)


def _kind(facts: GroupFacts) -> Sentence:
    verb = "is" if facts.group_row is not None else "was"
    described = next((step for step in reversed(facts.steps) if not step.is_tombstone and not step.is_placeholder), None)
    if facts.kind is None:
        records = records_of([*facts.held["offsets"], *facts.held["pending_offsets"]]) or records_of(facts.history[-1:])
        return Sentence(f"It {verb} nothing but its offsets: the log has no record of members", records)
    if described is None:
        tombstones = [step.record_offset for step in facts.steps]
        return Sentence(f"It was a {facts.kind} group, and only the tombstone of it is left", tuple(tombstones[-1:]))
    records = (described.record_offset,)
    if facts.kind != "classic":
        return Sentence(f"It {verb} {_KINDS[facts.kind]}", records)
    return Sentence(f"It {verb} a classic group {_users(described, facts.steps)}", records)


def _users(described: Membership, steps: Sequence[Membership]) -> str:
    """Who uses a classic group, by the last protocol it had: an Empty one has none."""
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
        yield Sentence(f"It began with {record}: every record of this log is there", (first["record_offset"],))
    else:
        text = f"The oldest record of it that is left is {record}; what came before it, if anything did, is gone"
        yield Sentence(text, records_of([first]))


def _lives(facts: GroupFacts) -> Iterator[Sentence]:
    ends = [step for step in facts.steps[:-1] if step.is_tombstone]
    if ends:
        times = "once" if len(ends) == 1 else f"{len(ends)} times"
        yield Sentence(f"It was removed {times} before, and began anew", tuple(step.record_offset for step in ends))
    for step in facts.steps:
        if step.converted_from is not None:
            record = f"Record {step.record_offset}{at(step.timestamp_ms)}"
            text = f"{record} made it a {step.kind} group; it was a {step.converted_from} group before"
            yield Sentence(text, (step.record_offset, step.last_record_offset))


def _place(facts: GroupFacts) -> Iterator[Sentence]:
    number = facts.origin[1]
    if number is None:
        return
    usual = offsets_partition_of(facts.group)
    if usual == number:
        yield Sentence(f"Its records lie in offsets partition {number}, where a cluster with {DEFAULT_PARTITION_COUNT} of them keeps it")
    else:
        text = f"Its records lie in offsets partition {number}; a cluster with {DEFAULT_PARTITION_COUNT} of them keeps it in {usual}"
        other = "the cluster has another number of offsets partitions, or these records were copied from elsewhere"
        yield Sentence(text, not_excluded=other)
