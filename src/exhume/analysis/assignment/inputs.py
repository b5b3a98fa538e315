"""The input of a group's assignor, rebuilt from the log.

The record of a classic group has the subscriptions and the assignments of one generation: input and output. The target of a consumer or
share group was computed from the members at that time and from the target before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from exhume.analysis.assignors import Assigned, GroupSpec, MemberSpec, TopicPartition
from exhume.analysis.memberships import Member, Membership
from exhume.analysis.topic_sizes import TopicSize, TopicSizes, is_plausible
from exhume.codecs.embedded.consumer import NO_GENERATION

#: Assignors whose result depends on what members owned before.
STICKY = ("sticky", "cooperative-sticky")


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """The facts that the group's own records do not have.

    Attributes:
        sizes: partition counts and racks.
        topic_ids: topic name -> the 16 bytes of its id.
        names: every known topic name. A topic without a name is listed by its id.
        assignable: for share groups since 4.1, topic -> initialized partitions; None where no record gives them.
    """

    sizes: TopicSizes
    topic_ids: Mapping[str, bytes]
    names: Collection[str] = ()
    assignable: Mapping[str, Sequence[int]] | None = None


def outcome_of(step: Membership) -> Assigned:
    """Return the result of the assignor: the assignment of a classic group, the target of any other group."""
    if step.kind == "classic":
        return {member.member_id: list(member.assigned or ()) for member in step.members.values()}
    return {member.member_id: list(member.target or ()) for member in step.members.values()}


def assignor_of(step: Membership) -> str | None:
    """Return the name of the assignor.

    It is the protocol of a classic group, or the choice of most members of a consumer group, or the only one.
    """
    if step.kind == "classic":
        return step.protocol
    if step.kind == "consumer":
        chosen = [member.server_assignor for member in step.members.values() if member.server_assignor]
        return max(dict.fromkeys(chosen), key=chosen.count) if chosen else "uniform"
    return "simple" if step.kind == "share" else "sticky"


def subscribed_topics(step: Membership) -> list[str]:
    """Return every topic that a member subscribes to, each once."""
    return list(dict.fromkeys(topic for member in step.members.values() for topic in member.subscribed_topics or ()))


def stated_counts(step: Membership, facts: TopicFacts) -> dict[str, TopicSize]:
    """Return the sizes of the subscribed topics that a record or a topics file gives.

    Where a record of the group lists the existing topics, only those.
    """
    found = {topic: facts.sizes.of(topic, step.group) for topic in subscribed_topics(step)}
    exact = {topic: size for topic, size in found.items() if size is not None and size.is_exact}
    if step.kind != "classic" and facts.sizes.covers(step.group):
        return {topic: size for topic, size in exact.items() if facts.sizes.is_in_record_of(step.group, topic)}
    return exact


def own_counts(step: Membership) -> dict[str, TopicSize]:
    """Return the sizes that this assignment itself implies: assigned and claimed partitions, without a gap from partition 0 on."""
    spoken: dict[str, set[int]] = {}
    for member in step.members.values():
        for topic, partition in (*(member.assigned or ()), *(member.claimed or ()), *(member.target or ()), *member.pending_revocation):
            spoken.setdefault(topic, set()).add(partition)
    wanted = set(subscribed_topics(step))
    return {
        topic: TopicSize(topic, max(numbers) + 1, "assignment" if max(numbers) == len(numbers) - 1 else "at_least", max(numbers) + 1)
        for topic, numbers in spoken.items()
        if topic in wanted and min(numbers) >= 0 and is_plausible(max(numbers) + 1)
    }


def group_spec_of(
    step: Membership, before: Membership | None, assignor: str, sizes: Mapping[str, TopicSize], facts: TopicFacts, *, had: bool = False
) -> GroupSpec:
    """Return the input as this assignor reads it. `had`: as if members had claimed what they were assigned in the step before."""
    counts = {topic: size.partition_count for topic, size in sizes.items()}
    racks = {topic: size.racks for topic, size in sizes.items() if size.racks is not None}
    if step.kind == "classic":
        members = [_classic_member(member, assignor, step.protocol) for member in step.members.values()]
        if had and before is not None:
            members = [_as_it_had(member, before) for member in members]
        return GroupSpec(members, counts, racks)
    targets = _previous_targets(step, before)
    members = [
        MemberSpec(
            member.member_id,
            tuple(member.subscribed_topics or ()),
            member.group_instance_id,
            member.rack_id,
            tuple(each for each in targets.get(member.member_id, ()) if each[0] in facts.topic_ids),
        )
        for member in step.members.values()
    ]
    known = {topic: count for topic, count in counts.items() if topic in facts.topic_ids}
    return GroupSpec(members, known, racks, facts.topic_ids, facts.assignable)


def _classic_member(member: Member, assignor: str, protocol: str | None) -> MemberSpec:
    payload = member.subscription
    value = payload.value if payload is not None and payload.kind == "consumer_subscription" else {}
    user_data: bytes | None = value.get("user_data")
    generation = value.get("generation", NO_GENERATION)
    spec = MemberSpec(
        member.member_id,
        tuple(member.subscribed_topics or ()),
        member.group_instance_id,
        member.rack_id,
        field_generation=None if generation < 0 else generation,
        has_user_data=bool(user_data),
    )
    if assignor != protocol:
        return spec
    if assignor == "sticky" and user_data and payload is not None:
        sticky = payload.user_data
        if sticky is None or sticky.kind != "sticky_user_data":
            return replace(spec, user_data_generation=NO_GENERATION)
        owned = tuple((entry["topic"], partition) for entry in sticky.value["previous_assignment"] for partition in entry["partitions"])
        return replace(spec, owned=owned, user_data_generation=sticky.value.get("generation") if sticky.version else None)
    if assignor == "cooperative-sticky":
        stated = None
        if user_data is not None:
            stated = int.from_bytes(user_data[:4], "big", signed=True) if len(user_data) >= 4 else NO_GENERATION
        return replace(spec, owned=tuple(member.claimed or ()), user_data_generation=stated)
    return spec


def _as_it_had(member: MemberSpec, before: Membership) -> MemberSpec:
    known = before.members.get(member.member_id)
    if known is None:
        return replace(member, owned=(), user_data_generation=None)
    return replace(member, owned=tuple(known.assigned or ()), user_data_generation=before.generation, has_user_data=True)


def previous_owners(step: Membership, before: Membership | None) -> dict[TopicPartition, list[str]]:
    """Return the previous owners of each partition: members that are still in the group, by their present member id."""
    owners: dict[TopicPartition, list[str]] = {}
    held: Mapping[str, Sequence[TopicPartition]]
    if step.kind == "classic":
        held = {} if before is None or before.kind != "classic" else inherited(step, before, "assigned")
    else:
        held = _previous_targets(step, before)
    for member_id, partitions in held.items():
        for partition in partitions:
            owners.setdefault(partition, []).append(member_id)
    return owners


def _previous_targets(step: Membership, before: Membership | None) -> dict[str, Sequence[TopicPartition]]:
    """Return the assignment that the coordinator started from: the target before, or the assignment of a group that was classic before."""
    if before is None or before.kind not in (step.kind, "classic"):
        return {}
    return inherited(step, before, "target" if before.kind == step.kind else "assigned")


def inherited(step: Membership, before: Membership, what: str) -> dict[str, Sequence[TopicPartition]]:
    """Return an attribute of the members before. A static member with a new member id inherits from its old member id."""
    by_instance = {member.group_instance_id: member for member in before.members.values() if member.group_instance_id is not None}
    held = {}
    for member in step.members.values():
        known = before.members.get(member.member_id) or by_instance.get(member.group_instance_id or "")
        if known is not None:
            held[member.member_id] = getattr(known, what) or ()
    return held
