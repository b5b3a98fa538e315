"""Compare an assignment with the expected one, partition by partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from exhume.analysis.assignment.inputs import previous_owners
from exhume.analysis.assignment.runs import Case
from exhume.analysis.assignors import Assigned, GroupAssignment, TopicPartition
from exhume.analysis.topic_sizes import TopicSize
from exhume.arrow_rows import Int32, OfLog, schema_of


class AssignedPartitionRow(OfLog):
    """One row per partition, assigned or not.

    `actual` are the members that own it (by the target, where the group has one); `expected` are the members that should own it, null where
    nothing is expected for sure. `previous` owned it before. `current` owns it now: as far as the coordinator of a consumer or share group
    has moved it, or under the new member id of a static member of a classic group.

    `differences` names each fault: lost (no member owns it), doubled (two members own it), moved (another member should own it),
    moved_needlessly (its previous owner should own it), unsubscribed (its member does not subscribe to this topic), beyond_count (the topic
    has no such partition), withheld (a cooperative assignor waits until its owner releases it), unreconciled (its current owner is not the
    target).
    """

    record_offset: int
    group: str
    topic: str
    partition: Int32
    actual: list[str]
    expected: list[str] | None
    previous: list[str]
    current: list[str] | None
    differences: list[str]


ASSIGNMENT_PARTITIONS = schema_of(AssignedPartitionRow)
#: Protocols of classic groups whose leader withholds partitions until their owners release them.
_COOPERATIVE = ("cooperative-sticky", "stream")
#: The differences that verdicts count.
COUNTED = ("lost", "doubled", "moved_needlessly", "unsubscribed", "beyond_count", "withheld", "unreconciled")


def partition_rows(case: Case, sizes: Mapping[str, TopicSize], plan: GroupAssignment | None) -> Iterator[AssignedPartitionRow]:
    """Return every partition that is assigned or should be, as rows of `ASSIGNMENT_PARTITIONS`.

    Without a plan, nothing is expected for sure.
    """
    step = case.step
    actual, previous = _owners(case.actual), previous_owners(step, case.before)
    expected = None if plan is None else _owners(plan.assigned)
    withheld = {each for partitions in (plan.withheld.values() if plan else ()) for each in partitions}
    claimed = {each for member in step.members.values() for each in (*(member.claimed or ()), *member.pending_revocation)}
    knows_current = step.kind != "classic" or case.latest is not step
    current = _owners({each.member_id: list(each.owned) for each in case.latest.members.values()}) if knows_current else None
    topics = {member.member_id: member.subscribed_topics for member in step.members.values()}
    exist = {(topic, partition) for topic, size in sizes.items() for partition in range(size.partition_count)}
    is_shared = step.kind == "share"
    nameless = case.nameless_topics
    for each in sorted(exist.union(actual, current or ())):
        topic, partition = each
        mine, theirs = actual.get(each, []), None if expected is None else expected.get(each, [])
        differences = []
        if not mine and each in exist and not is_shared:
            differences.append("withheld" if each in withheld or (case.assignor in _COOPERATIVE and each in claimed) else "lost")
        if len(mine) > 1 and not is_shared:
            differences.append("doubled")
        if theirs is not None and set(mine) != set(theirs) and mine and theirs:
            had = previous.get(each, [])
            differences.append("moved_needlessly" if set(had) & set(theirs) - set(mine) else "moved")
        if topic not in nameless and any((known := topics.get(member_id)) is not None and topic not in known for member_id in mine):
            differences.append("unsubscribed")
        if topic in sizes and sizes[topic].is_exact and partition >= sizes[topic].partition_count:
            differences.append("beyond_count")
        if step.kind != "classic" and current is not None and set(current.get(each, ())) != set(mine):
            differences.append("unreconciled")
        yield {
            "replica": step.replica,
            "offsets_partition": step.offsets_partition,
            "record_offset": step.record_offset,
            "group": step.group,
            "topic": topic,
            "partition": partition,
            "actual": mine,
            "expected": theirs,
            "previous": previous.get(each, []),
            "current": None if current is None else current.get(each, []),
            "differences": differences,
        }


def _owners(assigned: Assigned) -> dict[TopicPartition, list[str]]:
    owners: dict[TopicPartition, list[str]] = {}
    for member_id, partitions in assigned.items():
        for each in dict.fromkeys(partitions):
            owners.setdefault(each, []).append(member_id)
    return owners
