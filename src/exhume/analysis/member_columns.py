"""Fields of all members of a step, of any group type: one entry per member in the order of the record, or one value for all.

For classic groups the values come from member tables, without an object for each member.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from typing import Literal, TypeVar

from exhume.analysis.member_tables import ClassicMembers, difference, disjoint, has_duplicates, union
from exhume.analysis.memberships import Member, MemberName, Membership, TopicPartition

_Kind = TypeVar("_Kind", bound=Hashable)


def assigned_of(step: Membership) -> Sequence[tuple[TopicPartition, ...] | None]:
    """Return `Member.assigned` of each member."""
    if isinstance(step.members, ClassicMembers):
        return step.members.assignments.assigned
    return [member.assigned for member in step.members.values()]


def is_known(step: Membership) -> bool:
    """True if the assignment of every member is known."""
    if isinstance(step.members, ClassicMembers):
        return step.members.assignments.is_known
    return None not in assigned_of(step)


def difference_of(step: Membership) -> int:
    """Return the difference between the largest and the smallest known assignment."""
    if isinstance(step.members, ClassicMembers):
        return step.members.assignments.difference
    return difference(assigned_of(step))


def is_opaque(step: Membership) -> bool:
    """Return `Membership.is_opaque`."""
    return bool(step.members) and all(assigned is None for assigned in assigned_of(step))


def owned_of(step: Membership) -> list[tuple[TopicPartition, ...]]:
    """Return `Member.owned` of each member."""
    if isinstance(step.members, ClassicMembers):
        return [assigned or () for assigned in step.members.assignments.assigned]
    return [member.owned for member in step.members.values()]


def owned_sets_of(step: Membership) -> Sequence[frozenset[TopicPartition]]:
    """Return `Member.owned` of each member as a set. Members with the same assignment share one object and one hash."""
    if isinstance(step.members, ClassicMembers):
        return step.members.assignments.owned
    return [frozenset(member.owned) for member in step.members.values()]


def all_owned(step: Membership) -> frozenset[TopicPartition]:
    """Return every owned partition."""
    if isinstance(step.members, ClassicMembers):
        return step.members.assignments.union
    return union(owned_sets_of(step))


def is_owned_twice(step: Membership) -> bool:
    """True if two members own the same partition."""
    if isinstance(step.members, ClassicMembers):
        return len(step.members.assignments.union) < step.members.assignments.total
    owned = owned_sets_of(step)
    return len(union(owned)) < sum(map(len, owned))


def claimed_of(step: Membership) -> Sequence[tuple[TopicPartition, ...] | None]:
    """Return `Member.claimed` of each member."""
    if isinstance(step.members, ClassicMembers):
        return step.members.subscriptions.claimed
    return [member.claimed for member in step.members.values()]


def subscriptions_of(step: Membership) -> Sequence[tuple[str, ...] | None]:
    """Return `Member.subscribed_topics` of each member."""
    if isinstance(step.members, ClassicMembers):
        return step.members.subscriptions.topics
    return [member.subscribed_topics for member in step.members.values()]


def disjoint_subscriptions_of(step: Membership) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return two subscriptions that share no topic, directly or through others; None if all are connected."""
    if isinstance(step.members, ClassicMembers):
        return step.members.subscriptions.disjoint
    return disjoint(subscriptions_of(step))


def all_subscribed(step: Membership) -> frozenset[str]:
    """Return the topics that a member subscribes to, as far as they are known."""
    if isinstance(step.members, ClassicMembers):
        return step.members.subscriptions.subscribed
    return union(subscriptions_of(step))


def is_claimed_twice(step: Membership) -> bool:
    """True if two members claim the same partition."""
    if isinstance(step.members, ClassicMembers):
        return step.members.subscriptions.is_claimed_twice
    return has_duplicates(claimed_of(step))


def client_ids_of(step: Membership) -> list[str | None]:
    """Return `Member.client_id` of each member."""
    if isinstance(step.members, ClassicMembers):
        return step.members.table.column("client_id")
    return [member.client_id for member in step.members.values()]


def kinds_of(step: Membership, name: Literal["client_id", "client_host"], kind_of: Callable[[str | None], _Kind]) -> list[_Kind]:
    """Return the kind of this attribute of each member. `kind_of` is a function of a module: its results are kept."""
    if isinstance(step.members, ClassicMembers):
        return step.members.table.kinds(name, kind_of)
    return [kind_of(getattr(member, name)) for member in step.members.values()]


def has_static_members(step: Membership) -> bool:
    """True if a member has a `group_instance_id`."""
    if isinstance(step.members, ClassicMembers):
        return step.members.table.has_static_members
    return any(member.group_instance_id is not None for member in step.members.values())


def member_at(step: Membership, place: int) -> Member:
    """Return the member in this place."""
    if isinstance(step.members, ClassicMembers):
        return step.members.table.member(place)
    return next(islice(step.members.values(), place, None))


def name_at(step: Membership, place: int) -> MemberName:
    """Return the name of the member in this place."""
    if isinstance(step.members, ClassicMembers):
        return step.members.table.name(place)
    return member_at(step, place).name
