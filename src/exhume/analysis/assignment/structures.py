"""The verdict on groups of Kafka Streams and Kafka Connect, of which only the structure can be checked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from exhume.analysis.assignment.inputs import own_counts, said_counts
from exhume.analysis.assignment.runs import Case
from exhume.analysis.assignors import TopicPartition
from exhume.analysis.assignors.structure import (
    connect_delay_ms,
    connect_is_settled,
    connect_oddities,
    connect_running,
    streams_group_oddities,
    streams_info,
    streams_may_follow_up,
    streams_oddities,
)
from exhume.analysis.topic_sizes import TopicSize

#: The protocol of classic consumer groups whose leader is Kafka Streams.
STREAMS_PROTOCOL = "stream"
_MOST_TOLD = 3


@dataclass(frozen=True, slots=True)
class Structure:
    """What came of a look at the structure of an assignment; `sizes` are of the topics that it speaks of."""

    verdict: Literal["consistent", "not_explained", "undecidable"]
    sentence: str
    sizes: Mapping[str, TopicSize] = field(default_factory=dict)


def judge_structure(case: Case) -> Structure:
    """Judge the assignment of a group of Kafka Streams, of either protocol, or of Kafka Connect."""
    if case.step.protocol_type == "connect":
        return _connect(case)
    return _streams_group(case) if case.step.kind == "streams" else _streams(case)


def _connect(case: Case) -> Structure:
    members = list(case.step.members.values())
    unread = sum(connect_running(member) is None for member in members)
    if unread == len(members):
        return Structure("undecidable", "no worker's assignment can be read")
    fine = "no work runs twice"
    if connect_is_settled(members):
        fine += " and workers run about as much"
    elif delay_ms := connect_delay_ms(members):
        fine += f"; lost work waits up to {delay_ms} ms"
    else:
        fine += "; what workers have to give up is given away in the next generation"
    return _judged("Kafka Connect", list(connect_oddities(members)), fine, {}, unread=unread, of=len(members))


def _streams(case: Case) -> Structure:
    members = list(case.step.members.values())
    unread = sum(streams_info(member) is None for member in members)
    sizes, unowned = own_counts(case.step), _unowned(case)
    claimed = {each for member in members for each in member.claimed or ()}
    oddities = [*streams_oddities(members), *_odd_partitions(case)]
    if unowned and (not claimed.issuperset(unowned) or not (unread or streams_may_follow_up(members))):
        oddities.append(f"nobody has {_spelt(unowned)}")
    if not oddities and unread == len(members):
        return Structure("undecidable", "no member's tasks can be read", sizes)
    fine = "every task runs once and has its partitions"
    if unowned:
        fine = f"no task runs twice, each has its partitions; until their owners let go nobody has {_spelt(unowned)}"
    return _judged("Kafka Streams", oddities, fine + _condition(case), sizes, unread=unread, of=len(members))


def _streams_group(case: Case) -> Structure:
    unowned = _unowned(case)
    oddities = [*streams_group_oddities(case.latest.members.values()), *_odd_partitions(case)]
    if any(case.actual.values()) and unowned:
        oddities.append(f"nobody is to have {_spelt(unowned)}")
    is_idle = all(member.target == () for member in case.step.members.values())
    fine = "nobody is to have a task" if is_idle else "every active task runs once"
    return _judged("Kafka Streams", oddities, fine + _condition(case), own_counts(case.step))


def _judged(who: str, oddities: Sequence[str], fine: str, sizes: Mapping[str, TopicSize], *, unread: int = 0, of: int = 0) -> Structure:
    note = f"{who}: only the structure can be checked"
    if unread:
        note += f", and that of {of - unread} of {of} members, since the bytes of the others cannot be read"
    if oddities:
        return Structure("not_explained", f"{note}; {'; '.join(oddities[:_MOST_TOLD])}", sizes)
    return Structure("consistent", f"{note}; {fine}", sizes)


def _unowned(case: Case) -> list[TopicPartition]:
    """Partitions that must be there, since it speaks of them or of higher ones, and that nobody is assigned."""
    held = {each for partitions in case.actual.values() for each in partitions}
    exist = [(topic, number) for topic, size in own_counts(case.step).items() for number in range(size.partition_count)]
    return sorted(each for each in exist if each not in held)


def _odd_partitions(case: Case) -> Iterator[str]:
    """What must not be of any partition: two members, or one that does not subscribe to its topic."""
    owners: dict[TopicPartition, list[str]] = {}
    for member_id, partitions in case.actual.items():
        known = case.step.members[member_id].subscribed_topics
        strange = sorted({topic for topic, _ in partitions if known is not None and topic not in known})
        if strange:
            yield f"member {member_id} does not subscribe to {', '.join(strange[:_MOST_TOLD])}"
        for each in dict.fromkeys(partitions):
            owners.setdefault(each, []).append(member_id)
    for (topic, number), ids in sorted(owners.items()):
        if len(ids) > 1:
            yield f"partition {topic}-{number} is assigned to {len(ids)} members: {', '.join(ids)}"


def _condition(case: Case) -> str:
    """Where the assignment speaks of more or fewer partitions than there are said to be."""
    own, said = own_counts(case.step), said_counts(case.step, case.facts)
    for topic in sorted(own.keys() & said.keys()):
        seen, count = own[topic].partition_count, said[topic].partition_count
        # A task of a streams group is of all topics of its subtopology, also of those that have fewer partitions.
        if seen < count or (seen > count and case.step.kind != "streams"):
            return (
                f", if {'the leader' if case.step.kind == 'classic' else 'the coordinator'} saw {seen} partitions of {topic}, not {count}"
            )
    return ""


def _spelt(partitions: Collection[TopicPartition]) -> str:
    listed = [f"{topic}-{number}" for topic, number in partitions]
    return ", ".join(listed[:_MOST_TOLD]) + (f" and {len(listed) - _MOST_TOLD} more" if len(listed) > _MOST_TOLD else "")
