"""The claims of members that the sticky assignors accept, version by version.

A member of `sticky` claims partitions in its user data, a member of `cooperative-sticky` by the owned partitions in its subscription.
Claims carry a generation. The versions differ in how they treat claims of several generations, and two claims to one partition.

Source: AbstractStickyAssignor.allSubscriptionsEqual, StickyAssignor.memberData and CooperativeStickyAssignor.memberData, Kafka 2.4 to 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from exhume.analysis.assignors.group import Assigned, GroupSpec, MemberSpec, TopicPartition
from exhume.codecs.embedded.consumer import NO_GENERATION


@dataclass(frozen=True, slots=True, kw_only=True)
class StickyVersion:
    """The behaviour of a version of the sticky assignors.

    Attributes:
        constrained: how equal subscriptions are handled: like any other, filled up to a quota, or by quotas from the start.
        conflicts: the treatment of two claims: both count; or the newest generation counts and equal ones cancel each other; or each
            partition decides alone, against the member visited last or against its holder.
        knows_generations: claims have generations. Before, every claim is kept, and a topic without metadata makes the leader fail.
        places_new_first: partitions without an owner are balanced separately first.
        reads_cooperative_user_data: cooperative members have their generation in the user data, too.
        reads_generation_field: the generation field of the subscription counts where it is present.
        is_rack_aware: racks count.
        sorts_owned: owned partitions are sorted before the surplus is cut, and the member that gives a partition up is remembered.
        tolerates_one: members that differ by one are balanced; before, only if the extremes differ by more.
    """

    constrained: Literal["no", "filled", "quotas"]
    conflicts: Literal["both", "newest", "last_visited", "holder"] = "both"
    knows_generations: bool = True
    places_new_first: bool = True
    reads_cooperative_user_data: bool = False
    reads_generation_field: bool = False
    is_rack_aware: bool = False
    sorts_owned: bool = False
    tolerates_one: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of a member; the generation is None if the member states none."""

    partitions: tuple[TopicPartition, ...]
    generation: int | None


@dataclass(slots=True)
class Ownership:
    """The accepted claims of all members.

    Attributes:
        owned: member id -> partitions, in the order of the bytes.
        contested: partitions that two members of one generation claim.
        subscriptions_equal: True if every member subscribes to the same topics.
        newest_generation: the newest of all claims.
        read: members whose user data was read. Up to 2.8 Kafka does not rewind the buffer for a second reading.
    """

    owned: Assigned = field(default_factory=dict)
    contested: dict[TopicPartition, None] = field(default_factory=dict)
    subscriptions_equal: bool = True
    newest_generation: int = NO_GENERATION
    read: set[str] = field(default_factory=set)


def claim_of(member: MemberSpec, version: StickyVersion, *, cooperative: bool) -> Claim:
    """Return the claim of this member, as this version reads it."""
    if not cooperative:
        return Claim(member.owned, member.user_data_generation)
    if version.reads_generation_field and member.field_generation is not None:
        return Claim(member.owned, member.field_generation)
    return Claim(member.owned, member.user_data_generation if version.reads_cooperative_user_data else None)


def second_claim_of(member: MemberSpec, version: StickyVersion, *, cooperative: bool, read: set[str]) -> Claim:
    """Return the claim on the second reading of the members in `read`, up to 2.8: the buffer of their user data is at its end."""
    claim = claim_of(member, version, cooperative=cooperative)
    if member.member_id not in read:
        return claim
    if not cooperative:
        return Claim((), None)
    has_user_data = version.reads_cooperative_user_data and member.user_data_generation is not None
    return Claim(claim.partitions, NO_GENERATION if has_user_data else None)


def accepted_claims(spec: GroupSpec, members: Sequence[MemberSpec], version: StickyVersion, *, cooperative: bool) -> Ownership:
    """Return the accepted claims, and whether all subscriptions are equal. Pass members in hash order."""
    ownership = Ownership()
    ledger = _Newest(ownership, version) if version.conflicts in ("both", "newest") else _ByPartition(ownership, version, members)
    first_topics: set[str] = set()
    for member in members:
        if not first_topics:
            first_topics = set(member.topics)
        elif len(member.topics) != len(first_topics) or not first_topics.issuperset(member.topics):
            ownership.subscriptions_equal = False
            if version.constrained == "filled":
                return ownership
        ownership.owned[member.member_id] = []
        ownership.read.add(member.member_id)
        claim = claim_of(member, version, cooperative=cooperative)
        known = [partition for partition in claim.partitions if partition[0] in spec.partition_counts]
        ledger.enter(member.member_id, known, claim.generation)
    ledger.close()
    return ownership


class _Newest:
    """The claims of the newest generation alone count."""

    def __init__(self, ownership: Ownership, version: StickyVersion) -> None:
        self._ownership = ownership
        self._cancels = version.conflicts == "newest"
        self._loses_track = version.constrained == "quotas"
        self._newest: list[str] = []
        self._outdated: list[str] = []
        self._last: dict[TopicPartition, str] = {}

    def enter(self, member_id: str, partitions: Sequence[TopicPartition], generation: int | None) -> None:
        ownership = self._ownership
        if generation is None:
            if ownership.newest_generation != NO_GENERATION:
                return
        elif generation < ownership.newest_generation:
            return
        elif generation > ownership.newest_generation:
            ownership.newest_generation = generation
            self._outdated += self._newest
            self._newest = []
            if self._cancels:
                self.close()
                self._last.clear()
                ownership.contested.clear()
        self._newest.append(member_id)
        for partition in partitions:
            other = self._last.get(partition)
            if other is None or not self._cancels:
                ownership.owned[member_id].append(partition)
                self._last[partition] = member_id
                continue
            _drop(ownership.owned[other], partition)
            ownership.contested[partition] = None
            if self._loses_track:
                self._last[partition] = member_id

    def close(self) -> None:
        for member_id in self._outdated:
            self._ownership.owned[member_id].clear()
        self._outdated = []


class _ByPartition:
    """The newest claim to each partition counts. For the earlier claimant, only the generation field counts."""

    def __init__(self, ownership: Ownership, version: StickyVersion, members: Sequence[MemberSpec]) -> None:
        self._ownership = ownership
        self._follows_last = version.conflicts == "last_visited"
        self._stated = {member.member_id: member.field_generation for member in members}
        self._claimant: dict[TopicPartition, str] = {}

    def enter(self, member_id: str, partitions: Sequence[TopicPartition], generation: int | None) -> None:
        ownership = self._ownership
        mine = NO_GENERATION if generation is None else generation
        ownership.newest_generation = max(ownership.newest_generation, mine)
        for partition in partitions:
            other = self._claimant.get(partition)
            if other is None or self._follows_last:
                self._claimant[partition] = member_id
            if other is None:
                ownership.owned[member_id].append(partition)
                continue
            stated = self._stated[other]
            theirs = NO_GENERATION if stated is None else stated
            if mine < theirs:
                continue
            if mine == theirs:
                ownership.contested[partition] = None
            else:
                ownership.owned[member_id].append(partition)
            _drop(ownership.owned[other], partition)
            self._claimant[partition] = member_id

    def close(self) -> None:
        pass


def _drop(partitions: list[TopicPartition], partition: TopicPartition) -> None:
    if partition in partitions:
        partitions.remove(partition)
