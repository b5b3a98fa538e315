"""The transactions of a log, open and ended, as the log layer of a broker counts them.

A transaction begins with its first record and ends with the next end marker of its producer (`end_markers`). Its records are those of
batches with the transactional bit and a producer id. The last stable offset, the cleaner and `read_committed` use the same rule. The
coordinators of some releases have other rules, which `replay` has.

(Source: ProducerStateManager and UnifiedLog of Kafka 3.8.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.end_markers import NO_EPOCH, Ending, EndMarkers
from exhume.analysis.number_columns import NONE, Int64s, flags_of, numbers_of, or_none
from exhume.codecs.log_directory import PartitionDirectory
from exhume.durations import DEFAULT_MAX_TIMEOUT_MS
from exhume.int64 import LARGEST_INT64

#: The time that brokers add to it for the metric PartitionsWithLateTransactionsCount (KIP-664).
_LATE_PADDING_MS = 5 * 60_000


def is_late(idle_ms: int | None, max_timeout_ms: int = DEFAULT_MAX_TIMEOUT_MS) -> bool:
    """Return True if brokers call an open transaction late: its last record is older than the maximum timeout plus five minutes."""
    return idle_ms is not None and idle_ms > max_timeout_ms + _LATE_PADDING_MS


@dataclass(frozen=True, slots=True)
class Marker:
    """The marker that ended a transaction."""

    record_offset: int
    timestamp_ms: int | None
    ending: Ending
    coordinator_epoch: int | None


@dataclass(slots=True)
class Transaction:
    """One transaction; `marker` is None while it is open.

    `producer_epoch` is the epoch of its last record, `path` and `byte_position` are those of its first batch. Timestamps are the least and
    the greatest of its records, None if no record has one. `keys` are the keys of its records in the order of the log, each once.
    """

    producer_id: int
    producer_epoch: int
    first_record_offset: int
    last_record_offset: int
    path: str
    byte_position: int
    record_count: int = 0
    first_timestamp_ms: int | None = None
    last_timestamp_ms: int | None = None
    marker: Marker | None = None
    keys: dict[bytes | None, None] = field(default_factory=dict)

    def held_up_bytes(self, directories: Sequence[PartitionDirectory]) -> int:
        """Return the bytes from its first batch to the end of the log; `directories` are those of the log."""
        for directory in directories:
            for segment in directory.segments:
                if segment.path == self.path:
                    return directory.bytes_from(segment, self.byte_position)
        return 0


class TransactionReader:
    """Read the transactions of one log, part by part in the order of the log."""

    def __init__(self, *, keeps_ended: bool = False) -> None:
        #: The open transactions so far, by producer id.
        self.open: dict[int, Transaction] = {}
        #: The ended transactions in the order of their markers; empty unless `keeps_ended`.
        self.ended: list[Transaction] = []
        self.ended_count = 0
        self._keeps_ended = keeps_ended

    def take(self, records: pa.RecordBatch, places: Int64s, markers: EndMarkers) -> None:
        """Add the next records and the next markers. Records outside of transactions are ignored.

        `records` are rows of `schemas.RECORDS` or of a decoded table, in the order of their `places`. With a column `key`, transactions
        keep their keys.
        """
        rows = np.flatnonzero(flags_of(staged(records)))
        if not len(rows) and not (self.open and len(markers)):
            return
        ending = markers.ended(numbers_of(records["producer_id"])[rows], places[rows])
        ended = self._end_open(markers)
        self.ended_count += len({*ended, *np.unique(ending[ending != NONE]).tolist()})
        if not self._keeps_ended:
            rows, ending = rows[ending == NONE], ending[ending == NONE]
        for number, transaction in _parts(records, rows, ending):
            begun = ended.get(number) if number != NONE else self.open.get(transaction.producer_id)
            if begun is not None:
                _join(begun, transaction)
            elif number != NONE:
                ended[number] = transaction
            else:
                self.open[transaction.producer_id] = transaction
        if self._keeps_ended:
            for number, transaction in sorted(ended.items()):
                transaction.marker = _marker(markers, number)
                self.ended.append(transaction)

    def _end_open(self, markers: EndMarkers) -> dict[int, Transaction]:
        """Remove the open transactions that these markers end; return them by the number of the marker."""
        producers = np.array([*self.open], np.int64)
        ending = markers.ended(producers, np.full(len(producers), NONE, np.int64))
        return {
            number: self.open.pop(producer) for producer, number in zip(producers.tolist(), ending.tolist(), strict=True) if number != NONE
        }


def staged(records: pa.RecordBatch) -> pa.BooleanArray:
    """Return True for each record of a transaction; rows of `schemas.RECORDS`, or of a decoded table of data records."""
    is_staged = pc.and_(records["is_transactional"], pc.is_valid(records["producer_id"]))
    return pc.and_not(is_staged, records["is_control"]) if "is_control" in records.schema.names else is_staged


def _parts(records: pa.RecordBatch, rows: Int64s, ending: Int64s) -> Iterator[tuple[int, Transaction]]:
    """Group these rows by producer and by the marker that ended them (-1 for none), in the order of their first rows."""
    if not len(rows):
        return
    producers, offsets, epochs, positions, times = (
        numbers_of(records[name])[rows] for name in ("producer_id", "record_offset", "producer_epoch", "byte_position", "timestamp_ms")
    )
    keys = records["key"].take(pa.array(rows)).to_pylist() if "key" in records.schema.names else None
    order = np.lexsort((ending, producers))
    by_producer, by_marker, times = producers[order], ending[order], times[order]
    starts = np.flatnonzero(np.append(True, (by_producer[1:] != by_producer[:-1]) | (by_marker[1:] != by_marker[:-1])))
    bounds = np.append(starts, len(order))
    earliest = np.minimum.reduceat(np.where(times == NONE, LARGEST_INT64, times), starts)
    latest = np.maximum.reduceat(times, starts)
    for part in np.argsort(order[starts]).tolist():
        own = order[bounds[part] : bounds[part + 1]]
        first, last = int(own[0]), int(own[-1])
        has_time = latest[part] != NONE
        yield (
            int(ending[first]),
            Transaction(
                producer_id=int(producers[first]),
                producer_epoch=int(epochs[last]),
                first_record_offset=int(offsets[first]),
                last_record_offset=int(offsets[last]),
                path=records["path"][int(rows[first])].as_py(),
                byte_position=int(positions[first]),
                record_count=len(own),
                first_timestamp_ms=int(earliest[part]) if has_time else None,
                last_timestamp_ms=int(latest[part]) if has_time else None,
                keys={} if keys is None else dict.fromkeys(keys[row] for row in own.tolist()),
            ),
        )


def _join(transaction: Transaction, later: Transaction) -> None:
    """Add a later part of the same transaction."""
    transaction.producer_epoch, transaction.last_record_offset = later.producer_epoch, later.last_record_offset
    transaction.record_count += later.record_count
    earliest = [time_ms for time_ms in (transaction.first_timestamp_ms, later.first_timestamp_ms) if time_ms is not None]
    latest = [time_ms for time_ms in (transaction.last_timestamp_ms, later.last_timestamp_ms) if time_ms is not None]
    transaction.first_timestamp_ms, transaction.last_timestamp_ms = min(earliest, default=None), max(latest, default=None)
    transaction.keys.update(later.keys)


def _marker(markers: EndMarkers, number: int) -> Marker:
    record_offset, timestamp_ms, coordinator_epoch = (
        int(column[number]) for column in (markers.record_offset, markers.timestamp_ms, markers.coordinator_epoch)
    )
    ending: Ending = "COMMIT" if markers.is_commit[number] else "ABORT"
    return Marker(record_offset, or_none(timestamp_ms), ending, None if coordinator_epoch == NO_EPOCH else coordinator_epoch)
