"""Tallies of one log, chunk by chunk: open transactions and late markers, records that cannot be decoded, superseded bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.detectors.commits import Dropped
from exhume.analysis.growth import CleanerProgress
from exhume.analysis.growth_tally import reach_of
from exhume.analysis.number_columns import NONE, Int64s, numbers_of, or_none, rows_where
from exhume.analysis.transaction_outcomes import NO_EPOCH, Ending, EndMarkers, TransactionReader, staged
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.record_chunks import RecordChunk
from exhume.codecs.record_types import RECORD_TYPES, decode_record

#: The largest number of late markers that are kept, the first ones.
_MOST_LATE = 200
_COLUMNS = ["is_transactional", "path", "byte_position", "record_offset", "timestamp_ms", "producer_id", "producer_epoch"]
_NO_MARKERS = EndMarkers.joined([])
#: Marks of records that a reader decodes whole.
_HARMLESS = frozenset({"early_layout"})
_SAMPLE_BYTES = 64
_COMMIT_COLUMNS = ["record_offset", "timestamp_ms", "record_type", "value_version", "marks", "raw_key", "raw_value"]
_OTHER_COLUMNS = ["record_offset", "timestamp_ms", "key", "value"]
_VERSION_BYTES = 2
_MOST_DIRTY, _LEAST_SEGMENTS = 0.5, 5


@dataclass(frozen=True, slots=True)
class LateMarker:
    """End marker of an earlier transaction coordinator: a marker of the same producer before it has a higher coordinator epoch."""

    record_offset: int
    timestamp_ms: int | None
    producer_id: int
    outcome: Ending
    coordinator_epoch: int
    #: The highest coordinator epoch before it, and the record offset of the first marker with that epoch.
    highest_epoch: int
    highest_since: int


@dataclass(frozen=True, slots=True)
class TransactionCase:
    """Transaction without an end marker.

    `last_timestamp_ms` is the greatest of its records, None if no record has a timestamp. `held_up_bytes` are the bytes from the batch of
    its first record to the end of the log.
    """

    producer_id: int
    producer_epoch: int
    first_record_offset: int
    held_up_bytes: int
    last_timestamp_ms: int | None
    #: The first commits of each key.
    staged: list[Dropped]


class ChunkTransactions:
    """Read the transactions and end markers of one log, chunk by chunk."""

    def __init__(self) -> None:
        self.marker_count = 0
        #: The markers of earlier transaction coordinators.
        self.late_markers: list[LateMarker] = []
        self._transactions = TransactionReader()
        self._markers: list[EndMarkers] = []
        #: The highest coordinator epoch of each producer, and the record offset of the first marker with it.
        self._highest: dict[int, tuple[int, int]] = {}

    def take(self, chunk: RecordChunk, first_place: int) -> None:
        """Add the next records; `first_place` is the place of the first one in the log."""
        commits, commit_places = chunk.commits, chunk.commit_rows + first_place
        others, other_places = chunk.others, chunk.other_rows + first_place
        markers = _NO_MARKERS
        if pc.any(others["is_control"]).as_py():
            markers = EndMarkers.of(*rows_where(others["is_control"], others, other_places))
            self._markers.append(markers)
            self.marker_count += len(markers)
            self._note_late(markers)
        if pc.any(others["is_transactional"]).as_py() and pc.any(staged(others)).as_py():
            commits, commit_places = _together(commits, commit_places, others, other_places)
        if len(markers) or pc.any(commits["is_transactional"]).as_py():
            self._transactions.take(commits, commit_places, markers)

    def taken_markers(self) -> EndMarkers:
        """Return the markers since the last call."""
        markers, self._markers = EndMarkers.joined(self._markers), []
        return markers

    def _note_late(self, markers: EndMarkers) -> None:
        columns = (markers.coordinator_epoch, markers.record_offset, markers.timestamp_ms, markers.producer_id, markers.is_commit)
        for epoch, offset, time, producer, is_commit in zip(*(column.tolist() for column in columns), strict=True):
            if epoch == NO_EPOCH:
                continue
            highest, first = self._highest.get(producer, (epoch - 1, offset))
            if epoch > highest:
                self._highest[producer] = epoch, offset
            elif epoch < highest and len(self.late_markers) < _MOST_LATE:
                ending: Ending = "COMMIT" if is_commit else "ABORT"
                self.late_markers.append(LateMarker(offset, or_none(time), producer, ending, epoch, highest, first))

    def open_transactions(self, dropped: Iterable[Dropped], directory: PartitionDirectory) -> list[TransactionCase]:
        """Return the open transactions by producer; `dropped` has the commits that are kept of them."""
        by_producer: defaultdict[int, list[Dropped]] = defaultdict(list)
        for each in dropped:
            if each.outcome == "open" and each.commit.producer_id is not None:
                by_producer[each.commit.producer_id].append(each)
        return [
            TransactionCase(
                producer_id=producer,
                producer_epoch=each.producer_epoch,
                first_record_offset=each.first_record_offset,
                held_up_bytes=each.held_up_bytes([directory]),
                last_timestamp_ms=each.last_timestamp_ms,
                staged=by_producer[producer],
            )
            for producer, each in sorted(self._transactions.open.items())
        ]


def _together(
    commits: pa.RecordBatch, commit_places: Int64s, others: pa.RecordBatch, other_places: Int64s
) -> tuple[pa.RecordBatch, Int64s]:
    """Join commits and other data records in the order of their places, with the columns of `TransactionReader`."""
    others, other_places = rows_where(staged(others), others, other_places)
    places = np.concatenate([commit_places, other_places])
    together = pa.Table.from_batches([table.select(_COLUMNS) for table in (commits, others)])
    order = np.argsort(places)
    return together.take(pa.array(order)).combine_chunks().to_batches()[0], places[order]


@dataclass(frozen=True, slots=True)
class UndecodableRecord:
    """Records of one type and value version with one mark of `record_types.MARKS`. The samples are those of the first, in hexadecimal."""

    record_type: int | None
    value_version: int | None
    mark: str
    count: int
    first_record_offset: int
    first_timestamp_ms: int | None
    key_sample: str | None
    value_sample: str | None


@dataclass(slots=True)
class UndecodableRecords:
    """Undecodable records, counted in one pass. Of group records, the first of each type and version is decoded to its end."""

    _found: dict[tuple[int | None, int | None, str], UndecodableRecord] = field(default_factory=dict)
    #: Types, and the first bytes of values, whose first record was decoded to its end.
    _decoded: set[tuple[int, bytes]] = field(default_factory=set)

    def take(self, commits: pa.RecordBatch, others: pa.RecordBatch) -> None:
        """Add commits of `schemas.decoded()["offset_commit"]`, and data records of other types, of `schemas.RECORDS`."""
        if has_marks(commits):
            is_marked = pc.greater(pc.list_value_length(commits["marks"]), 0)
            for row in commits.select(_COMMIT_COLUMNS).filter(is_marked).to_pylist():
                place = (row["record_type"], row["value_version"])
                self._add(place, row["marks"], row["record_offset"], row["timestamp_ms"], row["raw_key"], row["raw_value"])
        versions = pc.binary_slice(others["value"], 0, _VERSION_BYTES).to_pylist()
        for row, kind in enumerate(zip(others["record_type"].to_pylist(), versions, strict=True)):
            record_type, version = kind
            if kind in self._decoded or (record_type in RECORD_TYPES and version is None):
                continue
            offset, time_ms, key, value = (others[name][row].as_py() for name in _OTHER_COLUMNS)
            marks, number = decode_record(key, value).marks, None
            if version is not None and len(version) == _VERSION_BYTES:
                number = int.from_bytes(version, "big", signed=True)
                if not marks:
                    self._decoded.add(kind)
            self._add((record_type, number), marks, offset, time_ms, key, value)

    def _add(
        self, place: tuple[int | None, int | None], marks: list[str], offset: int, time_ms: int | None, *samples: bytes | None
    ) -> None:
        for mark in marks:
            if mark in _HARMLESS:
                continue
            known = self._found.get((*place, mark))
            if known is None:
                key, value = (None if sample is None else sample[:_SAMPLE_BYTES].hex() for sample in samples)
                self._found[*place, mark] = UndecodableRecord(*place, mark, 1, offset, time_ms, key, value)
            else:
                self._found[*place, mark] = replace(known, count=known.count + 1)

    def found(self) -> list[UndecodableRecord]:
        """Return the counts, in the order of the first record of each."""
        return [*self._found.values()]


def has_marks(commits: pa.RecordBatch) -> bool:
    """Return True if one of these commits (of `schemas.decoded()["offset_commit"]`) has a mark."""
    return len(commits["marks"].flatten()) > 0


def may_be_uncleaned(directory: PartitionDirectory) -> bool:
    """Return True if the files suggest that the cleaner makes no progress here."""
    closed = directory.read_segments[:-1]
    if directory.cleaner_offset is None:
        return len(closed) >= _LEAST_SEGMENTS
    dirty = sum(segment.size_bytes for segment in closed if segment.base_offset >= directory.cleaner_offset)
    return dirty > _MOST_DIRTY * sum(segment.size_bytes for segment in closed)


@dataclass(frozen=True, slots=True)
class Uncleaned:
    """The bytes of superseded records, and the newest time in the first dirty segment."""

    superseded_bytes: float
    first_dirty_timestamp_ms: int | None

    def row(self, directory: PartitionDirectory, open_transaction: int | None) -> CleanerProgress:
        """Return the columns of `growth.COMPACTION` that IC-03 needs. `open_transaction` is the first record of an open transaction."""
        reach = reach_of(directory, open_transaction)
        return {
            "size_bytes": reach.size_bytes,
            "superseded_bytes": round(self.superseded_bytes),
            "first_dirty_offset": reach.first_dirty,
            "first_dirty_timestamp_ms": self.first_dirty_timestamp_ms,
            "stopped_by": reach.stopped_by,
            "open_transaction_offset": reach.open_transaction,
        }


class SupersededBytes:
    """The total size of the data records of a log, and the size of the last record of each key."""

    def __init__(self, directory: PartitionDirectory) -> None:
        self._directory = directory
        self._reach = reach_of(directory, None)
        self._bytes = 0.0
        #: By key number and record type of the commit (0 or 1): for the cleaner these are different keys.
        self._last_commits = np.zeros(0)
        self._last_others: dict[bytes | None, float] = {}
        self._first_dirty_ms = NONE

    def take(self, chunk: RecordChunk, keys: Int64s) -> bool:
        """Add the next records. `keys` are the key numbers of its commits. Returns False if the sizes are not known for certain."""
        commits, others = chunk.commits, chunk.others
        is_known = len(keys) == commits.num_rows and not has_marks(commits)
        if chunk.partition is not self._directory or not is_known:
            return False
        of_commits, of_others = chunk.sizes()
        is_data = ~others["is_control"].to_numpy(zero_copy_only=False)
        self._bytes += float(of_commits.sum() + of_others[is_data].sum())
        self._last_others.update(zip(others["key"].filter(pa.array(is_data)).to_pylist(), of_others[is_data].tolist(), strict=True))
        if len(keys):
            slots = 2 * keys + numbers_of(commits["record_type"], 0)
            room = int(slots.max()) + 1
            if room > len(self._last_commits):
                self._last_commits = np.append(
                    self._last_commits, np.zeros(max(room, 2 * len(self._last_commits)) - len(self._last_commits))
                )
            # Of equal slots the last assignment wins.
            self._last_commits[slots] = of_commits
        for table in (commits, others):
            self._note_times(numbers_of(table["record_offset"], NONE), numbers_of(table["timestamp_ms"], NONE))
        return True

    def _note_times(self, offsets: Int64s, times: Int64s) -> None:
        is_first_dirty = (offsets >= self._reach.first_dirty) & (offsets < self._reach.first_dirty_end)
        if is_first_dirty.any():
            self._first_dirty_ms = max(self._first_dirty_ms, int(times[is_first_dirty].max()))

    def result(self) -> Uncleaned:
        """Return the superseded bytes of the records so far."""
        live = float(self._last_commits.sum()) + sum(self._last_others.values())
        return Uncleaned(self._bytes - live, None if self._first_dirty_ms == NONE else self._first_dirty_ms)
