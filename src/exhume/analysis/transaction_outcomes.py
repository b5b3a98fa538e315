"""The transactions of a log, open and ended, as the log layer of a broker counts them.

A transaction begins with its first record and ends with the next end marker of its producer in the order of the log. That marker ends all
transactional records that the producer wrote before it. The order of record offsets does not count. Epochs do not count either: a marker
has the epoch of the records or the next epoch. If a marker is lost, the next marker ends the records of both transactions.

The records of a transaction are those of batches with the transactional bit and a producer id. The last stable offset, the cleaner and
`read_committed` use the same rule. The coordinators of some releases have other rules, which `replay` has.

(Source: ProducerAppendInfo, ProducerStateManager, UnifiedLog, GroupMetadataManager and CoordinatorLoaderImpl of Kafka 3.8.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.number_columns import NONE, Int64s, flags_of, numbers_of, or_none
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.record_types import ABORT, COMMIT, decode_control_record, encode_control_record
from exhume.durations import DEFAULT_MAX_TIMEOUT_MS
from exhume.int64 import LARGEST_INT64

#: The outcome of a transaction.
Ending = Literal["COMMIT", "ABORT"]

#: Stands for a coordinator epoch that cannot be decoded; no epoch of 32 bits has this value.
NO_EPOCH = -(1 << 40)

_IS_COMMIT: Mapping[Ending | None, int] = {"COMMIT": 1, "ABORT": 0, None: NONE}
_COMMIT_KEY = encode_control_record(COMMIT, {"coordinator_epoch": 0})[0]
#: The time that brokers add to it for the metric PartitionsWithLateTransactionsCount (KIP-664).
_LATE_PADDING_MS = 5 * 60_000


@lru_cache(maxsize=256)
def ending_of(key: bytes | None, *, every_type_ends: bool = False) -> Ending | None:
    """Return how the control record with this key ends a transaction; None if it ends none, or the key cannot be decoded.

    `every_type_ends` is the rule of the Scala coordinator: each type except COMMIT is an ABORT. The other readers ignore unknown types.
    """
    control = decode_control_record(key, None)
    if key is None or control.errors or control.key["version"] < 0:
        return None
    if control.number == COMMIT:
        return "COMMIT"
    return "ABORT" if control.number == ABORT or every_type_ends else None


@dataclass(frozen=True, slots=True)
class EndMarkers:
    """End markers in columns.

    `place` is the place in the log: a record or marker with a higher place comes later. -1 stands for no producer and for no time,
    `NO_EPOCH` for an epoch that cannot be decoded.
    """

    place: Int64s
    producer_id: Int64s
    record_offset: Int64s
    timestamp_ms: Int64s
    is_commit: Int64s
    coordinator_epoch: Int64s

    def __len__(self) -> int:
        return len(self.place)

    def ended(self, producers: Int64s, places: Int64s) -> Int64s:
        """Return the number of the marker that ended each of these records, as `ended_by` does."""
        return ended_by(producers, places, self.producer_id, self.place)

    @classmethod
    def of(cls, controls: pa.RecordBatch, places: Int64s, *, every_type_ends: bool = False) -> EndMarkers:
        """Return the markers among these control records, which are rows of `schemas.RECORDS`; `every_type_ends` as in `ending_of`."""
        is_commit = _of_each(controls["key"], lambda key: _IS_COMMIT[ending_of(key, every_type_ends=every_type_ends)])
        is_end = is_commit != NONE
        if not is_end.all():
            controls, places, is_commit = controls.filter(pa.array(is_end)), places[is_end], is_commit[is_end]
        producers, offsets, times = (numbers_of(controls[name]) for name in ("producer_id", "record_offset", "timestamp_ms"))
        epochs = _of_each(controls["value"], _coordinator_epoch)
        if every_type_ends:
            # The value of an unknown type has no known format.
            epochs[_of_each(controls["key"], lambda key: _IS_COMMIT[ending_of(key)]) == NONE] = NO_EPOCH
        return cls(places, producers, offsets, times, is_commit, epochs)

    @classmethod
    def joined(cls, parts: Sequence[EndMarkers]) -> EndMarkers:
        """Join the markers of these parts of a log, part after part."""
        names, none = [each.name for each in fields(cls)], np.empty(0, np.int64)
        return cls(*(np.concatenate([none, *(getattr(part, name) for part in parts)]) for name in names))


def ended_by(producers: Int64s, places: Int64s, marker_producers: Int64s, marker_places: Int64s) -> Int64s:
    """Return the number of the marker that ended each of these transactional records; -1 if no marker ended it.

    `producers` and `places` are of the records. No record has the place of a marker.
    """
    count = len(marker_places)
    if not count or not len(places):
        return np.full(len(places), NONE, np.int64)
    by_place = np.argsort(marker_places, kind="stable")
    known = np.unique(marker_producers)
    # One number joins the producer and the rank of a marker. The wanted marker is the first one of the producer after the record.
    ranked = np.searchsorted(known, marker_producers[by_place]) * (count + 1) + np.arange(count)
    order = np.argsort(ranked, kind="stable")
    wanted = np.searchsorted(known, producers) * (count + 1) + np.searchsorted(marker_places[by_place], places)
    at = np.searchsorted(ranked[order], wanted)
    found = by_place[order[np.minimum(at, count - 1)]]
    ending: Int64s = np.where((at < count) & (marker_producers[found] == producers), found, NONE)
    return ending


def _of_each(column: pa.Array, number: Callable[[bytes | None], int]) -> Int64s:
    """Return the number of each value; the column has few different values."""
    found = column.dictionary_encode(null_encoding="encode")
    numbers: Int64s = np.array([number(value) for value in found.dictionary.to_pylist()], np.int64)[numbers_of(found.indices)]
    return numbers


def _coordinator_epoch(value: bytes | None) -> int:
    epoch = (decode_control_record(_COMMIT_KEY, value).value or {}).get("coordinator_epoch")
    return epoch if isinstance(epoch, int) else NO_EPOCH


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
