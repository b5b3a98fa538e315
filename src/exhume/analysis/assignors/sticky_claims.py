"""Whose claims to what they owned the sticky assignors believe, era by era.

A member of `sticky` claims by its user data, one of `cooperative-sticky` by the owned partitions in its subscription. Claims carry a
generation, and the eras differ in what they make of claims of several generations, and of two members that claim one partition.

Source: AbstractStickyAssignor.allSubscriptionsEqual, StickyAssignor.memberData and CooperativeStickyAssignor.memberData, Kafka 2.4 to 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from exhume.analysis.assignors.group import Assigned, GroupSpec, MemberSpec, TopicPartition
from exhume.codecs.embedded.consumer import NO_GENERATION


@dataclass(frozen=True, slots=True, kw_only=True)
class StickyVersion:
    """What an era of the sticky assignors does.

    Attributes:
        constrained: how equal subscriptions are served: not told apart, filled up to a quota, or by quotas from the start.
        conflicts: what happens to two claims: both are honoured, the newest generation counts and equal ones cancel each other, or
            that is decided for each partition, against the member that was looked at last, or against the one that holds it.
        knows_generations: claims have generations. Before, every claim is kept, and a topic without metadata makes the leader fail.
        places_new_first: partitions of nobody are balanced by themselves first.
        reads_cooperative_user_data: cooperative members have their generation in the user data, too.
        reads_generation_field: the generation field of the subscription is read where it is there.
        is_rack_aware: racks count.
        sorts_owned: what is owned is sorted before what is too much is cut off, and who has to give a partition up is remembered.
        tolerates_one: members that differ by one are balanced; before, that was looked at only where the extremes differ by more.
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
    """What a member claims; no generation where it states none."""

    partitions: tuple[TopicPartition, ...]
    generation: int | None


@dataclass(slots=True)
class Ownership:
    """What the claims of all members come to.

    Attributes:
        owned: member id -> partitions, in the order of the bytes.
        contested: partitions that two members of one generation claim.
        subscriptions_equal: every member subscribes to the same topics.
        newest_generation: of all claims.
        read: members whose user data was read so far. Up to 2.8 nobody rewinds it for a second reading.
    """

    owned: Assigned = field(default_factory=dict)
    contested: dict[TopicPartition, None] = field(default_factory=dict)
    subscriptions_equal: bool = True
    newest_generation: int = NO_GENERATION
    read: set[str] = field(default_factory=set)


def claim_of(member: MemberSpec, version: StickyVersion, *, cooperative: bool) -> Claim:
    """What this member claims, as this era reads it."""
    if not cooperative:
        return Claim(member.owned, member.user_data_generation)
    if version.reads_generation_field and member.field_generation is not None:
        return Claim(member.owned, member.field_generation)
    return Claim(member.owned, member.user_data_generation if version.reads_cooperative_user_data else None)


def second_claim_of(member: MemberSpec, version: StickyVersion, *, cooperative: bool, read: set[str]) -> Claim:
    """The same on a second reading of what was `read` before, up to 2.8: user data has no bytes left then."""
    claim = claim_of(member, version, cooperative=cooperative)
    if member.member_id not in read:
        return claim
    if not cooperative:
        return Claim((), None)
    has_user_data = version.reads_cooperative_user_data and member.user_data_generation is not None
    return Claim(claim.partitions, NO_GENERATION if has_user_data else None)


def believed(spec: GroupSpec, members: Sequence[MemberSpec], version: StickyVersion, *, cooperative: bool) -> Ownership:
    """Who owns what, and whether all subscriptions are equal. Members in hash order."""
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
    """Only claims of the newest generation count."""

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
    """For each partition the newest claim counts. Of the earlier claimant, the generation field alone is looked at."""

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
