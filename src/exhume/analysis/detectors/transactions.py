"""Open transactions at the end of a log, and end markers of earlier transaction coordinators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.detectors.commits import Dropped
from exhume.analysis.end_markers import NO_EPOCH, Ending, EndMarkers
from exhume.analysis.number_columns import Int64s, or_none, rows_where
from exhume.analysis.transaction_outcomes import TransactionReader, staged
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.record_chunks import RecordChunk

#: The largest number of late markers that are kept, the first ones.
_MOST_LATE = 200
_COLUMNS = ["is_transactional", "path", "byte_position", "record_offset", "timestamp_ms", "producer_id", "producer_epoch"]
_NO_MARKERS = EndMarkers.joined([])


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
