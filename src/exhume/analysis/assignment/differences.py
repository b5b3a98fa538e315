"""Compare an assignment with the expected one, partition by partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from exhume.analysis.assignment.inputs import previous_owners
from exhume.analysis.assignment.runs import Case
from exhume.analysis.assignors import GroupAssignment, TopicPartition
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
    step, owners = case.step, _Comparison(case, sizes, plan)
    for each in owners.partitions():
        yield {
            "replica": step.replica,
            "offsets_partition": step.offsets_partition,
            "record_offset": step.record_offset,
            "group": step.group,
            "topic": each[0],
            "partition": each[1],
            "actual": owners.actual.get(each, []),
            "expected": None if owners.expected is None else owners.expected.get(each, []),
            "previous": owners.previous.get(each, []),
            "current": None if owners.current is None else owners.current.get(each, []),
            "differences": [*owners.differences(each)],
        }


class _Comparison:
    """The actual, expected, previous and current owners of the partitions of one group."""

    def __init__(self, case: Case, sizes: Mapping[str, TopicSize], plan: GroupAssignment | None) -> None:
        step = case.step
        self.actual = _owners(case.actual)
        self.expected = None if plan is None else _owners(plan.assigned)
        self.previous = previous_owners(step, case.before)
        self.current: dict[TopicPartition, list[str]] | None = None
        if step.kind != "classic" or case.latest is not step:
            self.current = _owners({each.member_id: list(each.owned) for each in case.latest.members.values()})
        self._case = case
        self._sizes = sizes
        self._exist = {(topic, partition) for topic, size in sizes.items() for partition in range(size.partition_count)}
        self._nameless = case.nameless_topics
        self._subscribed = {member.member_id: member.subscribed_topics for member in step.members.values()}
        #: The partitions that the leader holds back until their owners release them.
        self._withheld = {each for partitions in (plan.withheld.values() if plan else ()) for each in partitions}
        if case.assignor in _COOPERATIVE:
            for member in step.members.values():
                self._withheld.update(member.claimed or (), member.pending_revocation)

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions that exist or have an owner, sorted."""
        return sorted(self._exist.union(self.actual, self.current or ()))

    def differences(self, each: TopicPartition) -> Iterator[str]:
        """Yield the differences of one partition, as the column `differences` names them."""
        owners, size, kind = self.actual.get(each, []), self._sizes.get(each[0]), self._case.step.kind
        if not owners and each in self._exist and kind != "share":
            yield "withheld" if each in self._withheld else "lost"
        if len(owners) > 1 and kind != "share":
            yield "doubled"
        if owners:
            yield from self._moves(each, {*owners})
        if any(self._is_unsubscribed(member_id, each[0]) for member_id in owners):
            yield "unsubscribed"
        if size is not None and size.is_exact and each[1] >= size.partition_count:
            yield "beyond_count"
        if kind != "classic" and self.current is not None and set(self.current.get(each, ())) != set(owners):
            yield "unreconciled"

    def _moves(self, each: TopicPartition, owners: set[str]) -> Iterator[str]:
        expected = set((self.expected or {}).get(each, ()))
        if expected and expected != owners:
            yield "moved_needlessly" if expected.intersection(self.previous.get(each, ())) - owners else "moved"

    def _is_unsubscribed(self, member_id: str, topic: str) -> bool:
        known = self._subscribed.get(member_id)
        return known is not None and topic not in known and topic not in self._nameless


def _owners(assigned: Mapping[str, Sequence[TopicPartition]]) -> dict[TopicPartition, list[str]]:
    owners: dict[TopicPartition, list[str]] = {}
    for member_id, partitions in assigned.items():
        for each in dict.fromkeys(partitions):
            owners.setdefault(each, []).append(member_id)
    return owners
