"""The naive twin: the loads of Kafka 2.8.2 and 4.3.0 once more, as dicts and loops, written from the rules and not from the loaders.

It is slow and says little: groups with members and epochs, offsets, pending offsets, and where a load would end. What it says must be
what `exhume.replay` says, on every log. It shares the codecs, and nothing of `exhume.replay`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from exhume.codecs.batches import Batch
from exhume.codecs.record_types import RECORD_TYPES
from exhume.codecs.records import Record
from exhume.codecs.wire import Reader
from exhume.errors import DecodeError, EvidenceError

Key = tuple[str, str, int]


class ReadableBatch(Protocol):
    """A batch header, and a way to its records."""

    batch: Batch

    def read(self) -> Iterable[Record]: ...


@dataclass
class Answer:
    """What a load comes to. `aborted_at` is a record offset; only then everything else is empty."""

    aborted_at: int | None = None
    late_error: bool = False
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    offsets: dict[Key, dict[str, Any]] = field(default_factory=dict)
    #: By producer id and key.
    pending: dict[tuple[int, Key], dict[str, Any]] = field(default_factory=dict)


class LoadEnds(Exception):
    """The load of this release ends here."""

    def __init__(self, record_offset: int) -> None:
        super().__init__(record_offset)
        self.record_offset = record_offset


def load_2_8_2(batches: Iterable[ReadableBatch]) -> Answer:
    """The Scala coordinator: gather first, install at the end."""
    committed: dict[Key, dict[str, Any]] = {}
    waiting: dict[int, dict[Key, dict[str, Any]]] = {}
    groups: dict[str, dict[str, Any]] = {}
    removed: set[str] = set()
    try:
        for item in batches:
            header, first_offset = item.batch, None
            for record in _records(item):
                if header.is_control:
                    staged = waiting.pop(header.producer_id, {})
                    if _control_type(record) == 1:
                        for key, commit in staged.items():
                            if key not in committed or committed[key]["first_offset"] < commit["first_offset"]:
                                committed[key] = commit
                    break
                first_offset = record.record_offset if first_offset is None else first_offset
                number, fields, version, value = _decode(record, {0: 3, 1: 3, 2: 3})
                if number not in (0, 1, 2):
                    raise LoadEnds(record.record_offset)
                if number == 2:
                    removed.discard(fields["group"])
                    groups.pop(fields["group"], None)
                    if value is None:
                        removed.add(fields["group"])
                    else:
                        groups[fields["group"]] = _classic(record, value, instances_are_unique=False)
                    continue
                key = (fields["group"], fields["topic"], fields["partition"])
                into = waiting.setdefault(header.producer_id, {}) if header.is_transactional else committed
                into.pop(key, None)
                if value is not None:
                    into[key] = _commit(record, version, value, header if header.is_transactional else None) | {
                        "first_offset": first_offset
                    }
    except LoadEnds as end:
        return Answer(aborted_at=end.record_offset)
    pending = {(producer_id, key): commit for producer_id, staged in waiting.items() for key, commit in staged.items()}
    with_offsets = {key[0] for key in committed}
    for group in with_offsets | {key[0] for _, key in pending}:
        groups.setdefault(group, _simple_group())
    late_error = any(group in groups and group not in with_offsets for group in removed)
    return Answer(None, late_error, {name: _classic_row(group) for name, group in groups.items()}, committed, pending)


#: Type of a modern record: whose it is, and what it says.
_MODERN = {
    3: ("consumer", "group"), 4: ("consumer", "nothing"), 5: ("consumer", "member"), 6: ("consumer", "target epoch"),
    7: ("consumer", "target"), 8: ("consumer", "current"), 16: ("consumer", "nothing"),
    10: ("share", "member"), 11: ("share", "group"), 12: ("share", "target epoch"), 13: ("share", "target"), 14: ("share", "current"),
    15: ("share", "nothing"),
    17: ("streams", "group"), 19: ("streams", "member"), 20: ("streams", "target epoch"), 21: ("streams", "target"),
    22: ("streams", "current"), 23: ("streams", "topology"),
}  # fmt: skip
_STATES = {
    "consumer": {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"},
    "share": {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"},
    "streams": {1: "STABLE", 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS"},
}


def load_4_3_0(batches: Iterable[ReadableBatch], end_offset: int) -> Answer:
    """The Java coordinator: every record at once."""
    state = _Java()
    last_written = -1
    try:
        for item in batches:
            for record in _records(item):
                state.replay(item.batch, record)
            if (next_offset := item.batch.last_offset + 1) >= end_offset:
                if next_offset <= last_written:
                    raise LoadEnds(next_offset - 1)
                last_written = next_offset
        state.loaded()
    except LoadEnds as end:
        return Answer(aborted_at=end.record_offset)
    pending = {(producer_id, key): commit for producer_id, staged in state.waiting.items() for key, commit in staged.items()}
    rows = {name: _classic_row(group) if group["type"] == "classic" else _modern_row(group) for name, group in state.groups.items()}
    return Answer(None, False, rows, state.committed, pending)


class _Java:
    def __init__(self) -> None:
        self.groups: dict[str, dict[str, Any]] = {}
        self.committed: dict[Key, dict[str, Any]] = {}
        self.waiting: dict[int, dict[Key, dict[str, Any]]] = {}

    def replay(self, header: Batch, record: Record) -> None:
        if header.is_control:
            outcome = _control_type(record)
            staged = self.waiting.pop(header.producer_id, {}) if outcome in (0, 1) else {}
            for key, commit in staged.items() if outcome == 1 else ():
                if key not in self.committed or self.committed[key]["record_offset"] < commit["record_offset"]:
                    self.committed[key] = commit
            return
        number, fields, version, value = _decode(record, {0: 0, 1: 4, 2: 4} | dict.fromkeys(_MODERN, 0))
        if number in (0, 1):
            key = (fields["group"], fields["topic"], fields["partition"])
            if value is None:
                for keys in (self.committed, *self.waiting.values()):
                    keys.pop(key, None)
                return
            self.groups.setdefault(key[0], _simple_group())
            if header.producer_id == -1:
                self.committed[key] = _commit(record, version, value, None)
            else:
                self.waiting.setdefault(header.producer_id, {})[key] = _commit(record, version, value, header)
        elif number == 2 and value is None:
            self.groups.pop(fields["group"], None)
        elif number == 2:
            assert value is not None
            self.groups[fields["group"]] = _classic(record, value, instances_are_unique=True)
        elif number in _MODERN:
            self.replay_modern(number, fields, value, record.record_offset)

    def replay_modern(self, number: int, fields: dict[str, Any], value: dict[str, Any] | None, at: int) -> None:
        group_type, says = _MODERN[number]
        name = fields["group"]
        group = self.groups.get(name)
        if group is None and value is None:
            return
        is_simple = group is not None and group["type"] == "classic" and not group["protocol_type"] and not group["members"]
        if group is not None and group["type"] != group_type and not (is_simple and group_type != "share"):
            raise LoadEnds(at)
        if group is None or group["type"] != group_type:
            group = self.groups[name] = {
                "type": group_type, "epoch": 1, "target epoch": 1, "members": {}, "targets": set(), "owners": {},
                "validated": 0, "topology": None,
            }  # fmt: skip
        if says == "group":
            if value is not None:
                group["epoch"], group["validated"] = value["group_epoch"], value.get("validated_topology_epoch", 0)
            elif group["members"] or group["target epoch"] != -1 or (group["targets"] and group_type != "streams"):
                raise LoadEnds(at)
            else:
                del self.groups[name]
        elif says == "target epoch":
            if (value is None and group["targets"]) or (value is not None and value["assignment_epoch"] < -1):
                raise LoadEnds(at)
            group["target epoch"] = -1 if value is None else value["assignment_epoch"]
        elif says == "target":
            (group["targets"].discard if value is None else group["targets"].add)(fields["member_id"])
        elif says == "topology":
            group["topology"] = None if value is None else value["topology_epoch"]
            if value is not None and value["topology_epoch"] < 0:
                raise LoadEnds(at)
        elif says in ("member", "current"):
            self.replay_member(group, says, fields["member_id"], value, at)

    def replay_member(self, group: dict[str, Any], says: str, member_id: str, value: dict[str, Any] | None, at: int) -> None:
        members, is_streams = group["members"], group["type"] == "streams"
        if value is None and member_id not in members:
            return
        fresh: dict[str, Any] = {
            "epoch": None if is_streams else 0,
            "state": None if is_streams else "STABLE",
            "timeout": None if is_streams else -1,
            "held": [],
        }
        member = members.setdefault(member_id, fresh)
        self.let_go(group, member)
        if says == "member" and value is None:
            if member["epoch"] != -1 or member_id in group["targets"]:
                raise LoadEnds(at)
            del members[member_id]
            return
        if says == "member":
            assert value is not None
            member["timeout"] = value.get("rebalance_timeout_ms", -1)
        elif value is None:
            member["epoch"], member["held"] = -1, []
        else:
            member["epoch"], member["state"] = value["member_epoch"], _STATES[group["type"]].get(value["member_state"], "UNKNOWN")
            entries = [*value["assigned"], *value["pending_revocation"]] if group["type"] == "consumer" else []
            member["held"] = [(entry["topic_id"], partition) for entry in entries for partition in entry["partitions"]]
        for partition in member["held"]:
            if group["owners"].get(partition, member["epoch"] - 1) >= member["epoch"]:
                raise LoadEnds(at)
            group["owners"][partition] = member["epoch"]

    def let_go(self, group: dict[str, Any], member: dict[str, Any]) -> None:
        for partition in member["held"]:
            if group["owners"].get(partition) == member["epoch"]:
                del group["owners"][partition]

    def loaded(self) -> None:
        """Timers are set: who has something to give up needs a rebalance timeout."""
        for group in self.groups.values():
            for member_id, member in list(group["members"].items()) if group["type"] in ("consumer", "streams") else ():
                if member["state"] == "UNREVOKED_TASKS" and member["timeout"] is None:
                    raise LoadEnds(-1)
                if member["state"] == "UNREVOKED_PARTITIONS" and member["timeout"] <= 0:
                    del group["members"][member_id]
                    group["epoch"] += 1


def _records(item: ReadableBatch) -> Iterable[Record]:
    header = item.batch
    try:
        yield from item.read()
    except EvidenceError as error:
        raise LoadEnds(header.last_offset if header.base_offset is None else header.base_offset) from error


def _control_type(record: Record) -> int:
    if record.key is None or len(record.key) < 4:
        raise LoadEnds(record.record_offset)
    version, control_type = struct.unpack_from(">hh", record.key)
    if version < 0:
        raise LoadEnds(record.record_offset)
    return int(control_type)


def _decode(record: Record, newest: dict[int, int]) -> tuple[int, dict[str, Any], int, dict[str, Any] | None]:
    """Type, key, value version and value; the type alone where the release has no such type."""
    try:
        if record.key is None:
            raise LoadEnds(record.record_offset)
        key = Reader(record.key)
        number = key.int16()
        if number not in newest:
            return number, {}, -1, None
        fields = RECORD_TYPES[number].key_message.read(key, 0)
        if record.value is None:
            return number, fields, -1, None
        value = Reader(record.value)
        version = value.int16()
        if not 0 <= version <= newest[number]:
            raise LoadEnds(record.record_offset)
        return number, fields, version, RECORD_TYPES[number].message.read(value, version)
    except DecodeError as error:
        raise LoadEnds(record.record_offset) from error


def _commit(record: Record, version: int, value: dict[str, Any], transaction: Batch | None) -> dict[str, Any]:
    return {
        "record_offset": record.record_offset,
        "committed_offset": value["committed_offset"],
        "metadata": value["metadata"],
        "commit_timestamp_ms": value["commit_timestamp_ms"],
        "value_version": version,
        "producer_id": transaction.producer_id if transaction else None,
    }


def _simple_group() -> dict[str, Any]:
    return {"type": "classic", "protocol_type": None, "protocol": None, "generation": 0, "leader": None, "timestamp": -1, "members": {}}


def _classic(record: Record, value: dict[str, Any], *, instances_are_unique: bool) -> dict[str, Any]:
    members: dict[str, dict[str, Any]] = {}
    instances: set[str] = set()
    drifted = False
    for member in value["members"]:
        instance = member.get("group_instance_id")
        if drifted or (instances_are_unique and instance in instances):
            raise LoadEnds(record.record_offset)
        drifted = member["member_id"] in members
        instances |= {instance} - {None}
        members[member["member_id"]] = member
    if value["protocol_type"] == "consumer" and value["protocol"] is not None:
        for member in members.values():
            survives = _reads_subscription(member["subscription"])
            if survives is False:
                raise LoadEnds(record.record_offset)
            if survives is None:
                break
    return {
        "type": "classic",
        "protocol_type": value["protocol_type"] if members else value["protocol_type"] or None,
        "protocol": value["protocol"],
        "generation": value["generation"],
        "leader": value["leader"] if value["leader"] is not None or not members else value["members"][0]["member_id"],
        "timestamp": value.get("current_state_timestamp_ms", -1),
        "members": members,
    }


def _reads_subscription(content: bytes) -> bool | None:
    """True: read. None: it ends inside a number, and brokers go on without its topics. False: brokers do not go on."""
    try:
        (count,) = struct.unpack_from(">i", content, 2)
        position = 6
        if not 0 <= count <= len(content) - position:
            return False
        for _ in range(count):
            (length,) = struct.unpack_from(">h", content, position)
            position += 2 + length
            if length < 0 or position > len(content):
                return False
        (length,) = struct.unpack_from(">i", content, position)
    except struct.error:
        return None
    return bool(position + 4 + length <= len(content))


def _classic_row(group: dict[str, Any]) -> dict[str, Any]:
    return {
        "group_type": "classic",
        "group_state": "Stable" if group["members"] else "Empty",
        "protocol_type": group["protocol_type"],
        "protocol": group["protocol"],
        "generation": group["generation"],
        "leader": group["leader"],
        "current_state_timestamp_ms": None if group["timestamp"] == -1 else group["timestamp"],
        "members": dict.fromkeys(group["members"], (None, None)),
    }


def _modern_row(group: dict[str, Any]) -> dict[str, Any]:
    members = {member_id: (member["epoch"], member["state"]) for member_id, member in group["members"].items()}
    is_settled = all(member == (group["target epoch"], "STABLE") for member in members.values())
    if not members:
        state = "Empty"
    elif group["type"] == "share":
        state = "Stable"
    elif group["type"] == "streams" and (group["topology"] is None or group["topology"] != group["validated"]):
        state = "NotReady"
    elif group["epoch"] > group["target epoch"]:
        state = "Assigning"
    else:
        state = "Stable" if is_settled else "Reconciling"
    return {
        "group_type": group["type"],
        "group_state": state,
        "group_epoch": group["epoch"],
        "assignment_epoch": group["target epoch"],
        "members": members,
    }
