"""The history of a group, or of one of its keys, record by record.

The rows are all records that the log still has, in log order: the last one of each key (`live`), and those that no longer count, with the
record that ended them. Compaction removes such records, so the history of a compacted log has its newest part only; the state at a moment
has grades for that.

Each key decides the fate of its records. A plain commit counts when the broker reads it; one of a transaction when its COMMIT marker comes.
Of two commits of a key the one with the higher record offset wins, as in coordinators. A load by the release gives the offset that is left
at the end, because coordinators differ where a tombstone meets a pending commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum, auto
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.committers import Committers
from exhume.analysis.group_timeline import GroupFold
from exhume.analysis.log_extent import LogExtents
from exhume.analysis.memberships import Membership
from exhume.analysis.number_columns import NONE
from exhume.analysis.transaction_outcomes import Ending, ended_by, ending_of
from exhume.arrow_rows import Int16, Int32, Json, OfLog, Origin, schema_of, table_of
from exhume.codecs.batch_format import NO_PRODUCER_ID
from exhume.codecs.json_values import to_json
from exhume.codecs.record_types import OFFSET_COMMIT, OFFSET_COMMIT_TYPES, Decoded, decode_record
from exhume.codecs.records import Record
from exhume.codecs.segment_reader import SegmentBatch
from exhume.errors import RequestError, near_by
from exhume.replay.state import CoordinatorState
from exhume.replay.topic_names import TopicNames


class Fate(StrEnum):
    """The fate of a record."""

    #: The last record of its key, a tombstone included.
    LIVE = auto()
    #: A later value took its place.
    SUPERSEDED = auto()
    #: A later tombstone took its place.
    DELETED = auto()
    ABORTED = auto()
    #: Its transaction is open at the end.
    PENDING = auto()


#: The fates of commits that never counted.
NEVER_COUNTED = frozenset({Fate.ABORTED, Fate.PENDING})


class HistoryRow(OfLog):
    """One row per record.

    `fate` is a `Fate`, `ended_by_record_offset` the record that superseded, deleted or aborted it. A commit with a truncated key has
    neither topic nor partition. The outcome of a transaction is COMMIT, ABORT or open, with the place and time of its marker.

    `generation` is that of the classic group, `group_epoch` that of a modern one, at the end of the batch of this record. `owner_member_id`
    is the member that owned the partition of a commit then, `owner_member_epoch` its epoch. Null if the log does not show it. `committer`
    is the member that may have made the commit, which no record names, and `committer_confidence` its confidence: see
    `committers.Committers`. `committed_offset_delta` is the difference to the commit of the key before it. `value` is the decoded value,
    null for tombstones.
    """

    record_offset: int
    timestamp_ms: int | None
    record_type: Int16
    type: str
    member_id: str | None
    topic: str | None
    partition: Int32 | None
    is_tombstone: bool
    committed_offset: int | None
    committed_offset_delta: int | None
    commit_timestamp_ms: int | None
    generation: Int32 | None
    group_epoch: Int32 | None
    owner_member_id: str | None
    owner_member_epoch: Int32 | None
    owner_group_instance_id: str | None
    owner_client_id: str | None
    owner_client_host: str | None
    committer: str | None
    committer_confidence: str | None
    fate: str
    ended_by_record_offset: int | None
    producer_id: int | None
    producer_epoch: Int16 | None
    transaction_outcome: str | None
    marker_record_offset: int | None
    marker_timestamp_ms: int | None
    value: Json | None
    path: str
    byte_position: int


HISTORY = schema_of(HistoryRow)

_Row = dict[str, Any]


class HistoryReader:
    """Read the history of one group, batch by batch in log order.

    Args:
        state: a load of the same logs, complete; its release decides which records are transactional and which commits are left.
        names: the names of topic ids.
        group: the group.
        only_commits: only the rows of commits get a value.
        on_step: takes each step of the group.
    """

    def __init__(
        self,
        state: CoordinatorState,
        names: TopicNames,
        group: str,
        *,
        only_commits: bool = False,
        on_step: Callable[[Membership], None] = lambda _: None,
    ) -> None:
        self._state, self._names, self._group, self._only_commits, self._on_step = state, names, group, only_commits, on_step
        self._by_producer_id = "java" in state.loads["coordinator"].to_pylist()
        self._logs: dict[Origin, _GroupHistory] = {}
        self._seen: set[str] = set()

    def read(self, batch: SegmentBatch) -> None:
        """Take the records of the next batch."""
        origin = (batch.partition.replica, batch.partition.offsets_partition)
        if origin not in self._logs:
            self._logs[origin] = _GroupHistory(
                self._group, GroupFold(self._names), self._on_step, by_producer_id=self._by_producer_id, only_commits=self._only_commits
            )
        self._seen.update(self._logs[origin].read(batch))

    def read_all(self, batches: Iterable[SegmentBatch]) -> None:
        """Take the records of these batches: all that have a record of the group or end a transaction, in log order."""
        for batch in batches:
            self.read(batch)

    @property
    def tombstones(self) -> Iterator[tuple[Origin, int]]:
        """The log and the record offset of each tombstone of the group."""
        return ((origin, row["record_offset"]) for origin, log in self._logs.items() for row in log.rows if row["is_tombstone"])

    def table(self, extents: Callable[[], LogExtents], *, topic: str | None = None, partition: int | None = None) -> pa.Table:
        """Return the history as `HISTORY`; with `topic`, or `partition` of it, only the commits for that. Call it once.

        `extents` returns those of the logs; it is called only if the committer of a commit depends on them.

        Raises:
            RequestError: no such record; lists groups with similar names, or the topics that the group has commits for.
        """
        state, group = self._state, self._group
        extents = cache(extents)
        rows = [
            row
            for origin, log in self._logs.items()
            for row in log.finish(_left(state, origin, group), partial(_is_whole, extents, origin))
        ]
        if not rows:
            seen = self._seen | {*state.groups["group"].to_pylist(), *state.offsets["group"].to_pylist()}
            raise RequestError(f"no record of group {group!r} is here", remedy=near_by(group, seen))
        if topic is None and partition is None:
            return _table(rows)
        commits = [row for row in rows if row["record_type"] in OFFSET_COMMIT_TYPES]
        wanted = [row for row in commits if topic in (None, row["topic"]) and partition in (None, row["partition"])]
        if not wanted:
            known = sorted({f"{row['topic']} {row['partition']}" for row in commits})
            place = " ".join(str(part) for part in (topic, partition) if part is not None)
            remedy = f"It has commits for {', '.join(known[:10])}" if known else "It has no commits"
            raise RequestError(f"group {group!r} never committed {place} here", remedy=remedy)
        return _table(wanted)


def _table(rows: Iterable[_Row]) -> pa.Table:
    return table_of(HISTORY, [row | {"value": None if row["value"] is None else to_json(row["value"])} for row in rows])


def _is_whole(extents: Callable[[], LogExtents], origin: Origin) -> bool:
    extent = extents().get(origin)
    return extent is not None and extent.is_complete_after(None)


def _left(state: CoordinatorState, origin: Origin, group: str) -> dict[tuple[str, int], int]:
    """Return the record offset of the commit that is left at the end, by topic and partition."""
    return {
        (row["topic"], row["partition"]): row["record_offset"]
        for row in state.offsets.filter(pc.field("group") == group).to_pylist()
        if (row["replica"], row["offsets_partition"]) == origin
    }


@dataclass(slots=True)
class _GroupHistory:
    """The rows of one offsets partition, batch by batch."""

    group: str
    fold: GroupFold
    on_step: Callable[[Membership], None]
    by_producer_id: bool
    #: True if only the rows of commits get a value.
    only_commits: bool
    committers: Committers = field(default_factory=Committers)
    rows: list[_Row] = field(default_factory=list)
    #: The numbers of the batches that hold the rows of commits, with the rows; those of transactions are in `_staged`, too.
    _commits: list[tuple[int, _Row]] = field(default_factory=list)
    _staged: list[tuple[int, _Row]] = field(default_factory=list)
    _producers: set[int] = field(default_factory=set)
    #: Number of the batch, producer id, record offset, timestamp and ending of each end marker of these producers.
    _markers: list[tuple[int, int, int, int | None, Ending]] = field(default_factory=list)
    _batches: int = 0

    def read(self, batch: SegmentBatch) -> Iterator[str]:
        """Take the records of a batch. Yields the groups that they belong to."""
        own: list[tuple[Record, Decoded]] = []
        self._batches += 1
        for record in batch.records():
            if batch.batch.is_control:
                self._note_marker(batch.batch.producer_id, record)
                continue
            decoded = decode_record(record.key, None)
            group = decoded.key.get("group")
            if group is not None:
                yield group
            if group == self.group:
                has_value = decoded.number in OFFSET_COMMIT_TYPES or not self.only_commits
                own.append((record, decode_record(record.key, record.value) if has_value else decoded))
        steps, origin = deque(self._steps(batch, own)), batch.origin
        for step in steps:
            self.on_step(step)
        for record, decoded in own:
            while steps and steps[0].record_offset <= record.record_offset:
                self.committers.take(steps.popleft())
            position = {
                **origin,
                "byte_position": batch.batch.byte_position,
                "record_offset": record.record_offset,
                "timestamp_ms": record.timestamp_ms,
            }
            self._take(position, decoded, batch, is_tombstone=record.value is None)

    def _steps(self, batch: SegmentBatch, own: Iterable[tuple[Record, Decoded]]) -> Iterator[Membership]:
        """Yield the steps of the group in this batch."""
        about_group = [record for record, decoded in own if decoded.number not in OFFSET_COMMIT_TYPES]
        if about_group:
            partition = batch.partition
            yield from self.fold.begin_batch(
                (partition.replica, partition.offsets_partition, batch.segment.path, batch.batch.byte_position)
            )
            for record in about_group:
                yield from self.fold.take(record.record_offset, record.timestamp_ms, record.key or b"", record.value)
            yield from self.fold.end_batch()

    def _take(self, position: _Row, decoded: Decoded, batch: SegmentBatch, *, is_tombstone: bool) -> None:
        producer_id = batch.batch.producer_id
        is_commit = decoded.number in OFFSET_COMMIT_TYPES
        waits = is_commit and (producer_id != NO_PRODUCER_ID if self.by_producer_id else batch.batch.is_transactional)
        value = decoded.value or {}
        partition = decoded.key.get("partition")
        is_whole = not is_commit or partition is not None
        row: _Row = position | {
            "record_type": decoded.number,
            "type": decoded.name,
            "member_id": decoded.key.get("member_id"),
            "topic": decoded.key.get("topic") if is_whole else None,
            "partition": partition,
            "is_tombstone": is_tombstone,
            "value": decoded.value,
            # Types 0 and 1 are one key.
            "key": (OFFSET_COMMIT if is_commit else decoded.number, *decoded.key.values()),
        }
        step = self.committers.step
        row |= {"generation": step.generation, "group_epoch": step.group_epoch} if step is not None else {}
        if is_commit:
            row |= {
                "committed_offset": value.get("committed_offset"),
                "commit_timestamp_ms": value.get("commit_timestamp_ms"),
            }
            if not is_tombstone:
                row |= self.committers.note(row)
        if waits:
            row |= {
                "producer_id": producer_id,
                "producer_epoch": batch.batch.producer_epoch,
                "transaction_outcome": "open",
                "fate": Fate.PENDING,
            }
            self._producers.add(producer_id)
            self._staged.append((self._batches, row))
        if is_commit:
            self._commits.append((self._batches, row))
        self.rows.append(row)

    def _note_marker(self, producer_id: int, record: Record) -> None:
        ending = ending_of(record.key, every_type_ends=not self.by_producer_id)
        if ending is not None and producer_id in self._producers:
            self._markers.append((self._batches, producer_id, record.record_offset, record.timestamp_ms, ending))

    def _end_transactions(self) -> list[tuple[int, _Row]]:
        """Set the outcome of staged commits; return those that count, with the numbers of the batches of their markers."""
        places, producers = (np.array([marker[column] for marker in self._markers], np.int64) for column in range(2))
        staged_at = np.array([place for place, _ in self._staged], np.int64)
        staged_by = np.array([row["producer_id"] for _, row in self._staged], np.int64)
        committed: list[tuple[int, _Row]] = []
        for number, (_, row) in zip(ended_by(staged_by, staged_at, producers, places).tolist(), self._staged, strict=True):
            if number == NONE:
                continue
            place, _, record_offset, timestamp_ms, ending = self._markers[number]
            row |= {"transaction_outcome": ending, "marker_record_offset": record_offset, "marker_timestamp_ms": timestamp_ms}
            if ending == "COMMIT":
                row["fate"] = None
                committed.append((place, row))
            else:
                row |= {"fate": Fate.ABORTED, "ended_by_record_offset": record_offset}
        return committed

    def _compare_with_holding(self, committed: Iterable[tuple[int, _Row]]) -> None:
        """Set the distance of commits to the commit that held when they were read; `committed` count from their markers on."""
        events = [(place, row, True) for place, row in self._commits] + [(place, row, False) for place, row in committed]
        holding: dict[tuple[str, int], _Row] = {}
        for _, row, is_read in sorted(events, key=lambda event: event[0]):
            held = holding.get((row["topic"], row["partition"]))
            if is_read and held is not None and row["committed_offset"] is not None and held["committed_offset"] is not None:
                row["committed_offset_delta"] = row["committed_offset"] - held["committed_offset"]
            if not is_read or "producer_id" not in row:
                _hold(row, holding)

    def finish(self, left: Mapping[tuple[str, int], int], is_whole: Callable[[], bool]) -> list[_Row]:
        """Return the rows with their fates. `left` are the commits that are left at the end; `is_whole` is as for `Committers.finish`."""
        self.committers.finish(is_whole)
        self._compare_with_holding(self._end_transactions())
        by_key: dict[Any, list[_Row]] = {}
        for row in self.rows:
            if row.get("fate") is None:
                by_key.setdefault(row["key"], []).append(row)
        for rows in by_key.values():
            is_commit = rows[0]["record_type"] in OFFSET_COMMIT_TYPES
            _decide(rows, left.get((rows[0]["topic"], rows[0]["partition"])) if is_commit else None)
        return self.rows


def _hold(row: _Row, holding: dict[tuple[str, int], _Row]) -> None:
    """Let this commit hold from here on, unless one with a higher record offset does."""
    key = (row["topic"], row["partition"])
    if None in key:
        return
    held = holding.get(key)
    if row["is_tombstone"]:
        holding.pop(key, None)
    elif held is None or held["record_offset"] < row["record_offset"]:
        holding[key] = row


def _decide(rows: Iterable[_Row], left: int | None) -> None:
    """Set the fates of the records of one key that ever counted.

    `left` is the record offset of the value that is left at the end, if known.
    """
    ordered = sorted(rows, key=lambda row: row["record_offset"])
    last = next((row for row in ordered if row["record_offset"] == left), ordered[-1])
    for row, following in zip(ordered, [*ordered[1:], last], strict=True):
        if row is last:
            row["fate"] = Fate.LIVE
            continue
        row["fate"] = Fate.DELETED if following["is_tombstone"] and not row["is_tombstone"] else Fate.SUPERSEDED
        row["ended_by_record_offset"] = following["record_offset"]
