"""What both coordinators make of single records: reading them as one release does, commits, classic groups."""

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
Release = tuple[int, ...]


class ReadableBatch(Protocol):
    """A batch header, the file that it lies in, and a way to its records."""

    path: str
    batch: Batch

    def read(self) -> Iterable[Record]: ...


@dataclass
class Answer:
    """What a load comes to. `ended_at` is the record offset where the release's load ended, if it did; `stalled`: it never ends."""

    ended_at: int | None = None
    stalled: bool = False
    late_error: bool = False
    #: Java: requests are answered from the state up to here.
    shown_offset: int | None = None
    refusals: list[int] = field(default_factory=list)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    offsets: dict[Key, dict[str, Any]] = field(default_factory=dict)
    #: By producer id and key.
    pending: dict[tuple[int, Key], dict[str, Any]] = field(default_factory=dict)


class LoadEnds(Exception):
    """The load of this release ends here."""

    def __init__(self, record_offset: int) -> None:
        super().__init__(record_offset)
        self.record_offset = record_offset


class Unknown(Exception):
    """A record type that the release does not know."""


@dataclass
class Load:
    """One load by one release. `refusals` are the record offsets where it would have ended, if it is lenient."""

    release: Release
    is_lenient: bool
    refusals: list[int] = field(default_factory=list)

    def refuse(self, record_offset: int) -> None:
        """The release's load ends here; a lenient one goes on behind this call."""
        if not self.is_lenient:
            raise LoadEnds(record_offset)
        self.refusals.append(record_offset)

    def is_from(self, *spans: tuple[str, str | None]) -> bool:
        """Whether the release lies in one of these spans; the end of a span belongs to it, None leaves it open."""
        return any(_numbers(first) <= self.release and (last is None or self.release <= _numbers(last)) for first, last in spans)


def _numbers(release: str) -> Release:
    return tuple(int(number) for number in release.split("."))


def records_of(item: ReadableBatch) -> Iterable[Record]:
    """The records of a batch; bytes that no reader survives end the load where the batch begins."""
    header = item.batch
    try:
        yield from item.read()
    except EvidenceError as error:
        raise LoadEnds(header.last_offset if header.base_offset is None else header.base_offset) from error


def control_type(run: Load, record: Record) -> int | None:
    """0 is ABORT, 1 is COMMIT; None where a lenient load goes on over a key that cannot be read."""
    if record.key is not None and len(record.key) >= 4:
        version, number = struct.unpack_from(">hh", record.key)
        if version >= 0:
            return int(number)
    run.refuse(record.record_offset)
    return None


def decode(
    run: Load, record: Record, newest: dict[int, int | None], layouts: dict[int, str]
) -> tuple[int, dict[str, Any], int, dict[str, Any] | None] | None:
    """Type, key, value version and value; None where a lenient load goes on over what cannot be read.

    `newest` has the newest value version of each type that the release knows (None: it never looks, and reads the nearest it knows),
    `layouts` those types whose layout is not that of today.

    Raises:
        Unknown: the release has no such type.
    """
    try:
        if record.key is None:
            raise LoadEnds(record.record_offset)
        key = Reader(record.key)
        number = key.int16()
        if number not in newest:
            raise Unknown
        fields = RECORD_TYPES[number].key_message.read(key, 0)
        if record.value is None:
            return number, fields, -1, None
        message = RECORD_TYPES[number].message
        for layout in RECORD_TYPES[number].layouts:
            if layout.releases == layouts.get(number):
                message = layout.message
        value = Reader(record.value)
        version = value.int16()
        known = newest[number]
        if known is None:
            version = max(0, min(version, message.versions.stop - 1))
        elif not 0 <= version <= known:
            raise LoadEnds(record.record_offset)
        return number, fields, version, message.read(value, version)
    except (DecodeError, LoadEnds):
        run.refuse(record.record_offset)
        return None


def commit_of(run: Load, record: Record, version: int, value: dict[str, Any], transaction: Batch | None) -> dict[str, Any]:
    """An offset as rows have it. To 2.0.1 a missing expiry is filled in; 2.1 takes a -1 for a time."""
    expires = value.get("expire_timestamp_ms")
    if expires in (None, -1) and run.release < (2, 1):
        days = 1 if run.release < (2, 0) else 7
        expires = value["commit_timestamp_ms"] + days * 24 * 60 * 60 * 1000
    elif expires == -1 and not run.is_from(("2.1.0", "2.1.1")):
        expires = None
    epoch = value.get("leader_epoch", -1)
    return {
        "record_offset": record.record_offset,
        "committed_offset": value["committed_offset"],
        "metadata": value["metadata"],
        "commit_timestamp_ms": value["commit_timestamp_ms"],
        "expire_timestamp_ms": expires,
        "leader_epoch": None if epoch == -1 or (epoch < 0 and run.release < (2, 8)) else epoch,
        "value_version": version,
        "producer_id": transaction.producer_id if transaction else None,
    }


def simple_group() -> dict[str, Any]:
    """What offsets alone make of an id."""
    return {"type": "classic", "protocol_type": None, "protocol": None, "generation": 0, "leader": None, "timestamp": -1, "members": {}}


def classic_group(run: Load, record: Record, version: int, value: dict[str, Any], *, is_java: bool) -> dict[str, Any]:
    """The group of a GroupMetadata value. Whatever the release minds of it is one refusal."""
    members: dict[str, dict[str, Any]] = {}
    instances: set[str] = set()
    is_refused = not is_java and run.release < (0, 10, 1) and (value["protocol"] is None or value["leader"] is None)
    is_repeated = False
    for member in value["members"]:
        instance = member.get("group_instance_id")
        is_refused |= instance is not None and instance in instances and run.release >= (3, 0)
        is_refused |= is_repeated and run.release >= (2, 1)
        is_repeated |= member["member_id"] in members
        instances |= {instance} - {None}
        members[member["member_id"]] = member
    forgets_type = not is_java and not members and run.is_from(("0.10.1.0", "1.0.0"))
    protocol_type = None if forgets_type else value["protocol_type"] if members else value["protocol_type"] or None
    if protocol_type == "consumer" and value["protocol"] is not None and run.release >= (2, 4):
        for member in members.values():
            problem = problem_of_subscription(member["subscription"])
            if problem is not None:
                is_refused |= problem in fatal_problems(run)
                break
    if is_refused:
        run.refuse(record.record_offset)
    has_timestamp = run.release >= (2, 6, 1) or (version == 2 and run.release >= (2, 1))
    return {
        "type": "classic",
        "protocol_type": protocol_type,
        "protocol": value["protocol"],
        "generation": value["generation"],
        "leader": value["leader"] if value["leader"] is not None or not members else value["members"][0]["member_id"],
        "timestamp": value.get("current_state_timestamp_ms", -1) if has_timestamp else -1,
        "members": members,
    }


def fatal_problems(run: Load) -> set[str]:
    """What of a subscription a load does not survive."""
    if run.release < (2, 7) or run.is_from(("4.2.2", "4.2.2"), ("4.4.0", None)):
        return set()
    if run.is_from(("2.7.0", "2.8.1"), ("3.0.0", "3.0.1"), ("3.1.0", "3.1.1"), ("3.2.0", "3.2.2")):
        return {"null"}
    return {"null", "long"}


def problem_of_subscription(content: bytes) -> str | None:
    """`cut`: it ends inside a number; `null`: a length or count below zero; `long`: one that is more than what is left."""
    try:
        (count,) = struct.unpack_from(">i", content, 2)
        position = 6
        if count < 0:
            return "null"
        if count > len(content) - position:
            return "long"
        for _ in range(count):
            (length,) = struct.unpack_from(">h", content, position)
            position += 2 + length
            if length < 0:
                return "null"
            if position > len(content):
                return "long"
        (length,) = struct.unpack_from(">i", content, position)
    except struct.error:
        return "cut"
    return "long" if position + 4 + length > len(content) else None


def classic_row(group: dict[str, Any], memberless_state: str = "Empty") -> dict[str, Any]:
    """A classic group in the columns of our tables."""
    return {
        "group_type": "classic",
        "group_state": group.get("state") or ("Stable" if group["members"] else memberless_state),
        "protocol_type": group["protocol_type"],
        "protocol": group["protocol"],
        "generation": group["generation"],
        "leader": group["leader"],
        "current_state_timestamp_ms": None if group["timestamp"] == -1 else group["timestamp"],
        "members": dict.fromkeys(group["members"], (None, None)),
    }
