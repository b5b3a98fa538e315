"""The `sticky` and `cooperative-sticky` assignors of consumers, version by version.

    0.11 - 2.2      every claim is kept; a topic without metadata makes the leader fail
    2.3             claims have a generation, the newest one counts
    2.4.0 - 2.5.0   always balanced by moving partitions
    2.5.1 - 2.8.0   equal subscriptions are filled up to quotas; two claims to one partition both count (KAFKA-12984)
    2.8.1 - 2.8.2   two claims of one generation cancel each other; cooperative members state their generation
    3.0.0 - 3.3.2   equal subscriptions by quotas from the start
    3.4.1           the newest claim counts for each partition (KAFKA-14639)
    3.5.2 - 3.7.0   racks count; members that differ by one are balanced (KAFKA-15106)
    3.7.1 -         owned partitions are sorted before the surplus is cut (KAFKA-16277); racks never hide the old owner (KAFKA-15170)

A cooperative assignor removes from its plan the partitions that another member still owns. It changes nothing else.

Source: AbstractStickyAssignor, StickyAssignor and CooperativeStickyAssignor, Kafka 0.11 to 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heappop, heapreplace

from exhume.analysis.assignors.group import Assigned, AssignorThrows, GroupAssignment, GroupSpec, MemberSpec, TopicPartition
from exhume.analysis.assignors.java_order import hash_order, partition_hash, sort_key, string_hash
from exhume.analysis.assignors.racks import RackView, racks_that_matter
from exhume.analysis.assignors.sticky_balance import Balance
from exhume.analysis.assignors.sticky_claims import Ownership, StickyVersion, accepted_claims, claim_of, second_claim_of
from exhume.analysis.assignors.sticky_quotas import Transfers, by_quotas, filled
from exhume.codecs.embedded.consumer import NO_GENERATION

ERA_0_11 = StickyVersion(constrained="no", knows_generations=False, places_new_first=False)
ERA_2_3 = StickyVersion(constrained="no", places_new_first=False)
ERA_2_4 = StickyVersion(constrained="no")
ERA_2_5 = StickyVersion(constrained="filled")
ERA_2_8 = replace(ERA_2_5, conflicts="newest", reads_cooperative_user_data=True)
ERA_3_0 = replace(ERA_2_8, constrained="quotas")
ERA_3_4 = replace(ERA_3_0, conflicts="last_visited", reads_generation_field=True)
ERA_3_5 = replace(ERA_3_4, conflicts="holder", is_rack_aware=True, tolerates_one=True)
ERA_3_7 = replace(ERA_3_5, sorts_owned=True)


def sticky(spec: GroupSpec, version: StickyVersion, *, cooperative: bool) -> GroupAssignment:
    """Return the plan of this version; with `cooperative`, without the partitions that their owners still have to release.

    Raises:
        AssignorThrows: Kafka's class throws.
    """
    subscribed = {topic for member in spec.members for topic in member.topics}
    unknown = sorted(subscribed.difference(spec.partition_counts))
    if unknown and not version.knows_generations:
        raise AssignorThrows("NullPointerException", f"no metadata of topic {unknown[0]}")
    spec = GroupSpec(spec.members, {topic: count for topic, count in spec.partition_counts.items() if topic in subscribed}, spec.racks)
    members = spec.in_hash_order()
    ownership = accepted_claims(spec, members, version, cooperative=cooperative) if version.constrained != "no" else Ownership()
    racks = racks_that_matter(spec, members, spec.partition_counts) if version.is_rack_aware else RackView()
    if version.constrained == "quotas" and ownership.subscriptions_equal:
        assigned, transfers = by_quotas(spec, ownership, version, racks)
    elif version.constrained == "filled" and ownership.subscriptions_equal:
        assigned, transfers = filled(spec, ownership)
    else:
        if version.constrained == "quotas":
            assigned = _balanced_by_topic(spec, members, ownership, version, racks, cooperative=cooperative)
        else:
            assigned = _balanced_by_partition(spec, members, ownership, version, cooperative=cooperative)
        transfers = _handed_over(members, assigned)
    if not cooperative:
        return GroupAssignment(assigned)
    withheld: dict[str, list[TopicPartition]] = {}
    for partition, member_id in transfers.items():
        if partition in assigned[member_id]:
            assigned[member_id].remove(partition)
        withheld.setdefault(member_id, []).append(partition)
    return GroupAssignment(assigned, withheld)


def _handed_over(members: Sequence[MemberSpec], assigned: Assigned) -> Transfers:
    """Return the partitions that move: the plan gives them to one member, and another member owns them."""
    owned = {member.member_id: set(member.owned) for member in members}
    added = {
        partition: member_id for member_id, partitions in assigned.items() for partition in partitions if partition not in owned[member_id]
    }
    revoked = {partition for member_id, partitions in assigned.items() for partition in owned[member_id].difference(partitions)}
    return {partition: member_id for partition, member_id in added.items() if partition in revoked}


def _balanced_by_topic(
    spec: GroupSpec, members: Sequence[MemberSpec], ownership: Ownership, version: StickyVersion, racks: RackView, *, cooperative: bool
) -> Assigned:
    """Assign as since 3.0: members keep the partitions of valid claims; a partition may return to its newest older claimant."""
    previous: dict[TopicPartition, tuple[int, str]] = {}
    for member in members:
        claim = claim_of(member, version, cooperative=cooperative)
        generation = NO_GENERATION if claim.generation is None else claim.generation
        if generation >= ownership.newest_generation:
            continue
        for partition in claim.partitions:
            if partition not in previous or generation > previous[partition][0]:
                previous[partition] = (generation, member.member_id)

    balance = Balance(spec, members, ownership.owned, racks, tolerates_one=version.tolerates_one)
    topics = {member.member_id: frozenset(member.topics) for member in members}
    revokes = False
    kept = []
    for member_id, partitions in balance.held.items():
        allowed = [each for each in partitions if each[0] in topics[member_id] and not racks.mismatch(member_id, each)]
        revokes |= len(allowed) < len(partitions)
        partitions[:] = allowed
        kept += allowed
    everything = balance.every_partition()
    owners = {partition: member_id for partition, (_, member_id) in previous.items()}
    return balance.run(everything, _not_kept(everything, sorted(kept, key=balance.partition_order)), owners, revokes=revokes)


def _not_kept(everything: Sequence[TopicPartition], kept: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Return the partitions that are not kept.

    As in Kafka, one pass compares both lists in step: after a kept partition that does not exist, no partition counts as kept.
    """
    walk = iter(kept)
    expected = next(walk, None)
    left = []
    for partition in everything:
        if partition == expected:
            expected = next(walk, None)
        else:
            left.append(partition)
    return left


def _balanced_by_partition(
    spec: GroupSpec, members: Sequence[MemberSpec], ownership: Ownership, version: StickyVersion, *, cooperative: bool
) -> Assigned:
    """Assign as up to 2.8: the newest claim to each partition counts; the partition may return to the claimant before."""
    held, previous = _newest_claims(members, ownership, version, cooperative=cooperative)
    is_fresh = not any(held.values()) if version.knows_generations else not any(member.has_user_data for member in members)
    balance = Balance(spec, members, held, RackView(), tolerates_one=version.tolerates_one)
    everything = balance.every_partition()
    if version.constrained == "no" and not is_fresh and _all_alike(spec, members):
        at_the_end = hash_order(_as_leaders_list(spec, members), partition_hash)
        everything = _from_the_fullest(at_the_end, held, hash_order(previous, partition_hash))
    topics = {member.member_id: frozenset(member.topics) for member in members}
    exists = set(everything)
    left = dict.fromkeys(everything)
    revokes = False
    for member_id, partitions in held.items():
        for partition in list(partitions):
            if partition not in exists:
                partitions.remove(partition)
                balance.holder.pop(partition, None)
            elif partition[0] not in topics[member_id]:
                partitions.remove(partition)
                revokes = True
            else:
                left.pop(partition, None)
    return balance.run(everything, list(left), previous, revokes=revokes or not version.places_new_first)


def _newest_claims(
    members: Sequence[MemberSpec], ownership: Ownership, version: StickyVersion, *, cooperative: bool
) -> tuple[Assigned, dict[TopicPartition, str]]:
    """Return the partitions of each member by the newest claims, and the member of the claim before, by partition."""
    previous: dict[TopicPartition, str] = {}
    if not version.knows_generations:
        return {member.member_id: list(member.owned) for member in members}, previous
    claims: dict[TopicPartition, dict[int, str]] = {}
    for member in members:
        claim = second_claim_of(member, version, cooperative=cooperative, read=ownership.read)
        for partition in claim.partitions:
            by_generation = claims.setdefault(partition, {})
            if claim.generation is None or claim.generation not in by_generation:
                by_generation[NO_GENERATION if claim.generation is None else claim.generation] = member.member_id
    held: Assigned = {member.member_id: [] for member in members}
    for partition in hash_order(claims, partition_hash):
        newest, *older = sorted(claims[partition], reverse=True)
        held[claims[partition][newest]].append(partition)
        if older:
            previous[partition] = claims[partition][older[0]]
    return held, previous


def _all_alike(spec: GroupSpec, members: Sequence[MemberSpec]) -> bool:
    """True if all members have the same existing topics."""
    known = [frozenset(spec.known_topics(member)) for member in members]
    return all(topics == known[0] for topics in known)


def _from_the_fullest(everything: Sequence[TopicPartition], held: Assigned, contested: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Return partitions one by one from the member with most left, contested ones first; then the partitions without an owner."""
    exists = set(everything)
    remaining = {member_id: [each for each in partitions if each in exists] for member_id, partitions in held.items()}
    order = []
    rank = {member_id: number for number, member_id in enumerate(sorted(remaining, key=sort_key))}
    fullest = [(-len(partitions), -rank[member_id], member_id) for member_id, partitions in remaining.items() if partitions]
    heapify(fullest)
    while fullest:
        _, place, member_id = fullest[0]
        own = remaining[member_id]
        partition = next((each for each in contested if each in own), own[0])
        own.remove(partition)
        order.append(partition)
        if own:
            heapreplace(fullest, (-len(own), place, member_id))
        else:
            heappop(fullest)
    listed = set(order)
    return [*order, *(each for each in everything if each not in listed)]


def _as_leaders_list(spec: GroupSpec, members: Sequence[MemberSpec]) -> list[TopicPartition]:
    """Return all partitions by topic, in the order of the leader's set of all subscriptions."""
    topics = hash_order((topic for member in members for topic in member.topics), string_hash)
    return [(topic, partition) for topic in topics for partition in range(spec.partition_counts.get(topic, 0))]
