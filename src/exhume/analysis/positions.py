"""Offsets that groups once had: at a moment, before a rewind, or before they were removed.

A commit counts when the broker reads it; one of a transaction when its COMMIT marker comes. Of two commits of a key the one with the higher
record offset wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from exhume.analysis.history import NEVER_COUNTED, HistoryRow
from exhume.codecs.json_values import from_json
from exhume.codecs.layout import Fields
from exhume.codecs.record_types import OFFSET_COMMIT_TYPES
from exhume.replay.state import CoordinatorState
from exhume.replay.state_tables import OffsetRow

#: (group, topic, partition)
PositionKey = tuple[str, str, int]
#: Fields of an offset commit -> the value version that introduced them, the newest first.
_ONLY_IN = {"topic_id": 4, "leader_epoch": 3, "expire_timestamp_ms": 1}
#: Replica and offsets partition of a log, and a partition of a topic.
_Place = tuple[str | None, int | None, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The offset that a group had for a partition. If it is not known, `committed_offset` is None and `reason` says why.

    `record_offset` is the record that committed it, `ended_by_record_offset` the rewind or the tombstone that ended it; None for the state
    at a moment. `is_pending`: an open transaction had a commit for the key then.
    """

    replica: str | None
    offsets_partition: int | None
    group: str
    topic: str
    partition: int
    committed_offset: int | None
    reason: str
    record_offset: int | None = None
    commit_timestamp_ms: int | None = None
    leader_epoch: int | None = None
    metadata: str = ""
    topic_id: str | None = None
    value_version: int | None = None
    ended_by_record_offset: int | None = None
    is_pending: bool = False

    @property
    def key(self) -> PositionKey:
        return self.group, self.topic, self.partition


def positions_of(state: CoordinatorState, reason: str) -> list[Position]:
    """Return every position of this state. A key with only a pending commit has no committed offset."""
    pending, held = _by_key(state.pending_offsets), _by_key(state.offsets)
    found = [_position(row, reason, is_pending=key in pending) for key, row in held.items()]
    only_pending = [row for key, row in pending.items() if key not in held]
    sentence = "the group had only a commit of an open transaction"
    return found + [replace(_position(row, sentence, is_pending=True), committed_offset=None) for row in only_pending]


def positions_before_rewinds(group: str, history: pa.Table, *, by_producer_id: bool) -> list[Position]:
    """Return, for each key of this group's `HISTORY` that was ever set back, the offset before the last rewind.

    `by_producer_id`: a tombstone removes pending commits of its key too, as in the Java coordinator.
    """
    before: dict[_Place, list[tuple[HistoryRow, HistoryRow]]] = {}
    for held, row in position_changes(history.to_pylist(), by_producer_id=by_producer_id):
        if held is not None and is_rewind(held, row):
            before.setdefault(_place(row), []).append((held, row))
    return [_before_rewind(group, rewinds) for rewinds in before.values()]


def positions_lost(group: str, history: pa.Table, state: CoordinatorState, *, by_producer_id: bool) -> list[Position]:
    """Return the last value of each key of this group's `HISTORY` that a tombstone removed, or that the log has and this state lacks."""
    gone: dict[_Place, Position] = {}
    last: dict[_Place, HistoryRow] = {}
    for held, row in position_changes(history.to_pylist(), by_producer_id=by_producer_id):
        place = _place(row)
        last[place] = row
        if not row["is_tombstone"]:
            continue
        sentence = f"record {row['record_offset']} removed it"
        if held is not None:
            gone[place] = _from_history(group, held, sentence, ended_by=row)
        elif place not in gone:
            lost = f"{sentence}, and compaction removed its last commit"
            gone[place] = _from_history(group, row | {"committed_offset": None}, lost, ended_by=row)
    offsets: list[OffsetRow] = state.offsets.to_pylist()
    shown = {(row["replica"], row["offsets_partition"], row["topic"], row["partition"]) for row in offsets if row["group"] == group}
    for place, row in last.items():
        if not row["is_tombstone"] and place not in shown:
            gone[place] = _from_history(group, row, f"a load by {state.release} does not show it", ended_by=None)
    return list(gone.values())


def is_rewind(held: HistoryRow, row: HistoryRow) -> bool:
    """True if this commit sets the offset of its key back."""
    return not row["is_tombstone"] and committed(row) < committed(held)


def committed(row: HistoryRow) -> int:
    """Return the committed offset of a commit; tombstones have none."""
    assert row["committed_offset"] is not None
    return row["committed_offset"]


def topic_partition(row: HistoryRow) -> tuple[str, int]:
    """Return the partition of a commit or of its tombstone."""
    assert row["topic"] is not None
    assert row["partition"] is not None
    return row["topic"], row["partition"]


def _before_rewind(group: str, rewinds: list[tuple[HistoryRow, HistoryRow]]) -> Position:
    held, row = rewinds[-1]
    sentence = f"record {row['record_offset']} set it back to {row['committed_offset']}"
    highest = max(committed(earlier) for earlier, _ in rewinds)
    if highest > committed(held):
        sentence += f", the last of {len(rewinds)} rewinds; before them it reached {highest}"
    return _from_history(group, held, sentence, ended_by=row)


def position_changes(history: Iterable[HistoryRow], *, by_producer_id: bool) -> Iterator[tuple[HistoryRow | None, HistoryRow]]:
    """Yield every commit and tombstone of these rows of `HISTORY` in the order in which they count, each with the commit before it.

    `by_producer_id` as for `positions_before_rewinds`.
    """
    holding: dict[_Place, HistoryRow] = {}
    removed_at: dict[_Place, int] = {}
    for row in _in_order(history):
        place = _place(row)
        held = holding.get(place)
        if row["is_tombstone"]:
            holding.pop(place, None)
            removed_at[place] = row["record_offset"]
        elif held is not None and held["record_offset"] > row["record_offset"]:
            continue  # Written before the held commit; its transaction ended after it.
        elif not (by_producer_id and removed_at.get(place, -1) > row["record_offset"]):
            holding[place] = row
        else:
            continue
        yield held, row


def _in_order(history: Iterable[HistoryRow]) -> list[HistoryRow]:
    counted = [
        row
        for row in history
        if row["record_type"] in OFFSET_COMMIT_TYPES
        and row["topic"] is not None
        and row["fate"] not in NEVER_COUNTED
        and (row["is_tombstone"] or row["committed_offset"] is not None)
    ]
    return sorted(counted, key=_counts_at)


def _counts_at(row: HistoryRow) -> tuple[int, int]:
    at = row["record_offset"] if row["marker_record_offset"] is None else row["marker_record_offset"]
    return at, row["record_offset"]


def _place(row: HistoryRow) -> _Place:
    return row["replica"], row["offsets_partition"], *topic_partition(row)


def _by_key(offsets: pa.Table) -> dict[PositionKey, OffsetRow]:
    rows: list[OffsetRow] = offsets.to_pylist()
    return {(row["group"], row["topic"], row["partition"]): row for row in rows}


def _position(row: OffsetRow, reason: str, *, is_pending: bool) -> Position:
    return Position(
        replica=row["replica"],
        offsets_partition=row["offsets_partition"],
        group=row["group"],
        topic=row["topic"],
        partition=row["partition"],
        committed_offset=row["committed_offset"],
        reason=reason,
        record_offset=row["record_offset"],
        commit_timestamp_ms=row["commit_timestamp_ms"],
        leader_epoch=row["leader_epoch"],
        metadata=row["metadata"] or "",
        topic_id=row["topic_id"],
        value_version=row["value_version"],
        is_pending=is_pending,
    )


def _from_history(group: str, row: HistoryRow, reason: str, *, ended_by: HistoryRow | None) -> Position:
    topic, partition = topic_partition(row)
    value = from_json(row["value"]) if row["value"] is not None else {}
    leader_epoch = value.get("leader_epoch")
    return Position(
        replica=row["replica"],
        offsets_partition=row["offsets_partition"],
        group=group,
        topic=topic,
        partition=partition,
        committed_offset=row["committed_offset"],
        reason=reason,
        record_offset=None if row["is_tombstone"] else row["record_offset"],
        commit_timestamp_ms=row["commit_timestamp_ms"],
        leader_epoch=None if leader_epoch is None or leader_epoch < 0 else leader_epoch,
        metadata=value.get("metadata") or "",
        topic_id=value.get("topic_id"),
        value_version=_version_of(value),
        ended_by_record_offset=None if ended_by is None else ended_by["record_offset"],
    )


def _version_of(value: Fields) -> int:
    """Return the value version with these fields; 2 also stands for 0, which has the same."""
    return next((version for name, version in _ONLY_IN.items() if name in value), 2)
