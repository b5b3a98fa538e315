"""Members of classic groups. Bytes that come often are decoded once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from exhume.analysis.memberships import Member, TopicPartition
from exhume.codecs.embedded import Payload, assigned_partitions, decode_assignment, decode_subscription, subscribed_topics
from exhume.codecs.embedded.consumer import NO_GENERATION
from exhume.codecs.group_metadata_split import decode_member, split_group_metadata
from exhume.codecs.layout import Fields
from exhume.codecs.record_types import decode_record
from exhume.errors import DecodeError

_MAX_CACHED_BYTES = 4096


def classic_group(key: bytes, value: bytes) -> tuple[Fields, dict[str, Member]] | None:
    """Return the fields of a group metadata value, and its members by id; None if it cannot be read."""
    cut = split_group_metadata(value)
    if cut is not None:
        protocol_type, protocol = cut.front.get("protocol_type"), cut.front.get("protocol")
        try:
            members = [
                (_cached_member if len(raw) <= _MAX_CACHED_BYTES else _cached_member.__wrapped__)(
                    protocol_type, protocol, cut.value_version, raw
                )
                for raw in cut.members
            ]
        except DecodeError:
            pass
        else:
            return cut.front, {member.member_id: member for member in members}
    fields = decode_record(key, value).value
    if fields is None or "generation" not in fields:
        return None
    protocol_type, protocol = fields.get("protocol_type"), fields.get("protocol")
    members = [_member(protocol_type, protocol, member) for member in fields.get("members", ())]
    return fields, {member.member_id: member for member in members}


@lru_cache(maxsize=32_768)
def _cached_member(protocol_type: str | None, protocol: str | None, version: int, raw: bytes) -> Member:
    return _member(protocol_type, protocol, decode_member(version, raw))


def _member(protocol_type: str | None, protocol: str | None, fields: Fields) -> Member:
    subscription, assignment = (
        read_subscription(protocol_type, protocol, fields["subscription"]),
        read_assignment(protocol_type, protocol, fields["assignment"]),
    )
    return member_of(fields, subscription, assignment)


def member_of(fields: Mapping[str, Any], subscription: Subscription, assignment: Assignment) -> Member:
    """Return the member with these fields of the layout, this subscription and this assignment."""
    session_timeout_ms, rebalance_timeout_ms = fields["session_timeout_ms"], fields.get("rebalance_timeout_ms")
    return Member(
        fields["member_id"],
        group_instance_id=fields.get("group_instance_id"),
        client_id=fields["client_id"],
        client_host=fields["client_host"],
        rack_id=subscription.rack_id,
        session_timeout_ms=session_timeout_ms,
        # Version 0 has no rebalance timeout: coordinators use the session timeout.
        rebalance_timeout_ms=session_timeout_ms if rebalance_timeout_ms is None else rebalance_timeout_ms,
        subscribed_topics=subscription.topics,
        assigned=assignment.assigned,
        claimed=subscription.claimed,
        claimed_generation=subscription.generation,
        is_classic=True,
        subscription=subscription.payload,
        assignment=assignment.payload,
    )


@dataclass(frozen=True, slots=True)
class Subscription:
    """The decoded fields of a subscription."""

    payload: Payload
    topics: tuple[str, ...] | None
    claimed: tuple[TopicPartition, ...] | None
    generation: int | None
    rack_id: str | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """The decoded fields of an assignment; None for unknown ones. `owned` are its partitions, each once."""

    payload: Payload
    assigned: tuple[TopicPartition, ...] | None
    owned: frozenset[TopicPartition] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "owned", frozenset(self.assigned or ()))


def read_subscription(protocol_type: str | None, protocol: str | None, raw: bytes) -> Subscription:
    """Decode the subscription of a member of a group of this protocol type and protocol."""
    is_kept = len(raw) <= _MAX_CACHED_BYTES
    return (_cached_subscription if is_kept else _cached_subscription.__wrapped__)(protocol_type, protocol, raw)


def read_assignment(protocol_type: str | None, protocol: str | None, raw: bytes) -> Assignment:
    """Decode the assignment of a member of a group of this protocol type and protocol."""
    is_kept = len(raw) <= _MAX_CACHED_BYTES
    return (_cached_assignment if is_kept else _cached_assignment.__wrapped__)(protocol_type, protocol, raw)


@lru_cache(maxsize=16_384)
def _cached_subscription(protocol_type: str | None, protocol: str | None, raw: bytes) -> Subscription:
    payload = decode_subscription(protocol_type, protocol, raw)
    topics = subscribed_topics(payload)
    if topics is None:
        return Subscription(payload, None, None, None, None)
    owned = payload.value.get("owned_partitions")
    claimed = None if owned is None else tuple(dict.fromkeys((entry["topic"], number) for entry in owned for number in entry["partitions"]))
    generation = payload.value.get("generation", NO_GENERATION)
    return Subscription(payload, tuple(topics), claimed, None if generation == NO_GENERATION else generation, payload.value.get("rack_id"))


@lru_cache(maxsize=16_384)
def _cached_assignment(protocol_type: str | None, protocol: str | None, raw: bytes) -> Assignment:
    payload = decode_assignment(protocol_type, protocol, raw)
    if payload.kind == "consumer_assignment":
        return Assignment(payload, tuple(assigned_partitions(payload)))
    # Empty bytes: the leader left this member out.
    return Assignment(payload, () if payload.kind == "empty" and protocol_type == "consumer" else None)
