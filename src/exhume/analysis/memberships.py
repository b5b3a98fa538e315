"""Who was in a group, from one of its records to the next: the values that questions about its life are answered from.

A `Membership` is one step in the life of a group: what its coordinator had written about it when a batch of its log was done. A classic
group takes a step with every record of it, which is one per stored generation: joining and the generations that never got an assignment
leave no record. A consumer, share or streams group takes a step with every batch that has a record of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from exhume.arrow_rows import Origin
from exhume.codecs.embedded import Payload
from exhume.codecs.wire import is_uuid

#: (topic, partition). The topic is its id, in Kafka's spelling, where nobody knows its name.
TopicPartition = tuple[str, int]
#: (subtopology id, partition) of a streams group.
Task = tuple[str, int]

Kind = Literal["classic", "consumer", "share", "streams"]
#: What a member of a modern group is doing. `unrevoked`: it has to give partitions up first. `unreleased`: it waits for partitions that
#: others still own.
MemberState = Literal["stable", "unrevoked", "unreleased", "unknown"]

#: The epoch of a static member that has left for now and may come back.
AWAY_EPOCH = -2


class MemberName(NamedTuple):
    """What a member is called."""

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None


@dataclass(frozen=True, slots=True)
class Member:
    """A member as the log has it. None is for what the log does not say, or says in bytes that nothing known fits.

    `assigned` is what it may consume: the leader's assignment, or what the coordinator has given it so far, in the order of the record.
    `pending_revocation` is what it still owns and has to give up, `target` what it is to have in the end; classic groups have neither.
    `claimed` is what it said it owned when it joined (subscriptions of version 1 on), as of `claimed_generation`.
    `subscribed_topics` has the topics of its regular expression too; it is None where those are not known.
    A member of a streams group has tasks; `assigned` are the partitions that they read, None until a topology is known.
    """

    member_id: str
    group_instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    rack_id: str | None = None
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    subscribed_topics: tuple[str, ...] | None = None
    subscribed_regex: str | None = None
    server_assignor: str | None = None
    assigned: tuple[TopicPartition, ...] | None = None
    pending_revocation: tuple[TopicPartition, ...] = ()
    target: tuple[TopicPartition, ...] | None = None
    claimed: tuple[TopicPartition, ...] | None = None
    claimed_generation: int | None = None
    member_epoch: int | None = None
    previous_member_epoch: int | None = None
    member_state: MemberState | None = None
    #: It speaks the classic protocol.
    is_classic: bool = False
    active_tasks: tuple[Task, ...] = ()
    standby_tasks: tuple[Task, ...] = ()
    warmup_tasks: tuple[Task, ...] = ()
    process_id: str | None = None
    #: What the bytes of a classic member hold, user data too.
    subscription: Payload | None = field(default=None, compare=False, repr=False)
    assignment: Payload | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> MemberName:
        """What it is called."""
        return MemberName(self.member_id, self.group_instance_id, self.client_id, self.client_host)

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        """What nobody else may have: what is assigned to it, and what it has not yet given up."""
        return (*(self.assigned or ()), *self.pending_revocation) if self.pending_revocation else self.assigned or ()

    @property
    def is_away(self) -> bool:
        """True for a static member of a modern group that left for now: its partitions are kept for it, and nobody reads them."""
        return self.member_epoch == AWAY_EPOCH

    @property
    def identity(self) -> tuple[str | None, ...]:
        """What it is known by when it comes back, since every join makes a new member id: its instance id, else client id and host."""
        return (self.group_instance_id,) if self.group_instance_id is not None else (self.client_id, self.client_host)


class Membership(NamedTuple):
    """A group from `record_offset` on, the first of its records in this step, to its next step.

    `timestamp_ms` is the time of the last of these records; None in message format 0. `state_timestamp_ms` is when a classic group came
    into its state: of a record with members, when their leader was chosen; of one without, when the group became Empty.
    `generation` is None but for classic groups, the epochs for those. `target_epoch` is that of the target assignment.
    """

    replica: str | None
    offsets_partition: int | None
    group: str
    kind: Kind
    record_offset: int
    last_record_offset: int
    timestamp_ms: int | None
    path: str
    byte_position: int
    #: By member id, in the order of the record.
    members: Mapping[str, Member]
    generation: int | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    state_timestamp_ms: int | None = None
    group_epoch: int | None = None
    target_epoch: int | None = None
    assignment_timestamp_ms: int | None = None
    #: What its records say of its topics: their hash (since 4.1), or partition counts and racks (to 4.0). Only good for comparing.
    topic_metadata: tuple[int | None, Mapping[str, Any] | None] = (None, None)
    #: Of a share group since 4.1: partitions that its members can be given; None where no record says.
    initialized: frozenset[TopicPartition] | None = None
    topology_epoch: int | None = None
    #: The group was removed: nothing is left of it but its offsets.
    is_tombstone: bool = False
    #: The record of a classic group that the Java coordinator writes when it makes one: generation 0, and nobody was ever in it.
    is_placeholder: bool = False
    #: In this very batch the group was of another kind before.
    converted_from: Kind | None = None

    @property
    def origin(self) -> tuple[str | None, int | None]:
        """Replica and offsets partition."""
        return self.replica, self.offsets_partition

    @property
    def epoch(self) -> int | None:
        """The number that grows with every change: the generation, or the group epoch."""
        return self.generation if self.kind == "classic" else self.group_epoch

    @property
    def is_beginning(self) -> bool:
        """True where its number alone says that nothing was in front of this step: no other comes before generation 1, or epoch 1.

        Epoch 2 is the first since 4.3 and was the second before, and members may come and go in generations that leave no record: ask
        `LogSpan.is_complete_behind` as well.
        """
        return self.epoch is not None and self.epoch <= 1 and self.converted_from is None

    @property
    def is_empty(self) -> bool:
        """True when nobody is in the group."""
        return not self.members

    @property
    def is_opaque(self) -> bool:
        """True when there are members and nothing tells who has which partition: another protocol type, or bytes that nothing fits."""
        return bool(self.members) and all(member.assigned is None for member in self.members.values())

    @property
    def nameless_topics(self) -> set[str]:
        """Topics that members have partitions of, or are to have, and of which nothing is known but the id.

        A name may have the form of an id: whoever knows the names of topics takes those away.
        """
        if self.kind == "classic":
            return set()
        topics = {topic for member in self.members.values() for topic, _ in (*member.owned, *(member.target or ()))}
        subscribed = {topic for member in self.members.values() for topic in member.subscribed_topics or ()}
        return {topic for topic in topics - subscribed if is_uuid(topic)}

    def owners(self) -> dict[TopicPartition, list[Member]]:
        """The members that own each partition: more than one where it is owned twice, or where the group is a share group."""
        owners: dict[TopicPartition, list[Member]] = {}
        for member in self.members.values():
            for topic_partition in dict.fromkeys(member.owned):
                if topic_partition in owners:
                    owners[topic_partition].append(member)
                else:
                    owners[topic_partition] = [member]
        return owners


def up_to(steps: Iterable[Membership], ends: Mapping[Origin, int]) -> Iterator[Membership]:
    """The steps that are complete where each log is cut off, in front of this record offset; a log that is not in `ends` is whole."""
    return (step for step in steps if is_in_front(step, ends))


def is_in_front(step: Membership, ends: Mapping[Origin, int]) -> bool:
    """Whether the step is complete in front of where its log is cut off; of a log that is not in `ends`, every step is."""
    return step.origin not in ends or step.last_record_offset < ends[step.origin]
