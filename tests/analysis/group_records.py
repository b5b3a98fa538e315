"""Records of a group that is named billing, with members that own partitions of one topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exhume.codecs.embedded import encode_assignment, encode_subscription
from exhume.codecs.record_types import encode_key, encode_value
from exhume.fixtures.log_writer import KeyValue, group_metadata

TOPIC_ID = "AQIDBAUGBwgJCgsMDQ4PEA"


def classic(generation: int, /, group: str = "billing", **assigned: list[int]) -> KeyValue:
    return classic_of(generation, assigned, group=group)


def classic_of(generation: int, assigned: Mapping[str, list[int]], *, group: str = "billing") -> KeyValue:
    members = [
        {
            "member_id": member,
            "client_id": member,
            "client_host": "/h",
            "rebalance_timeout_ms": 300_000,
            "session_timeout_ms": 45_000,
            "subscription": encode_subscription(
                2,
                {"topics": ["orders"], "owned_partitions": [{"topic": "orders", "partitions": partitions}], "generation": generation - 1},
            ),
            "assignment": encode_assignment(0, {"assigned_partitions": [{"topic": "orders", "partitions": partitions}]}),
        }
        for member, partitions in assigned.items()
    ]
    value = {"protocol_type": "consumer", "generation": generation, "protocol": "range", "leader": next(iter(assigned), None)}
    return group_metadata(group, value | {"members": members, "current_state_timestamp_ms": 5})


def consumer(number: int, value: dict[str, Any] | None, **key: str) -> KeyValue:
    return encode_key(number, {"group": "billing", **key}), None if value is None else encode_value(number, 0, value)


def current(member_id: str, epoch: int, state: int, assigned: list[int], pending: list[int]) -> KeyValue:
    def entries(partitions: list[int]) -> list[dict[str, Any]]:
        return [{"topic_id": TOPIC_ID, "partitions": partitions}] if partitions else []

    value = {
        "member_epoch": epoch,
        "previous_member_epoch": epoch - 1,
        "member_state": state,
        "assigned": entries(assigned),
        "pending_revocation": entries(pending),
    }
    return consumer(8, value, member_id=member_id)
