"""The state of a coordinator: plain values, shared by both loaders.

`PartitionState` is the memory of one offsets partition: groups by id, committed offsets, offsets pending on a transaction, and the share
group state that the Java coordinator keeps beside its groups. Every value knows the record that made it (`record_offset`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol

import pyarrow as pa

from exhume.arrow_rows import OfLog
from exhume.codecs.layout import Fields
from exhume.replay.state_tables import ClientTag, Endpoint

#: (group, topic, partition)
OffsetKey = tuple[str, str, int]
#: topic id -> partition -> assignment epoch (None if the record has none)
TopicPartitions = dict[str | None, dict[int, int | None]]
#: task role -> subtopology id -> partition -> assignment epoch
Tasks = dict[str, dict[str, dict[int, int | None]]]


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed offset. None stands for Kafka's -1; `producer_id` is set if a transaction committed it.

    `batch_first_offset` is the record offset of the first record of its batch: the Scala coordinator orders commits by it.
    """

    committed_offset: int
    leader_epoch: int | None
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None
    topic_id: str | None
    value_version: int
    record_offset: int
    batch_first_offset: int
    producer_id: int | None
    producer_epoch: int | None


@dataclass(slots=True)
class OpenTransaction:
    """A transaction without its end marker: the producer, and its records so far."""

    producer_id: int
    producer_epoch: int
    first_record_offset: int
    last_record_offset: int
    first_timestamp_ms: int | None
    last_timestamp_ms: int | None
    groups: set[str] = field(default_factory=set)
    offsets: dict[OffsetKey, Commit] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """A member of a classic group, as its record has it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(slots=True)
class ClassicGroupState:
    """A classic group as loaded: Stable with members, Empty without. A simple group has no protocol type and no members.

    One with more members than `group.max.size`, or that was a consumer group, is PreparingRebalance because of `rebalance_at_load`.
    """

    group_type: ClassVar[str] = "classic"
    group: str
    record_offset: int
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    current_state_timestamp_ms: int | None = None
    members: Mapping[str, ClassicMember] = field(default_factory=dict)
    #: None: unknown to the coordinator.
    subscribed_topics: frozenset[str] | None = None
    memberless_state: str = "Empty"
    rebalance_at_load: Literal["group_max_size", "downgrade"] | None = None

    @property
    def state(self) -> str:
        if self.rebalance_at_load is not None:
            return "PreparingRebalance"
        return "Stable" if self.members else self.memberless_state

    @property
    def is_simple(self) -> bool:
        return self.protocol_type is None and not self.members


class LaterMembers(Mapping[str, ClassicMember]):
    """Members that are decoded on first access; `whole` builds their group with all fields, `value` is the value of its record."""

    def __init__(self, count: int, whole: Callable[[], ClassicGroupState], value: bytes) -> None:
        self.whole = whole
        self.value = value
        self._count = count
        self._members: Mapping[str, ClassicMember] | None = None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __getitem__(self, member_id: str) -> ClassicMember:
        return self._all()[member_id]

    def _all(self) -> Mapping[str, ClassicMember]:
        if self._members is None:
            self._members = self.whole().members
        return self._members


@dataclass(slots=True)
class ModernMember:
    """The common fields of members of consumer, share and streams groups. Codes and epochs as in the records."""

    member_id: str
    record_offset: int
    member_epoch: int | None = 0
    previous_member_epoch: int | None = -1
    member_state: str | None = "STABLE"
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int | None = -1
    #: Record offset of the current assignment record, None while there is none.
    assignment_record_offset: int | None = None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.member_state == "STABLE" and self.member_epoch == assignment_epoch


@dataclass(slots=True)
class ConsumerMember(ModernMember):
    """A member of a consumer group. `assigned` are its partitions, `pending_revocation` those that it must still revoke."""

    group_instance_id: str | None = None
    subscribed_topics: list[str] = field(default_factory=list)
    subscribed_regex: str | None = None
    server_assignor: str | None = None
    #: The metadata of a member that uses the classic protocol; None for one that uses the consumer protocol.
    classic: Fields | None = None
    assigned: TopicPartitions = field(default_factory=dict)
    pending_revocation: TopicPartitions = field(default_factory=dict)
    #: Only 3.7: the epoch to which the member moves, and the partitions that it still gets. Else None and empty.
    target_member_epoch: int | None = None
    pending_assignment: TopicPartitions = field(default_factory=dict)

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        if self.target_member_epoch is None:
            return self.member_state == "STABLE" and self.member_epoch == assignment_epoch
        return self.target_member_epoch == assignment_epoch and not self.pending_revocation and not self.pending_assignment


@dataclass(slots=True)
class ShareMember(ModernMember):
    """A member of a share group."""

    subscribed_topics: list[str] = field(default_factory=list)
    assigned: TopicPartitions = field(default_factory=dict)


@dataclass(slots=True)
class StreamsMember(ModernMember):
    """A member of a streams group; every field is unset until a record sets it."""

    group_instance_id: str | None = None
    topology_epoch: int | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: list[ClientTag] = field(default_factory=list)
    assigned: Tasks = field(default_factory=dict)
    pending_revocation: Tasks = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """The target assignment of one member: partitions by topic id, or tasks by role."""

    record_offset: int
    assigned: Any


@dataclass(slots=True)
class ModernGroupState:
    """The common fields of consumer, share and streams groups."""

    group_type: ClassVar[str] = ""
    group: str
    record_offset: int
    group_epoch: int
    assignment_epoch: int
    metadata_hash: int = 0
    assignment_timestamp_ms: int = 0
    members: dict[str, Any] = field(default_factory=dict)
    target: dict[str, Target] = field(default_factory=dict)

    @property
    def state(self) -> str:
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"


@dataclass(slots=True)
class RegularExpression:
    """The topics that a regular expression was resolved to."""

    topics: list[str]
    metadata_image_version: int
    resolved_timestamp_ms: int
    record_offset: int


@dataclass(slots=True)
class ConsumerGroupState(ModernGroupState):
    """A consumer group (KIP-848)."""

    group_type: ClassVar[str] = "consumer"
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    regular_expressions: dict[str, RegularExpression] = field(default_factory=dict)
    #: (topic id, partition) -> member epoch of the owner, with which the coordinator refuses a second owner.
    owner_epochs: dict[tuple[str | None, int], int] = field(default_factory=dict)


@dataclass(slots=True)
class ShareGroupState(ModernGroupState):
    """A share group (KIP-932)."""

    group_type: ClassVar[str] = "share"
    members: dict[str, ShareMember] = field(default_factory=dict)

    @property
    def state(self) -> str:
        # The progress of an assignment is not part of a share group's state.
        return "Stable" if self.members else "Empty"


@dataclass(slots=True)
class StreamsGroupState(ModernGroupState):
    """A streams group (KIP-1071)."""

    group_type: ClassVar[str] = "streams"
    members: dict[str, StreamsMember] = field(default_factory=dict)
    validated_topology_epoch: int = 0
    last_assignment_configs: list[dict[str, str]] = field(default_factory=list)
    topology: Fields | None = None
    topology_record_offset: int | None = None
    #: Role of a task -> subtopology id -> partition -> process ids of its owners, if the release checks them. An active task has one.
    task_owners: dict[str, dict[str, dict[int, set[str]]]] = field(default_factory=dict)
    #: 4.1 does not persist that a topology was validated.
    forgets_validation: bool = False

    @property
    def state(self) -> str:
        if not self.members:
            return "Empty"
        if self.forgets_validation or self.topology is None or self.topology["topology_epoch"] != self.validated_topology_epoch:
            return "NotReady"
        return super(StreamsGroupState, self).state  # slots=True replaces the class that a bare super() would look in


Group = ClassicGroupState | ConsumerGroupState | ShareGroupState | StreamsGroupState


@dataclass(slots=True)
class ShareState:
    """The partitions of a share group from record type 15."""

    initializing: list[Fields]
    initialized: list[Fields]
    deleting: list[Fields]
    record_offset: int


class OffsetColumns(Protocol):
    """Committed offsets in columns."""

    def table(self, origin: OfLog) -> pa.Table:
        """Return the offsets as rows of the `offsets` table, by group, topic and partition; `origin` has the columns of the log."""
        ...

    def commits(self, groups: Collection[str] | None = None) -> Mapping[OffsetKey, Commit]:
        """Return the offsets one by one; `groups`: only those of these groups."""
        ...

    def spans(self) -> Mapping[str, tuple[int, int]]:
        """Return the lowest and the highest record offset of each group's commits."""
        ...


@dataclass(slots=True)
class PartitionState:
    """The memory of a coordinator for one offsets partition."""

    groups: dict[str, Group] = field(default_factory=dict)
    offsets: dict[OffsetKey, Commit] = field(default_factory=dict)
    transactions: dict[int, OpenTransaction] = field(default_factory=dict)
    share_states: dict[str, ShareState] = field(default_factory=dict)
    #: Committed offsets that are kept in columns, besides `offsets`.
    offset_columns: OffsetColumns | None = None

    def whole(self, groups: Collection[str] | None = None) -> PartitionState:
        """Return this state with all committed offsets in `offsets` and all members decoded.

        With `groups`, only those of these groups.
        """
        if self.offset_columns is None:
            return self
        offsets = {**self.offset_columns.commits(groups), **self.offsets}
        known = {name: _whole(group) for name, group in self.groups.items() if groups is None or name in groups}
        return replace(self, groups=known, offsets=offsets, offset_columns=None)

    def is_stable(self, key: OffsetKey) -> bool:
        """Return False while an open transaction has a pending commit for this key: then a require-stable fetch is refused."""
        return not any(key in transaction.offsets for transaction in self.transactions.values())


def _whole(group: Group) -> Group:
    if isinstance(group, ClassicGroupState) and isinstance(group.members, LaterMembers):
        return replace(group.members.whole(), rebalance_at_load=group.rebalance_at_load)
    return group
