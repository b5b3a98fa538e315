"""Payloads of Kafka Connect workers (protocol type `connect`).

    config state   version int16 | url string | config_offset int64 | 1: allocation nullable bytes
    assignment     version int16 | error int16 | leader string | leader_url string | config_offset int64
                   0: assigned [connector] | 1: assigned, revoked nullable [connector], delay_ms int32
    connector      connector string | tasks [int32]; task -1 is the connector itself

Version 0 is the eager protocol (`default`), 1 `compatible`, 2 `sessioned`. An eager `assigned` lists all that a worker runs; since
version 1 it is a change: afterwards a worker runs (allocation - revoked) + assigned, if the error is 0. The allocation is an
assignment of version 1 or 2 with its version: the connectors and tasks that the worker ran when it joined.

Source: ConnectProtocol and IncrementalCooperativeConnectProtocol, Kafka 0.9 to 4.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from exhume.codecs.embedded.payload import Payload, read_versioned, undecoded, write_versioned
from exhume.codecs.layout import BYTES, INT16, INT32, INT64, STRING, Array, Field, Message, Struct
from exhume.errors import DecodeError

CONNECTOR = Struct((Field("connector", STRING, "connector"), Field("tasks", Array(INT32), "tasks")))

CONFIG_STATE = Message(
    "ConfigState",
    range(3),
    Struct(
        (
            Field("url", STRING, "url"),
            Field("config_offset", INT64, "config-offset"),
            Field("allocation", BYTES, "allocation", since=1, nullable=True, default=None),
        )
    ),
)
ASSIGNMENT = Message(
    "Assignment",
    range(3),
    Struct(
        (
            Field("error", INT16, "error"),
            Field("leader", STRING, "leader"),
            Field("leader_url", STRING, "leader-url"),
            Field("config_offset", INT64, "config-offset"),
            Field("assigned", Array(CONNECTOR), "assignment", until=0),
            Field("assigned", Array(CONNECTOR), "assignment", since=1, nullable=True, default=None),
            Field("revoked", Array(CONNECTOR), "revoked", since=1, nullable=True, default=None),
            Field("delay_ms", INT32, "delay", since=1),
        )
    ),
)

_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)


def read_connect_config_state(data: bytes) -> Payload:
    """Read the config state of a worker that joins; `user_data` is its allocation. Raises DecodeError, also if `url` is no URL."""
    payload = read_versioned("connect_config_state", CONFIG_STATE, data)
    _require_url(payload.value["url"])
    allocation = payload.value.get("allocation")
    if allocation is not None:
        try:
            payload.user_data = read_connect_assignment(allocation)
        except DecodeError as error:
            payload.user_data = undecoded(allocation, f"the allocation cannot be read: {error}")
    return payload


def read_connect_assignment(data: bytes) -> Payload:
    """Read the assignment that the leader sends to a worker. Raises DecodeError, also if `leader_url` is no URL."""
    payload = read_versioned("connect_assignment", ASSIGNMENT, data)
    _require_url(payload.value["leader_url"])
    return payload


def _require_url(text: str) -> None:
    # Random bytes do not produce a URL; they could produce every other field of these layouts.
    if not _URL.fullmatch(text):
        raise DecodeError(f"not a Connect payload: {text[:80]!r} is not a URL")


def encode_connect_config_state(version: int, value: Mapping[str, Any]) -> bytes:
    """The bytes of a config state; `allocation` as bytes or None."""
    return write_versioned(CONFIG_STATE, version, value, None)


def encode_connect_assignment(version: int, value: Mapping[str, Any]) -> bytes:
    """The bytes of an assignment; since version 1 `assigned` and `revoked` may be None."""
    return write_versioned(ASSIGNMENT, version, value, None)
