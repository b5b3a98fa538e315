"""Members of classic groups, each decoded once however often its bytes come."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from functools import lru_cache
from typing import Any

from exhume.analysis.memberships import Member, TopicPartition
from exhume.codecs.cut_groups import CutGroup, cut_group, decode_member
from exhume.codecs.embedded import Payload, assigned_partitions, decode_assignment, decode_subscription, subscribed_topics
from exhume.codecs.record_types import decode_record

_NO_GENERATION = -1
_MOST_REMEMBERED_BYTES = 4096


class _CutMembers(Mapping[str, Member]):
    """Members by id, decoded when one is asked for: many questions only want to know how many there are."""

    __slots__ = ("_cut", "_made")

    def __init__(self, cut: CutGroup) -> None:
        self._cut = cut
        self._made: dict[str, Member] | None = None

    def _all(self) -> dict[str, Member]:
        if self._made is None:
            front = self._cut.front
            of_group = front.get("protocol_type"), front.get("protocol"), self._cut.value_version
            self._made = {
                member_id: (_remembered_member if len(raw) <= _MOST_REMEMBERED_BYTES else _remembered_member.__wrapped__)(*of_group, raw)
                for member_id, raw in self._cut.members.items()
            }
        return self._made

    def __getitem__(self, member_id: str) -> Member:
        return self._all()[member_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cut.members)

    def __len__(self) -> int:
        return len(self._cut.members)

    def values(self) -> ValuesView[Member]:
        return self._all().values()

    def items(self) -> ItemsView[str, Member]:
        return self._all().items()

    def __repr__(self) -> str:
        return repr(self._all())


def classic_group(key: bytes, value: bytes) -> tuple[dict[str, Any], Mapping[str, Member]] | None:
    """The fields of a group metadata value, and its members by id; None where nothing of it can be read."""
    cut = cut_group(value)
    if cut is not None:
        return cut.front, _CutMembers(cut)
    fields = decode_record(key, value).value
    if fields is None or "generation" not in fields:
        return None
    protocol_type, protocol = fields.get("protocol_type"), fields.get("protocol")
    members = [_member(protocol_type, protocol, member) for member in fields.get("members", ())]
    return fields, {member.member_id: member for member in members}


@lru_cache(maxsize=32_768)
def _remembered_member(protocol_type: str | None, protocol: str | None, version: int, raw: bytes) -> Member:
    return _member(protocol_type, protocol, decode_member(version, raw))


def _member(protocol_type: str | None, protocol: str | None, fields: dict[str, Any]) -> Member:
    subscription = _subscription(protocol_type, protocol, fields["subscription"])
    assignment = _assignment(protocol_type, protocol, fields["assignment"])
    topics = subscribed_topics(subscription)
    generation = subscription.value.get("generation", _NO_GENERATION)
    return Member(
        fields["member_id"],
        group_instance_id=fields.get("group_instance_id"),
        client_id=fields["client_id"],
        client_host=fields["client_host"],
        rack_id=subscription.value.get("rack_id") if topics is not None else None,
        session_timeout_ms=fields["session_timeout_ms"],
        # Version 0 has none: coordinators take the session timeout for it.
        rebalance_timeout_ms=fields.get("rebalance_timeout_ms", fields["session_timeout_ms"]),
        subscribed_topics=None if topics is None else tuple(topics),
        assigned=_assigned(protocol_type, assignment),
        claimed=_claimed(subscription),
        claimed_generation=None if generation == _NO_GENERATION else generation,
        is_classic=True,
        subscription=subscription,
        assignment=assignment,
    )


def _assigned(protocol_type: str | None, assignment: Payload) -> tuple[TopicPartition, ...] | None:
    if assignment.kind == "consumer_assignment":
        return tuple(assigned_partitions(assignment))
    return () if assignment.kind == "empty" and protocol_type == "consumer" else None


def _claimed(subscription: Payload) -> tuple[TopicPartition, ...] | None:
    owned = subscription.value.get("owned_partitions") if subscription.kind == "consumer_subscription" else None
    if owned is None:
        return None
    return tuple(dict.fromkeys((entry["topic"], partition) for entry in owned for partition in entry["partitions"]))


def _subscription(protocol_type: str | None, protocol: str | None, raw: bytes) -> Payload:
    make = _remembered_subscription if len(raw) <= _MOST_REMEMBERED_BYTES else _remembered_subscription.__wrapped__
    return make(protocol_type, protocol, raw)


def _assignment(protocol_type: str | None, protocol: str | None, raw: bytes) -> Payload:
    make = _remembered_assignment if len(raw) <= _MOST_REMEMBERED_BYTES else _remembered_assignment.__wrapped__
    return make(protocol_type, protocol, raw)


_remembered_subscription = lru_cache(maxsize=16_384)(decode_subscription)
_remembered_assignment = lru_cache(maxsize=16_384)(decode_assignment)
