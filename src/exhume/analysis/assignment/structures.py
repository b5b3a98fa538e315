"""The verdict on groups of Kafka Streams and Kafka Connect: their structure, and for streams groups their assignor."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from exhume.analysis.assignment.inputs import own_counts, stated_counts
from exhume.analysis.assignment.runs import Case
from exhume.analysis.assignment.streams_groups import judge_streams_assignor
from exhume.analysis.assignors import GroupAssignment, TopicPartition
from exhume.analysis.assignors.structure import (
    connect_delay_ms,
    connect_faults,
    connect_is_settled,
    connect_running,
    streams_faults,
    streams_group_faults,
    streams_info,
    streams_may_follow_up,
)
from exhume.analysis.topic_sizes import TopicSize

#: The protocol of classic consumer groups whose leader is Kafka Streams.
STREAMS_PROTOCOL = "stream"
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Structure:
    """The verdict on the structure of an assignment. `sizes` are of the topics that it names; `plan` and `explained_by` of its assignor."""

    verdict: Literal["as_expected", "consistent", "not_explained", "undecidable"]
    sentence: str
    sizes: Mapping[str, TopicSize] = field(default_factory=dict)
    plan: GroupAssignment | None = None
    explained_by: str | None = None


def judge_structure(case: Case) -> Structure:
    """Judge the assignment of a Kafka Streams group (classic or streams protocol) or of a Kafka Connect group."""
    if case.step.protocol_type == "connect":
        return _connect(case)
    return _streams_group(case) if case.step.kind == "streams" else _streams(case)


def _connect(case: Case) -> Structure:
    members = list(case.step.members.values())
    unread = sum(connect_running(member) is None for member in members)
    if unread == len(members):
        return Structure("undecidable", "no worker's assignment can be read")
    fine = "no connector and no task runs twice"
    if connect_is_settled(members):
        fine += " and workers run about the same number of tasks"
    elif delay_ms := connect_delay_ms(members):
        fine += f"; lost work stays unassigned for up to {delay_ms} ms"
    else:
        fine += "; the next generation assigns what workers have to give up"
    return _judged("Kafka Connect", list(connect_faults(members)), fine, {}, unread=unread, of=len(members))


def _streams(case: Case) -> Structure:
    members = list(case.step.members.values())
    unread = sum(streams_info(member) is None for member in members)
    sizes, unowned = own_counts(case.step), _unowned(case)
    claimed = {each for member in members for each in member.claimed or ()}
    faults = [*streams_faults(members), *_faulty_partitions(case)]
    if unowned and (not claimed.issuperset(unowned) or not (unread or streams_may_follow_up(members))):
        faults.append(f"no member owns {_spelt(unowned)}")
    if not faults and unread == len(members):
        return Structure("undecidable", "no member's tasks can be read", sizes)
    fine = "every task runs once and has its partitions"
    if unowned:
        fine = f"no task runs twice, each has its partitions; until their owners release them, no member owns {_spelt(unowned)}"
    return _judged("Kafka Streams", faults, fine + _condition(case), sizes, unread=unread, of=len(members))


def _streams_group(case: Case) -> Structure:
    unowned, sizes = _unowned(case), own_counts(case.step)
    faults = [*streams_group_faults(case.latest.members.values()), *_faulty_partitions(case)]
    if any(case.actual.values()) and unowned:
        faults.append(f"no member is to own {_spelt(unowned)}")
    is_idle = all(member.target == () for member in case.step.members.values())
    if faults or is_idle:
        return _judged("Kafka Streams", faults, f"no member is to own a task{_condition(case)}", sizes)
    found = judge_streams_assignor(case)
    if found.explained_by is not None:
        return Structure("as_expected", f"as {found.explained_by}{_condition(case)}", sizes, found.plan, found.explained_by)
    fine = f"every active task runs once{_condition(case)}"
    if found.is_certain:
        return Structure("not_explained", f"{found.reason}; {fine}", sizes)
    return _judged("Kafka Streams", [], f"{fine}; {found.reason}", sizes)


def _judged(who: str, faults: Sequence[str], fine: str, sizes: Mapping[str, TopicSize], *, unread: int = 0, of: int = 0) -> Structure:
    note = f"{who}: only the structure can be checked"
    if unread:
        note += f", of {of - unread} of {of} members: the bytes of the others cannot be read"
    if faults:
        return Structure("not_explained", f"{note}; {'; '.join(faults[:_MOST_NAMED])}", sizes)
    return Structure("consistent", f"{note}; {fine}", sizes)


def _unowned(case: Case) -> list[TopicPartition]:
    """Return the partitions without an owner that must exist: the assignment names them, or a higher one of their topic."""
    held = {each for partitions in case.actual.values() for each in partitions}
    exist = [(topic, number) for topic, size in own_counts(case.step).items() for number in range(size.partition_count)]
    return sorted(each for each in exist if each not in held)


def _faulty_partitions(case: Case) -> Iterator[str]:
    """Yield faults of partitions: two owners, or an owner that does not subscribe to the topic."""
    owners: dict[TopicPartition, list[str]] = {}
    for member_id, partitions in case.actual.items():
        known = case.step.members[member_id].subscribed_topics
        strange = sorted({topic for topic, _ in partitions if known is not None and topic not in known})
        if strange:
            yield f"member {member_id} does not subscribe to {', '.join(strange[:_MOST_NAMED])}"
        for each in dict.fromkeys(partitions):
            owners.setdefault(each, []).append(member_id)
    for (topic, number), ids in sorted(owners.items()):
        if len(ids) > 1:
            yield f"partition {topic}-{number} is assigned to {len(ids)} members: {', '.join(ids)}"


def _condition(case: Case) -> str:
    """Return the condition of the verdict where the assignment implies another partition count than the stated one."""
    own, stated = own_counts(case.step), stated_counts(case.step, case.facts)
    for topic in sorted(own.keys() & stated.keys()):
        seen, count = own[topic].partition_count, stated[topic].partition_count
        # A task of a streams group belongs to all topics of its subtopology, also to those with fewer partitions.
        if seen < count or (seen > count and case.step.kind != "streams"):
            return (
                f", if {'the leader' if case.step.kind == 'classic' else 'the coordinator'} saw {seen} partitions of {topic}, not {count}"
            )
    return ""


def _spelt(partitions: Collection[TopicPartition]) -> str:
    listed = [f"{topic}-{number}" for topic, number in partitions]
    return ", ".join(listed[:_MOST_NAMED]) + (f" and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else "")
