"""The kind of the group, its first record, and its offsets partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from exhume.analysis.explanation.facts import GroupFacts
from exhume.analysis.explanation.sentences import Sentence, named, records_of
from exhume.analysis.memberships import Membership
from exhume.analysis.times import at
from exhume.codecs.offsets_topic import DEFAULT_PARTITION_COUNT, offsets_partition_of

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
