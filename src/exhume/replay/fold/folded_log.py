"""A log with its fold, for the loaders: the state that the fold settled, and the records that it passed on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from exhume.codecs.kernels.readers import Group, read_group
from exhume.codecs.kernels.types import Int64s
from exhume.codecs.record_types import GROUP_METADATA, OFFSET_COMMIT, RECORD_TYPES
from exhume.codecs.records import Record
from exhume.codecs.wire import format_uuid
from exhume.replay.broker_log import LoadedBatch, StrictLog
from exhume.replay.classic_group import ClassicGroupRules, GroupOutline, outlined_classic_group
from exhume.replay.commits import CommitRules, build_commit
from exhume.replay.decode import ReplayRecord
from exhume.replay.fold import tables as columns
from exhume.replay.fold.kernels.gathering import span_offsets
from exhume.replay.fold.kernels.keys import NAMED_COLUMNS
from exhume.replay.fold.kernels.names import SIZE, START, Names, texts_of
from exhume.replay.fold.result import BatchPlace, FoldResult, mended_position
from exhume.replay.fold.tables import Tables
from exhume.replay.partition_state import ClassicGroupState, Commit, OffsetKey, OpenTransaction


@dataclass(frozen=True, slots=True)
class CommitSeen:
    """A note for the loader: the log has a commit of this group at this record offset. The commit itself is settled."""

    group: str
    record_offset: int


class SettledGroup(NamedTuple):
    """A group of which no record was passed on. `value` makes the group if its last record has a value; else it is None.

    `first_tombstone` is the record offset of the first tombstone since the last value, `first_commit` that of the first commit since the
    group was absent; None if there is none.
    """

    name: str
    value: Callable[[ClassicGroupRules], ClassicGroupState] | None
    tombstone: int | None
    first_tombstone: int | None
    first_commit: int | None


@dataclass(slots=True)
class FoldedLog:
    """A log with its fold. The loader adds the state that the fold settled after all records that were passed on.

    `up_to` folds the log again for a load that ends in an error at another segment and byte; None if that cannot be done. `has_notes` is
    True if the fold noted the batches of chosen groups.
    """

    log: StrictLog
    result: FoldResult
    #: Topic id to topic, as in the commits.
    topic_ids: dict[str, str]
    up_to: Callable[[BatchPlace], FoldedLog | None] | None = None
    has_notes: bool = False

    @property
    def tables(self) -> Tables:
        """The tables of the fold."""
        return self.result.tables

    @property
    def records(self) -> int:
        return int(self.tables.counts[columns.RECORDS])

    @property
    def size_bytes(self) -> int:
        return int(self.tables.counts[columns.BATCH_BYTES])

    @property
    def first_offset(self) -> int | None:
        first = int(self.tables.counts[columns.FIRST_OFFSET])
        return None if first < 0 else first

    @property
    def last_offset(self) -> int | None:
        return None if self.first_offset is None else int(self.tables.counts[columns.NEXT_OFFSET]) - 1

    # Records that were passed on

    def passed(self) -> Iterator[LoadedBatch | CommitSeen]:
        """Yield batches and notes for the loader, in log order; of a batch only the records that were passed on."""
        rows = self.tables.passed[: self.tables.counts[columns.PASSED]]
        if self.result.ends_at is not None:
            # The loader reads the batch at which it ends from the log.
            rows = rows[rows[:, columns.PASSED_OFFSET] < self.tables.counts[columns.NEXT_OFFSET]]
        rows = rows[np.argsort(rows[:, columns.PASSED_OFFSET], kind="stable")]
        runs = [
            (place, list(run))
            for place, run in groupby(rows.tolist(), key=lambda row: (row[columns.PASSED_SEGMENT], row[columns.PASSED_BATCH]))
        ]
        ends = {(segment, max(position, mended_position(position))): number for number, ((segment, position), _) in enumerate(runs)}
        for number, ((segment, position), run) in enumerate(runs):
            if segment < 0:
                for row in run:
                    yield CommitSeen(_name(self.tables.group_names, row[columns.PASSED_GROUP]), row[columns.PASSED_OFFSET])
                continue
            loaded = self._batch_of(
                segment, position, [self.result.records.record((segment, position, row[columns.PASSED_PLACE])) for row in run]
            )
            if number < ends[segment, max(position, mended_position(position))]:
                # The rest of the batch comes later: no batch ends twice.
                loaded.batch = replace(loaded.batch, last_offset=run[-1][columns.PASSED_OFFSET])
            yield loaded

    def last_batches(self) -> Iterator[LoadedBatch]:
        """Yield the batches that the load reads from the place of its error on."""
        if self.result.ends_at is not None:
            number, position = self.result.ends_at
            segment = self.log.segments[number]
            if not len(segment.buffer):
                segment.open()
            yield from self.log.batches_of(segment, position)

    def place_of(self, batch: LoadedBatch) -> BatchPlace:
        """Return number of the segment and byte position of a batch that was passed on."""
        return next(number for number, each in enumerate(self.log.segments) if each.file.path == batch.path), batch.batch.byte_position

    def _batch_of(self, segment: int, position: int, records: list[Record]) -> LoadedBatch:
        served = self.log.segments[segment]
        batch = self.result.records.batch((segment, position))
        if self.last_offset is not None and self.last_offset < batch.last_offset:
            # The log ends within this batch.
            batch = replace(batch, last_offset=self.last_offset)
        return LoadedBatch(served.file.path, batch, served.buffer, lambda: records)

    # Settled state

    def groups(self) -> Iterator[SettledGroup]:
        """Yield every group that has a record or a commit, except those that were passed on."""
        rows = self.tables.groups[: self.tables.counts[columns.GROUPS]].tolist()
        for name, row in zip(texts_of(self.tables.group_names, len(rows)), rows, strict=True):
            if row[columns.IS_PASSED_ON]:
                continue
            kind, first = row[columns.KIND], row[columns.FIRST_COMMIT]
            yield SettledGroup(
                name=name,
                value=self._value(name, row) if kind == columns.VALUE else None,
                tombstone=row[columns.KIND_OFFSET] if kind == columns.TOMBSTONE else None,
                first_tombstone=row[columns.FIRST_TOMBSTONE] if kind == columns.TOMBSTONE else None,
                first_commit=None if first < 0 else first,
            )

    def _value(self, name: str, row: list[int]) -> Callable[[ClassicGroupRules], ClassicGroupState]:
        def make(rules: ClassicGroupRules) -> ClassicGroupState:
            outline = read_outline(self.result.records.group_value(row))
            return outlined_classic_group(name, row[columns.KIND_OFFSET], outline, RECORD_TYPES[GROUP_METADATA].message, rules)

        return make

    def spans(self) -> dict[str, tuple[int, int]]:
        """Return the lowest and the highest record offset of the commits of each group that has commits."""
        count, keys = int(self.tables.counts[columns.GROUPS]), int(self.tables.counts[columns.KEYS])
        lowest, highest = np.full(count, np.iinfo(np.int64).max), np.full(count, -1, np.int64)
        span_offsets(keys, self.tables.keys.rows, self.tables.commits, lowest, highest)
        spans = zip(texts_of(self.tables.group_names, count), lowest.tolist(), highest.tolist(), strict=True)
        return {name: (first, last) for name, first, last in spans if last >= 0}

    def noted(self) -> dict[str, Int64s]:
        """Return the noted batches as rows of `kernels.scan`, by the path of their segment; every segment of the log has an array."""
        rows = self.tables.noted[: self.tables.counts[columns.NOTED]]
        return {
            segment.file.path: rows[rows[:, columns.NOTED_SEGMENT] == number][:, columns.NOTED_BATCH :]
            for number, segment in enumerate(self.log.segments)
        }

    def left_out(self) -> set[str]:
        """Return the groups that may have committed offsets that the fold left out, since these groups were not chosen."""
        rows = self.tables.groups[: self.tables.counts[columns.GROUPS]]
        return {_name(self.tables.group_names, int(number)) for number in np.flatnonzero(rows[:, columns.LEFT_OUT])}

    def transactions(self, rules: CommitRules) -> Iterator[OpenTransaction]:
        """Yield the transactions without a marker, with their commits."""
        for row in self.tables.producers[: self.tables.counts[columns.PRODUCERS]].tolist():
            if not row[columns.TXN_IS_OPEN]:
                continue
            transaction = OpenTransaction(
                row[columns.TXN_PRODUCER_ID],
                row[columns.TXN_EPOCH],
                row[columns.TXN_FIRST_OFFSET],
                row[columns.TXN_LAST_OFFSET],
                _absent(row[columns.TXN_FIRST_TIMESTAMP]),
                _absent(row[columns.TXN_LAST_TIMESTAMP]),
            )
            place = row[columns.TXN_FIRST_STAGED]
            while place >= 0:
                staged = self.tables.staged[place].tolist()
                key = self._key(staged[columns.STAGED_KEY])
                transaction.groups.add(key[0])
                if staged[columns.RECORD_OFFSET] >= self.tables.void_below[staged[columns.STAGED_KEY], 0]:
                    transaction.offsets[key] = self._commit(staged, place, rules)
                place = staged[columns.NEXT]
            yield transaction

    def _key(self, number: int) -> OffsetKey:
        group, topic, partition = self.tables.keys.rows[number, :NAMED_COLUMNS].tolist()
        return _name(self.tables.group_names, group), _name(self.tables.topic_names, topic), partition

    def _commit(self, staged: list[int], place: int, rules: CommitRules) -> Commit:
        start, size = staged[columns.METADATA] >> columns.SIZE_BITS, staged[columns.METADATA] & (1 << columns.SIZE_BITS) - 1
        version = staged[columns.VERSION]
        value = {
            "committed_offset": staged[columns.COMMITTED_OFFSET],
            "leader_epoch": staged[columns.LEADER_EPOCH],
            "metadata": bytes(self.tables.metadata[start : start + size]).decode(),
            "commit_timestamp_ms": staged[columns.COMMIT_TIMESTAMP],
            "expire_timestamp_ms": staged[columns.EXPIRE_TIMESTAMP] if version == 1 else None,
            "topic_id": _uuid(*self.tables.staged_topic_ids[place].tolist()) if version >= 4 else None,
        }
        record = ReplayRecord(staged[columns.RECORD_OFFSET], OFFSET_COMMIT, {}, version, value)
        producer_id, producer_epoch = _producer(self.tables, staged[columns.PRODUCER])
        commit = build_commit(record, record.record_offset, None, rules)
        return replace(commit, producer_id=producer_id, producer_epoch=producer_epoch)


def read_topic_ids(tables: Tables) -> dict[str, str] | None:
    """Return topic id to topic, as in the commits; None if one id has two topics."""
    topics: dict[str, str] = {}
    for topic, first, second in tables.topic_ids[: tables.counts[columns.TOPIC_IDS]].tolist():
        name, topic_id = _name(tables.topic_names, topic), _uuid(first, second)
        if topic_id is not None and topics.setdefault(topic_id, name) != name:
            return None
    return topics


def _producer(tables: Tables, packed: int) -> tuple[int, int]:
    epoch = packed & (1 << columns.EPOCH_BITS) - 1
    producer_id = int(tables.producers[(packed >> columns.EPOCH_BITS) - 1, columns.TXN_PRODUCER_ID])
    return producer_id, epoch - (1 << columns.EPOCH_BITS) if epoch >> columns.EPOCH_BITS - 1 else epoch


def _name(names: Names, number: int) -> str:
    start, size = names.places[number, START], names.places[number, SIZE]
    return names.content[start : start + size].tobytes().decode()


def _uuid(first: int, second: int) -> str | None:
    raw = (first & (1 << 64) - 1).to_bytes(8, "big") + (second & (1 << 64) - 1).to_bytes(8, "big")
    return format_uuid(raw) if any(raw) else None


def _absent(timestamp_ms: int) -> int | None:
    return None if timestamp_ms == -1 else timestamp_ms


def read_outline(value: bytes) -> GroupOutline:
    """Return the outline of a value that passed `is_plain_group`: each length in it is right, each text exact."""
    group = Group(*read_group(np.frombuffer(value, np.uint8), 0, len(value)))
    front = {
        "protocol_type": _text(value, group.protocol_type_start, group.protocol_type_size),
        "generation": group.generation,
        "protocol": _text(value, group.protocol_start, group.protocol_size),
        "leader": _text(value, group.leader_start, group.leader_size),
        "current_state_timestamp_ms": group.current_state_timestamp_ms,
    }
    return GroupOutline(group.version, front, group.members_count, value)


def _text(value: bytes, start: int, size: int) -> str | None:
    return None if size < 0 else value[start : start + size].decode()
