"""Consumer, share and streams groups built from their records: epochs, members, targets, current assignments.

Every record is accepted, because a cleaned log has lost some. `replay` applies them as a strict coordinator does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from exhume.analysis.memberships import Kind, Member, MemberState, Subtopology, Task, TopicPartition
from exhume.codecs.layout import Fields
from exhume.codecs.record_types import Decoded, role_of
from exhume.replay.java.modern import MEMBER_STATES, STREAMS_MEMBER_STATES
from exhume.replay.topic_names import TopicNames

_STATES: Mapping[str, MemberState] = {
    "STABLE": "stable",
    "UNREVOKED_PARTITIONS": "unrevoked",
    "UNREVOKED_TASKS": "unrevoked",
    "UNRELEASED_PARTITIONS": "unreleased",
    "UNRELEASED_TASKS": "unreleased",
}


@dataclass(slots=True)
class ModernGroupRecords:
    """The records of a group so far. `members` returns immutable values."""

    kind: Kind
    names: TopicNames
    epochs: Fields = field(default_factory=dict)
    target_epoch: int | None = None
    assignment_timestamp_ms: int | None = None
    topology: Fields | None = None
    #: The topics of a consumer or a share group by name, as coordinators to 4.0 wrote them.
    topics: Fields | None = None
    #: The partitions that members of a share group can be assigned.
    initialized: frozenset[TopicPartition] | None = None
    _metadata: dict[str, Fields] = field(default_factory=dict)
    _targets: dict[str, Fields] = field(default_factory=dict)
    _currents: dict[str, Fields] = field(default_factory=dict)
    _regular_expressions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _made: dict[str, Member] = field(default_factory=dict)

    @property
    def is_there(self) -> bool:
        """True while a record of the group itself, or of a member, is in force."""
        return bool(self.epochs or self._metadata or self._currents)

    def apply(self, record: Decoded) -> None:
        """Apply a record of this group; a value of None is a tombstone."""
        value, member_id = record.value, record.key.get("member_id", "")
        match role_of(record.number):
            case "group":
                self.epochs = value or {}
            case "member":
                self._put(self._metadata, member_id, value)
                if value is None:
                    self._put(self._currents, member_id, None)
            case "target_epoch":
                self.target_epoch = None if value is None else value["assignment_epoch"]
                self.assignment_timestamp_ms = (value or {}).get("assignment_timestamp_ms") or None
            case "target":
                self._put(self._targets, member_id, value)
            case "current":
                self._put(self._currents, member_id, value)
            case "regular_expression":
                self._put_regular_expression(record.key["regular_expression"], value)
            case "partition_metadata":
                self.topics = None if value is None else {topic["topic"]: topic for topic in value.get("topics", ())}
            case "share_state":
                self.initialized = _initialized(value or {})
            case "topology":
                self.topology = value
                self.discard_members()

    def subtopologies(self) -> dict[str, Subtopology] | None:
        """Return the subtopologies of a streams group by id; None until its topology is known."""
        if self.topology is None:
            return None
        stateful = {each["subtopology_id"]: bool(each["state_changelog_topics"]) for each in self.topology.get("subtopologies", ())}
        return {name: Subtopology(tuple(topics), stateful[name]) for name, topics in self._sources().items()}

    def standby_replicas(self) -> int | None:
        """Return how many standby copies of a task a streams group wants; None if no record gives it."""
        configs = {entry["key"]: entry["value"] for entry in self.epochs.get("last_assignment_configs") or ()}
        text = configs.get("num.standby.replicas", "")
        return int(text) if text.isdecimal() else None

    def discard_members(self) -> None:
        """Discard all members, because the name of a topic or another source of them has changed."""
        self._made.clear()

    def members(self) -> dict[str, Member]:
        """Return the members by id, in the order in which they joined."""
        ids = dict.fromkeys((*self._metadata, *self._currents))
        for member_id in ids:
            if member_id not in self._made:
                self._made[member_id] = self._member(member_id)
        return {member_id: self._made[member_id] for member_id in ids}

    def _put(self, values: dict[str, Fields], member_id: str, value: Fields | None) -> None:
        self._made.pop(member_id, None)
        if value is None:
            values.pop(member_id, None)
        else:
            values[member_id] = value

    def _put_regular_expression(self, expression: str, value: Fields | None) -> None:
        self._regular_expressions.pop(expression, None)
        if value is not None:
            self._regular_expressions[expression] = tuple(value["topics"])
        self.discard_members()

    def _member(self, member_id: str) -> Member:
        metadata, current, target = self._metadata.get(member_id, {}), self._currents.get(member_id), self._targets.get(member_id)
        active: tuple[Task, ...] = ()
        standby: tuple[Task, ...] = ()
        warmup: tuple[Task, ...] = ()
        assigned: tuple[TopicPartition, ...] | None = None
        pending: tuple[TopicPartition, ...] = ()
        wanted: tuple[TopicPartition, ...] | None = None
        wanted_active: tuple[Task, ...] = ()
        wanted_standby: tuple[Task, ...] = ()
        if self.kind == "streams":
            if current is not None:
                active, standby, warmup = (_task_list(current[role]) for role in ("active_tasks", "standby_tasks", "warmup_tasks"))
                pending = self._read_by(_task_list(current["active_tasks_pending_revocation"])) or ()
            assigned = self._read_by(active)
            if target is not None:
                wanted_active, wanted_standby = _task_list(target["active_tasks"]), _task_list(target["standby_tasks"])
                wanted = self._read_by(wanted_active)
        else:
            if current is not None:
                assigned, pending = self._partitions(current["assigned"]), self._partitions(current.get("pending_revocation", ()))
            wanted = None if target is None else self._partitions(target["topic_partitions"])
        return Member(
            member_id,
            group_instance_id=metadata.get("group_instance_id"),
            client_id=metadata.get("client_id"),
            client_host=metadata.get("client_host"),
            rack_id=metadata.get("rack_id"),
            rebalance_timeout_ms=metadata.get("rebalance_timeout_ms"),
            subscribed_topics=self._subscribed_topics(metadata),
            subscribed_regex=metadata.get("subscribed_regex") or None,
            server_assignor=metadata.get("server_assignor"),
            assigned=assigned,
            pending_revocation=pending,
            target=wanted,
            member_epoch=None if current is None else current["member_epoch"],
            previous_member_epoch=None if current is None else current["previous_member_epoch"],
            member_state=None if current is None else _state(self.kind, current),
            # The layout of 3.7 does not have it; null if the member uses the consumer protocol.
            is_classic=metadata.get("classic_member_metadata") is not None,
            active_tasks=active,
            standby_tasks=standby,
            warmup_tasks=warmup,
            process_id=metadata.get("process_id"),
            target_active_tasks=wanted_active,
            target_standby_tasks=wanted_standby,
        )

    def _subscribed_topics(self, metadata: Fields) -> tuple[str, ...] | None:
        if self.kind == "streams":
            return None if self.topology is None else tuple(topic for topics in self._sources().values() for topic in topics)
        named = metadata.get("subscribed_topics")
        expression = metadata.get("subscribed_regex")
        if named is None or (expression and expression not in self._regular_expressions):
            return None
        return tuple(dict.fromkeys((*named, *self._regular_expressions.get(expression or "", ()))))

    def _partitions(self, entries: Iterable[Fields]) -> tuple[TopicPartition, ...]:
        return tuple((self._name(entry["topic_id"]), partition) for entry in entries for partition in entry["partitions"])

    def _name(self, topic_id: str | None) -> str:
        name = self.names.lookup(topic_id)
        return name.topic if name is not None else str(topic_id)

    def _read_by(self, tasks: Iterable[Task]) -> tuple[TopicPartition, ...] | None:
        if self.topology is None:
            return None
        sources = self._sources()
        return tuple((topic, partition) for subtopology_id, partition in tasks for topic in sources.get(subtopology_id, ()))

    def _sources(self) -> dict[str, list[str]]:
        return source_topics(self.topology or {})


def source_topics(topology: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the topics that each subtopology reads. Its task N reads partition N of each."""
    return {
        each["subtopology_id"]: [*each["source_topics"], *(topic["name"] for topic in each["repartition_source_topics"])]
        for each in topology.get("subtopologies", ())
    }


def _initialized(share_state: Fields) -> frozenset[TopicPartition] | None:
    """Return the partitions that are initialized for a share group; None if the record has no list of them."""
    topics = share_state.get("initialized")
    return None if topics is None else frozenset((topic["topic"], number) for topic in topics for number in topic["partitions"])


def _task_list(entries: Iterable[Fields]) -> tuple[Task, ...]:
    return tuple((entry["subtopology_id"], partition) for entry in entries for partition in entry["partitions"])


def _state(kind: Kind, current: Fields) -> MemberState:
    if "member_state" in current:
        states = STREAMS_MEMBER_STATES if kind == "streams" else MEMBER_STATES
        return _STATES.get(states.get(current["member_state"], ""), "unknown")
    # 3.7 wrote no state.
    if current["pending_revocation"]:
        return "unrevoked"
    return "unreleased" if current["pending_assignment"] else "stable"
