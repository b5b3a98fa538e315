"""Rebalances as marks on the time axis, and as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from exhume.analysis.rebalance_rows import RebalanceRow
from exhume.report.strings import Strings

#: The fields of a mark, in this order: times in milliseconds, texts by number, -1 for none.
MARK_FIELDS = (
    *("time_ms", "record_offset", "event", "causes", "epoch", "members", "joined", "left"),
    *("partitions_moved", "no_assignment_ms", "reconciliation_ms", "is_storm"),
)
#: What the log can say about a cause or an event, in words.
WORDS: Mapping[str, str] = {
    "group_began": "the group began",
    "first_seen": "the log has nothing from before",
    "member_joined": "a member joined",
    "member_left": "a member left",
    "member_restarted": "a member restarted",
    "subscription_changed": "a subscription changed",
    "protocol_changed": "the protocol changed",
    "leader_changed": "the leader changed",
    "cooperative_follow_up": "released partitions got new owners",
    "topics_changed": "the topics changed",
    "topology_changed": "the topology changed",
    "partitions_initialized": "share partitions became assignable",
    "converted": "the group changed its protocol",
    "unknown": "the records show no cause",
    "rebalance": "rebalance",
    "emptied": "the last member left",
    "static_replacement": "a static member returned",
    "static_away": "a static member left for now",
    "rewritten": "the same generation again",
    "created": "created without members",
    "removed": "the group was removed",
}


def marks_of(rebalances: pa.Table, strings: Strings, begin_ms: int) -> list[list[int]]:
    """The marks of these rows of `REBALANCES`: rows of `MARK_FIELDS`, times since `begin_ms`. Rows without a time have no mark."""
    rows: list[RebalanceRow] = rebalances.to_pylist()
    return [_mark(row, row["timestamp_ms"] - begin_ms, strings) for row in rows if row["timestamp_ms"] is not None]


def _mark(row: RebalanceRow, time_ms: int, strings: Strings) -> list[int]:
    number = row["generation"] if row["generation"] is not None else row["group_epoch"]
    return [
        time_ms,
        row["record_offset"],
        strings.number(words([row["event"]])),
        strings.number(words(row["causes"])),
        *(-1 if each is None else each for each in (number, row["members"])),
        strings.number(", ".join(row["joined_clients"] or ()) or None),
        strings.number(", ".join(row["left_clients"] or ()) or None),
        *(-1 if each is None else each for each in (row["partitions_moved"], row["no_assignment_ms"], row["reconciliation_ms"])),
        int(row["is_storm"]),
    ]


def words(names: Sequence[str]) -> str:
    """These causes or events in words."""
    return ", ".join(WORDS.get(name, name) for name in names)
