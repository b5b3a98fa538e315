"""The changes between two memberships of a group: members that joined, left or returned under a new member id, and moved partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from exhume.analysis.memberships import Member, MemberName, Membership, TopicPartition


@dataclass(frozen=True, slots=True)
class MemberChanges:
    """Members that joined and left. A member that returned under a new member id is in both, and in `restarted`, old id to new."""

    joined: tuple[Member, ...]
    left: tuple[Member, ...]
    restarted: Mapping[str, str]
    #: Ids of members whose topics or regular expression changed.
    resubscribed: tuple[str, ...]

    @property
    def causes(self) -> list[str]:
        """Return the changes that make a group rebalance, as causes of `rebalances.REBALANCES`."""
        back = {*self.restarted.values(), *self.restarted}
        told = {
            "member_joined": any(member.member_id not in back for member in self.joined),
            "member_left": any(member.member_id not in back for member in self.left),
            "member_restarted": bool(self.restarted),
            "subscription_changed": bool(self.resubscribed),
        }
        return [cause for cause, is_so in told.items() if is_so]


def member_changes(before: Membership | None, after: Membership) -> MemberChanges:
    """Return the changes since `before`. If `before` is None, every member joined."""
    known = {} if before is None else before.members
    joined = tuple(member for member_id, member in after.members.items() if member_id not in known)
    left = tuple(member for member_id, member in known.items() if member_id not in after.members)
    leaving, joining = _by_identity(left), _by_identity(joined)
    restarted = {leaving[identity]: joining[identity] for identity in leaving if identity in joining}
    was = {new: old for old, new in restarted.items()}
    resubscribed = tuple(
        member_id
        for member_id, member in after.members.items()
        if (then := known.get(was.get(member_id, member_id))) is not None and _has_other_topics(then, member)
    )
    return MemberChanges(joined, left, restarted, resubscribed)


def was_recreated(before: Membership, after: Membership) -> bool:
    """True if the group was removed and created again between two generations, without a record of its removal.

    The generation decreased; or members joined within a generation, as only a static member can, in its own place.
    """
    if before.generation is None or after.generation is None or before.is_placeholder or after.generation > before.generation:
        return False
    joined = member_changes(before, after).joined
    return after.generation < before.generation or any(member.group_instance_id is None for member in joined)


def client_of(member: Member | MemberName) -> str:
    """Return a member as `#instance`, or as client id and host."""
    if member.group_instance_id is not None:
        return f"#{member.group_instance_id}"
    return f"{member.client_id or '?'}@{(member.client_host or '?').removeprefix('/')}"


def moved_partitions(
    before: Mapping[TopicPartition, set[str]], after: Mapping[TopicPartition, set[str]], restarted: Mapping[str, str]
) -> tuple[int, int]:
    """Return the number of partitions with other owners than before, and the number that have none any more.

    A member that returned under a new member id counts as the same owner.
    """
    moved = lost = 0
    for topic_partition, owners in before.items():
        now = after.get(topic_partition)
        if not now:
            lost += 1
        elif not ({restarted.get(owner, owner) for owner in owners} & now):
            moved += 1
    return moved, lost


def _by_identity(members: Iterable[Member]) -> dict[tuple[str | None, ...], str]:
    """Return identity -> member id, for members whose identity is unique here."""
    listed = list(members)
    counts = Counter(member.identity for member in listed)
    return {member.identity: member.member_id for member in listed if counts[member.identity] == 1}


def _has_other_topics(before: Member, after: Member) -> bool:
    if before.subscribed_regex != after.subscribed_regex:
        return True
    if before.subscribed_topics is None or after.subscribed_topics is None:
        return False
    return {*before.subscribed_topics} != {*after.subscribed_topics}
