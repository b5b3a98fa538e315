"""What differs between two memberships of a group: who came, who went, who came back under another member id, and what moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from exhume.analysis.memberships import Member, MemberName, Membership, TopicPartition


@dataclass(frozen=True, slots=True)
class MemberChanges:
    """Members that came and went. One that came back under another member id is in both, and in `restarted`, old id to new."""

    joined: tuple[Member, ...]
    left: tuple[Member, ...]
    restarted: Mapping[str, str]
    #: Member ids with other topics, or another regular expression, than before.
    resubscribed: tuple[str, ...]

    @property
    def causes(self) -> list[str]:
        """What of it makes a group rebalance, in words of `rebalances.REBALANCES`."""
        back = {*self.restarted.values(), *self.restarted}
        told = {
            "member_joined": any(member.member_id not in back for member in self.joined),
            "member_left": any(member.member_id not in back for member in self.left),
            "member_restarted": bool(self.restarted),
            "subscription_changed": bool(self.resubscribed),
        }
        return [cause for cause, is_so in told.items() if is_so]


def member_changes(before: Membership | None, after: Membership) -> MemberChanges:
    """What changed from `before`, None where nothing is known of it: then everybody came."""
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


def began_anew(before: Membership, after: Membership) -> bool:
    """True where a generation is of another life of the group, and no record tells of the end of the one before.

    The count began anew; within a generation nobody joins but a static member, in its own place.
    """
    if before.generation is None or after.generation is None or before.is_placeholder or after.generation > before.generation:
        return False
    joined = member_changes(before, after).joined
    return after.generation < before.generation or any(member.group_instance_id is None for member in joined)


def client_of(member: Member | MemberName) -> str:
    """A member as people know it: `#instance`, or client id and host."""
    if member.group_instance_id is not None:
        return f"#{member.group_instance_id}"
    return f"{member.client_id or '?'}@{(member.client_host or '?').removeprefix('/')}"


def moved_partitions(
    before: Mapping[TopicPartition, set[str]], after: Mapping[TopicPartition, set[str]], restarted: Mapping[str, str]
) -> tuple[int, int]:
    """How many partitions have other owners than before, and how many have none any more.

    Who came back under another member id is the same owner.
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
    """Identity to member id, of those whose identity nobody else here has."""
    listed = list(members)
    counts = Counter(member.identity for member in listed)
    return {member.identity: member.member_id for member in listed if counts[member.identity] == 1}


def _has_other_topics(before: Member, after: Member) -> bool:
    if before.subscribed_regex != after.subscribed_regex:
        return True
    if before.subscribed_topics is None or after.subscribed_topics is None:
        return False
    return {*before.subscribed_topics} != {*after.subscribed_topics}
