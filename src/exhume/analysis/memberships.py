"""The members of a group from one of its records to the next: the values for questions about its history.

A `Membership` is one step of a group: its records up to the end of a batch of its log. A classic group makes a step with every record, one
per stored generation: joins, and generations without an assignment, leave no record. A consumer, share or streams group makes a step with
every batch that has a record of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from exhume.arrow_rows import Origin
from exhume.codecs.embedded import Payload
from exhume.codecs.wire import is_uuid

#: (topic, partition). A topic without a known name is its id, in Kafka's spelling.
TopicPartition = tuple[str, int]
#: (subtopology id, partition) of a streams group.
Task = tuple[str, int]

Kind = Literal["classic", "consumer", "share", "streams"]
#: The state of a member of a modern group. `unrevoked`: it has to give up partitions first. `unreleased`: it waits for partitions that
#: other members still own.
MemberState = Literal["stable", "unrevoked", "unreleased", "unknown"]

#: The epoch of a static member that has left for now and may return.
AWAY_EPOCH = -2


class MemberName(NamedTuple):
    """The names of a member."""

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None


@dataclass(frozen=True, slots=True)
class Member:
    """A member as the log has it. None stands for values that the log does not have, or whose bytes cannot be read.

    `assigned` are the partitions that it may consume: the leader's assignment, or the part that the coordinator has granted so far, in the
    order of the record. `pending_revocation` are partitions that it still owns and has to give up, `target` is its target assignment;
    classic groups have neither. `claimed` are the partitions that it claimed when it joined (subscriptions of version 1 on), as of
    `claimed_generation`. `subscribed_topics` include those of its regular expression, and are None if those are not known. A member of a
    streams group has tasks; `assigned` are the partitions that they read, None until a topology is known.
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
    #: True if it uses the classic protocol.
    is_classic: bool = False
    active_tasks: tuple[Task, ...] = ()
    standby_tasks: tuple[Task, ...] = ()
    warmup_tasks: tuple[Task, ...] = ()
    process_id: str | None = None
    #: Its tasks by its target assignment.
    target_active_tasks: tuple[Task, ...] = ()
    target_standby_tasks: tuple[Task, ...] = ()
    #: The decoded bytes of a classic member, with user data.
    subscription: Payload | None = field(default=None, compare=False, repr=False)
    assignment: Payload | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> MemberName:
        """Return its names."""
        return MemberName(self.member_id, self.group_instance_id, self.client_id, self.client_host)

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        """Return the partitions that no other member may own: assigned, and not yet given up."""
        return (*(self.assigned or ()), *self.pending_revocation) if self.pending_revocation else self.assigned or ()

    @property
    def is_away(self) -> bool:
        """True for a static member of a modern group that left for now: it keeps its partitions, and no member reads them."""
        return self.member_epoch == AWAY_EPOCH

    @property
    def identity(self) -> tuple[str | None, ...]:
        """Return the identity that survives a restart, which gives a new member id: the instance id, else client id and host."""
        return (self.group_instance_id,) if self.group_instance_id is not None else (self.client_id, self.client_host)


class Subtopology(NamedTuple):
    """A subtopology of a streams group: the topics that its tasks read, and whether they keep state."""

    topics: tuple[str, ...]
    is_stateful: bool


class Membership(NamedTuple):
    """A group from `record_offset`, the first record of this step, to its next step.

    `timestamp_ms` is the time of the last of these records; None in message format 0. `state_timestamp_ms` is when a classic group entered
    its state: with members, when their leader was chosen; without, when the group became Empty. `generation` is None except for classic
    groups; the epochs are None for those. `target_epoch` is that of the target assignment.
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
    #: The topic metadata of its records: their hash (since 4.1), or partition counts and racks (to 4.0). Only for comparison.
    topic_metadata: tuple[int | None, Mapping[str, Any] | None] = (None, None)
    #: For a share group since 4.1, the partitions that its members can be assigned; None without such a record.
    initialized: frozenset[TopicPartition] | None = None
    topology_epoch: int | None = None
    #: The subtopologies of a streams group by id; None until a topology is known.
    subtopologies: Mapping[str, Subtopology] | None = None
    #: The number of standby copies that a streams group wants (since 4.2); None if no record gives it.
    standby_replicas: int | None = None
    #: The group was removed; only offsets may be left.
    is_tombstone: bool = False
    #: The record that the Java coordinator writes when it creates a classic group: generation 0, without members ever.
    is_placeholder: bool = False
    #: The kind of the group before this batch, if the batch converted it.
    converted_from: Kind | None = None

    @property
    def origin(self) -> tuple[str | None, int | None]:
        """Return replica and offsets partition."""
        return self.replica, self.offsets_partition

    @property
    def epoch(self) -> int | None:
        """Return the number that grows with every change: the generation, or the group epoch."""
        return self.generation if self.kind == "classic" else self.group_epoch

    @property
    def is_beginning(self) -> bool:
        """True if its number alone proves that this is the first step: none comes before generation 1, or epoch 1.

        Epoch 2 is the first since 4.3 and was the second before, and members may join and leave in generations without a record. Use
        `LogExtent.is_complete_after` as well.
        """
        return self.epoch is not None and self.epoch <= 1 and self.converted_from is None

    @property
    def is_empty(self) -> bool:
        """True if the group has no member."""
        return not self.members

    @property
    def is_opaque(self) -> bool:
        """True if the group has members, and no assignment can be read: another protocol type, or unknown bytes."""
        return bool(self.members) and all(member.assigned is None for member in self.members.values())

    @property
    def nameless_topics(self) -> set[str]:
        """Return the topics in assignments and targets of which only the id is known.

        A name may have the form of an id; a caller that knows the names of topics removes those.
        """
        if self.kind == "classic":
            return set()
        topics = {topic for member in self.members.values() for topic, _ in (*member.owned, *(member.target or ()))}
        subscribed = {topic for member in self.members.values() for topic in member.subscribed_topics or ()}
        return {topic for topic in topics - subscribed if is_uuid(topic)}

    def owners(self) -> dict[TopicPartition, list[Member]]:
        """Return the members that own each partition: several if it is owned twice, or if the group is a share group."""
        owners: dict[TopicPartition, list[Member]] = {}
        for member in self.members.values():
            for topic_partition in dict.fromkeys(member.owned):
                if topic_partition in owners:
                    owners[topic_partition].append(member)
                else:
                    owners[topic_partition] = [member]
        return owners


def up_to(steps: Iterable[Membership], ends: Mapping[Origin, int]) -> Iterator[Membership]:
    """Yield the steps that end before the record offset at which each log is cut; a log that is not in `ends` is whole."""
    return (step for step in steps if is_before_cut(step, ends))


def is_before_cut(step: Membership, ends: Mapping[Origin, int]) -> bool:
    """True if the step ends before the cut of its log; of a log that is not in `ends`, every step does."""
    return step.origin not in ends or step.last_record_offset < ends[step.origin]
