"""What members say, of steps of any kind: one entry for each member, in the order of the record, or what they say together.

Of a classic group that is told by rosters, without an object for each member.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from exhume.analysis.member_tables import ClassicMembers, difference, disjoint, has_duplicates, union
from exhume.analysis.memberships import Member, MemberName, Membership, TopicPartition


def assigned_of(step: Membership) -> Sequence[tuple[TopicPartition, ...] | None]:
    """`Member.assigned` of each."""
    if isinstance(step.members, ClassicMembers):
        return step.members.assignments.assigned
    return [member.assigned for member in step.members.values()]


def is_known(step: Membership) -> bool:
    """Whether it is told of each what is assigned to it."""
    if isinstance(step.members, ClassicMembers):
        return step.members.assignments.is_known
    return None not in assigned_of(step)


def difference_of(step: Membership) -> int:
    """How much more is assigned to one than to another, of those of whom it is told."""
    if isinstance(step.members, ClassicMembers):
        return step.members.assignments.difference
    return difference(assigned_of(step))


def is_opaque(step: Membership) -> bool:
    """`Membership.is_opaque`."""
    return bool(step.members) and all(assigned is None for assigned in assigned_of(step))


def owned_of(step: Membership) -> list[tuple[TopicPartition, ...]]:
    """`Member.owned` of each."""
    if isinstance(step.members, ClassicMembers):
        return [assigned or () for assigned in step.members.assignments.assigned]
    return [member.owned for member in step.members.values()]


def owned_sets_of(step: Membership) -> Sequence[frozenset[TopicPartition]]:
    """`Member.owned` of each as a set: one object, and one hash, for all that got the same."""
    if isinstance(step.members, ClassicMembers):
        return step.members.assignments.owned
    return [frozenset(member.owned) for member in step.members.values()]


def all_owned(step: Membership) -> frozenset[TopicPartition]:
    """What somebody owns."""
    if isinstance(step.members, ClassicMembers):
        return step.members.assignments.union
    return union(owned_sets_of(step))


def is_owned_twice(step: Membership) -> bool:
    """Whether two members own the same."""
    if isinstance(step.members, ClassicMembers):
        return len(step.members.assignments.union) < step.members.assignments.total
    owned = owned_sets_of(step)
    return len(union(owned)) < sum(map(len, owned))


def claimed_of(step: Membership) -> Sequence[tuple[TopicPartition, ...] | None]:
    """`Member.claimed` of each."""
    if isinstance(step.members, ClassicMembers):
        return step.members.subscriptions.claimed
    return [member.claimed for member in step.members.values()]


def subscriptions_of(step: Membership) -> Sequence[tuple[str, ...] | None]:
    """`Member.subscribed_topics` of each."""
    if isinstance(step.members, ClassicMembers):
        return step.members.subscriptions.topics
    return [member.subscribed_topics for member in step.members.values()]


def disjoint_subscriptions_of(step: Membership) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The first two subscriptions that have nothing in common, and that no third one brings together."""
    if isinstance(step.members, ClassicMembers):
        return step.members.subscriptions.disjoint
    return disjoint(subscriptions_of(step))


def all_subscribed(step: Membership) -> frozenset[str]:
    """The topics that somebody subscribes to, as far as they are known."""
    if isinstance(step.members, ClassicMembers):
        return step.members.subscriptions.subscribed
    return union(subscriptions_of(step))


def is_claimed_twice(step: Membership) -> bool:
    """Whether two members claim the same."""
    if isinstance(step.members, ClassicMembers):
        return step.members.subscriptions.is_claimed_twice
    return has_duplicates(claimed_of(step))


def client_ids_of(step: Membership) -> list[str | None]:
    """`Member.client_id` of each."""
    if isinstance(step.members, ClassicMembers):
        return step.members.table.column("client_id")
    return [member.client_id for member in step.members.values()]


def has_static_members(step: Membership) -> bool:
    """Whether any `Member.group_instance_id` is there."""
    if isinstance(step.members, ClassicMembers):
        return step.members.table.has_static_members
    return any(member.group_instance_id is not None for member in step.members.values())


def member_at(step: Membership, place: int) -> Member:
    """The member in this place."""
    if isinstance(step.members, ClassicMembers):
        return step.members.table.member(place)
    return next(islice(step.members.values(), place, None))


def name_at(step: Membership, place: int) -> MemberName:
    """What the member in this place is called."""
    if isinstance(step.members, ClassicMembers):
        return step.members.table.name(place)
    return member_at(step, place).name
