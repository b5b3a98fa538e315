"""Random histories of groups: the records that a coordinator writes about one group, a few at a time.

Classic groups are one record each time. Those of the Java coordinator are lived: members join and leave, partitions change hands only
when they were given up, epochs rise; a life can be broken off at any step, and what was removed can begin anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from exhume.codecs.embedded import encode_assignment, encode_connect_assignment, encode_subscription
from exhume.codecs.record_types import encode_key, encode_value
from exhume.fixtures.log_writer import KeyValue, group_metadata

#: Strings that clients choose, and that must do no harm.
HOSTILE = ("a b", "tab\there", "quote'\"s", "-", "ünïcödé", "日本語", "🐘", "\x1b[31mred", "../../etc", "<b>", "%s{0}", "=1+1", "a,b;c")
HALF_AN_HOUR_MS = 1_800_000
PARTITIONS = 3
#: An id that no topic has.
GONE_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAABg"


def classic_group(random: Random, group: str, newest_version: int, now_ms: int) -> KeyValue:
    """A record of a classic group, Empty or Stable, in any value version up to this one."""
    version = random.randint(0, newest_version)
    value: dict[str, Any] = {
        "protocol_type": random.choice(("consumer", "consumer", "consumer", "connect", "sr")),
        "generation": random.randint(0, 12),
        "current_state_timestamp_ms": random.choice((-1, now_ms)),
        "members": [],
    }
    if random.random() < 0.75:
        ids = random.sample([f"{group[:8]}-member-{number}" for number in range(6)], random.randint(1, 4))
        value["members"] = [_classic_member(random, member_id, value["protocol_type"]) for member_id in ids]
        value |= {"protocol": random.choice(("range", "roundrobin", "default")), "leader": random.choice(ids)}
    return group_metadata(group, value, version=version)


def _classic_member(random: Random, member_id: str, protocol_type: str) -> dict[str, Any]:
    version = random.randint(0, 3)
    topics = random.sample(("orders", "payments.v2", "returns"), random.randint(0, 3))
    partitions = [{"topic": topic, "partitions": random.sample(range(6), random.randint(0, 3))} for topic in topics]
    if protocol_type == "consumer":
        user_data = random.choice((None, b"", random.randbytes(5)))
        wants = {"topics": topics, "user_data": user_data, "owned_partitions": partitions, "generation": 4, "rack_id": "rack-a"}
        subscription = encode_subscription(version, wants)
        assignment = encode_assignment(version, {"assigned_partitions": partitions, "user_data": user_data})
    else:
        subscription = random.randbytes(random.randint(0, 9))
        assignment = encode_connect_assignment(0, {"leader": member_id, "leader_url": "http://w/"})
    return {
        "member_id": member_id,
        "group_instance_id": random.choice((None, f"instance-of-{member_id}")),
        "client_id": random.choice(("client", "", *HOSTILE)),
        "client_host": random.choice(("/127.0.0.1", "/[::1]")),
        "rebalance_timeout_ms": 60_000,
        "session_timeout_ms": HALF_AN_HOUR_MS,
        "subscription": subscription,
        "assignment": assignment,
    }


#: A unit of assignment: (topic id or subtopology id, partition).
_Unit = tuple[str, int]


@dataclass
class RandomConsumerGroup:
    """A consumer group (KIP-848) and its present state. The classes of the other group types override the differences."""

    group: str
    random: Random
    #: The existing topic ids or subtopology ids.
    sources: Sequence[str]
    epoch: int = 0
    held: dict[str, set[_Unit]] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)

    #: Record types.
    metadata, member, target_metadata, target, current = 3, 5, 6, 7, 8

    def step(self) -> list[KeyValue]:
        """Return the records of the next random event of the group."""
        return list(self._step())

    def _step(self) -> Iterator[KeyValue]:
        if not self.held:
            if self.epoch and self.random.random() < 0.4:
                yield from self._remove()
                return
            yield from self._join()
        else:
            match self.random.randint(0, 5):
                case 0 | 1:
                    yield from self._join()
                case 2:
                    yield from self._leave(self.random.choice(sorted(self.held)))
                case 3:
                    yield self.record(self.member, self.member_value(), self.random.choice(sorted(self.held)))
                case _:
                    yield from self._rebalance()

    def record(self, number: int, value: Mapping[str, Any] | None, member_id: str = "", **key: str) -> KeyValue:
        """Return a record of this group, a tombstone without a value."""
        body = {"group": self.group} | ({"member_id": member_id} if member_id else {}) | key
        return encode_key(number, body), None if value is None else encode_value(number, 0, value)

    def _join(self) -> Iterator[KeyValue]:
        new = [name for name in (f"m{number}" for number in range(5)) if name not in self.held]
        if not new:
            yield from self._rebalance()
            return
        member_id = self.random.choice(new)
        yield self.record(self.member, self.member_value(), member_id)
        self.held[member_id] = set()
        self.epochs[member_id] = 0
        yield from self.more_of_the_group()
        yield from self._new_epoch()
        if self.random.random() < 0.8:
            yield from self._rebalance()

    def _new_epoch(self) -> Iterator[KeyValue]:
        self.epoch += 1
        yield self.record(self.metadata, self.metadata_value())

    def _leave(self, member_id: str) -> Iterator[KeyValue]:
        del self.held[member_id], self.epochs[member_id]
        for number in (self.current, self.target, self.member):
            yield self.record(number, None, member_id)
        yield from self._new_epoch()

    def _remove(self) -> Iterator[KeyValue]:
        yield from self.end_of_the_group()
        yield self.record(self.target_metadata, None)
        yield self.record(self.metadata, None)
        self.epoch = 0

    def _rebalance(self) -> Iterator[KeyValue]:
        """Return a new target: members revoke what they lose, sometimes only half, and get what is free."""
        yield from self._new_epoch()
        target = self._draw_target()
        for member_id, units in target.items():
            yield self.record(self.target, self.assignment_value(units), member_id)
        yield self.record(self.target_metadata, {"assignment_epoch": self.epoch, **self._assignment_time()})
        for member_id in sorted(self.held):
            lost = self.held[member_id] - target[member_id]
            if lost and self.has_revocation and self.random.random() < 0.6:
                yield self._current(member_id, self.held[member_id] - lost, state=1, giving_up=lost)
                if self.random.random() < 0.4:
                    continue
            self.held[member_id] -= lost
        for member_id in self.random.sample(sorted(self.held), self.random.randint(0, len(self.held))):
            taken = {unit for other, units in self.held.items() if other != member_id for unit in units}
            if not self.held[member_id] <= target[member_id]:
                continue
            self.held[member_id] = target[member_id] - taken
            self.epochs[member_id] = self.epoch
            yield self._current(member_id, self.held[member_id], state=2 if target[member_id] & taken and self.has_revocation else 0)

    def _draw_target(self) -> dict[str, set[_Unit]]:
        target: dict[str, set[_Unit]] = {member_id: set() for member_id in sorted(self.held)}
        for unit in ((source, partition) for source in self.sources for partition in range(PARTITIONS)):
            if self.random.random() < 0.85:
                target[self.random.choice(sorted(target))].add(unit)
        return target

    def _assignment_time(self) -> dict[str, int]:
        return {"assignment_timestamp_ms": 1_700_000_000_000} if self.random.random() < 0.2 else {}

    def _current(self, member_id: str, units: set[_Unit], *, state: int, giving_up: set[_Unit] | None = None) -> KeyValue:
        epoch = self.epochs[member_id]
        value = {"member_epoch": epoch, "previous_member_epoch": max(0, epoch - 1), "member_state": state}
        return self.record(self.current, value | self.current_value(units, giving_up or set()), member_id)

    # The parts that differ between group types.

    has_revocation = True

    def metadata_value(self) -> dict[str, Any]:
        return {"group_epoch": self.epoch, "metadata_hash": self.random.choice((0, 99))}

    def member_value(self) -> dict[str, Any]:
        random = self.random
        value: dict[str, Any] = {
            "group_instance_id": random.choice((None, None, "instance-1")),
            "rack_id": random.choice((None, "rack-a")),
            "client_id": random.choice(("client", *HOSTILE)),
            "client_host": "/127.0.0.1",
            "subscribed_topics": random.sample(("orders", "payments.v2", "returns"), random.randint(0, 3)),
            "subscribed_regex": random.choice((None, None, "", "ord.*")),
            "rebalance_timeout_ms": HALF_AN_HOUR_MS,
            "server_assignor": random.choice((None, "uniform", "range")),
            "classic_member_metadata": None,
        }
        if random.random() < 0.15:
            protocols = [{"name": "range", "metadata": encode_subscription(1, {"topics": ["orders"]})}]
            value["classic_member_metadata"] = {"session_timeout_ms": HALF_AN_HOUR_MS, "supported_protocols": protocols}
        return value

    def more_of_the_group(self) -> Iterator[KeyValue]:
        """Return records that the coordinator writes at times, and that change nothing."""
        if self.random.random() < 0.3:
            topics = [{"topic_id": source, "topic": f"topic {source}", "partition_count": PARTITIONS} for source in self.sources]
            yield self.record(4, {"topics": topics})
        if self.random.random() < 0.2:
            value = {"topics": ["orders"], "metadata_image_version": 7, "resolved_timestamp_ms": 1_700_000_000_000}
            yield self.record(16, value, regular_expression="ord.*")

    def end_of_the_group(self) -> Iterator[KeyValue]:
        if self.random.random() < 0.5:
            yield self.record(4, None)

    def assignment_value(self, units: set[_Unit]) -> dict[str, Any]:
        return {"topic_partitions": by_source(units, "topic_id")}

    def current_value(self, units: set[_Unit], giving_up: set[_Unit]) -> dict[str, Any]:
        return {"assigned": by_source(units, "topic_id"), "pending_revocation": by_source(giving_up, "topic_id")}


def by_source(units: set[_Unit], name: str) -> list[dict[str, Any]]:
    """Return units as entries of an assignment. `name` is that of their first half."""
    sources = sorted({source for source, _ in units})
    return [{name: source, "partitions": sorted(partition for other, partition in units if other == source)} for source in sources]


@dataclass
class RandomShareGroup(RandomConsumerGroup):
    """A share group: partitions have no owner, and initialized partitions have a record of their own."""

    metadata, member, target_metadata, target, current = 11, 10, 12, 13, 14
    has_revocation = False

    def member_value(self) -> dict[str, Any]:
        names = ("rack_id", "client_id", "client_host", "subscribed_topics")
        value = super().member_value()
        return {name: value[name] for name in names}

    def more_of_the_group(self) -> Iterator[KeyValue]:
        if self.random.random() < 0.5:
            entries = [{"topic_id": source, "topic": f"topic {source}", "partitions": [0, 1]} for source in self.sources]
            cut = self.random.randint(0, len(entries))
            yield self.record(15, {"initializing": entries[:cut], "initialized": entries[cut:], "deleting": []})

    def end_of_the_group(self) -> Iterator[KeyValue]:
        yield self.record(15, None)

    def current_value(self, units: set[_Unit], giving_up: set[_Unit]) -> dict[str, Any]:
        return {"assigned": by_source(units, "topic_id")}


@dataclass
class RandomStreamsGroup(RandomConsumerGroup):
    """A streams group: tasks of subtopologies instead of partitions of topics."""

    metadata, member, target_metadata, target, current = 17, 19, 20, 21, 22

    def metadata_value(self) -> dict[str, Any]:
        # The epochs of a topology description are known from 4.4 on; 4.3 reads them as unknown tags.
        description = {"stored_description_topology_epoch": self.epoch % 4 - 2, "failed_description_topology_epoch": self.epoch % 2 - 1}
        return super().metadata_value() | {"validated_topology_epoch": self.random.choice((-1, 0, 1))} | description

    def member_value(self) -> dict[str, Any]:
        value = super().member_value()
        kept = {name: value[name] for name in ("group_instance_id", "rack_id", "client_id", "client_host", "rebalance_timeout_ms")}
        return kept | {
            "topology_epoch": self.random.randint(0, 1),
            "process_id": f"process-{self.random.randint(0, 2)}",
            "user_endpoint": self.random.choice((None, {"host": "localhost", "port": 60_000})),
            "client_tags": self.random.choice(([], [{"key": "zone", "value": "a"}])),
        }

    def more_of_the_group(self) -> Iterator[KeyValue]:
        if self.epoch == 0 or self.random.random() < 0.2:
            changelog = {"name": "store-changelog", "partition_count": PARTITIONS, "replication_factor": 1, "topic_configs": []}
            subtopologies = [
                {"subtopology_id": source, "source_topics": ["orders"], "state_changelog_topics": [changelog]} for source in self.sources
            ]
            yield self.record(23, {"topology_epoch": self.random.randint(0, 1), "subtopologies": subtopologies})

    def end_of_the_group(self) -> Iterator[KeyValue]:
        yield self.record(23, None)

    def assignment_value(self, units: set[_Unit]) -> dict[str, Any]:
        # A standby of a task of another member.
        standby = [{"subtopology_id": self.sources[0], "partitions": [0]}] if self.random.random() < 0.2 else []
        return {"active_tasks": by_source(units, "subtopology_id"), "standby_tasks": standby, "warmup_tasks": []}

    def current_value(self, units: set[_Unit], giving_up: set[_Unit]) -> dict[str, Any]:
        pending = by_source(giving_up, "subtopology_id")
        return {"active_tasks": by_source(units, "subtopology_id"), "active_tasks_pending_revocation": pending}
