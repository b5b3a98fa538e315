"""Collect the order of append times in each log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from exhume.arrow_rows import Origin
from exhume.codecs.columns.pieces import Piece
from exhume.codecs.columns.runs import Run
from exhume.codecs.kernels import records as fields
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.log_pass import LogCollector
from exhume.codecs.records import Record
from exhume.codecs.segment_reader import SegmentBatch
from exhume.replay.clock_counts import ClockCounts
from exhume.replay.moment import ClockOrder


class AppendOrders:
    """Collect the order of append times in each log, and its first record later than this time.

    Records before the log start count here; a load leaves them out.
    """

    def __init__(self, time_ms: int) -> None:
        self._counts: dict[Origin, ClockCounts] = {}
        self._time_ms = time_ms

    @property
    def by_log(self) -> Mapping[Origin, ClockOrder]:
        """The order of each log with a batch, by replica and offsets partition."""
        return {origin: counts.order() for origin, counts in self._counts.items()}

    def of(self, partition: PartitionDirectory) -> Iterable[LogCollector]:
        """Return the reader for the log in this directory."""
        return [_OrderReader(self._counts, (partition.replica, partition.offsets_partition), self._time_ms)]


class _OrderReader(LogCollector):
    def __init__(self, counts: dict[Origin, ClockCounts], origin: Origin, time_ms: int) -> None:
        self._counts, self._origin, self._time_ms = counts, origin, time_ms

    def add_batch(self, found: SegmentBatch) -> None:  # noqa: ARG002
        self._begin()

    def add_run(self, run: Run) -> None:  # noqa: ARG002
        self._begin()

    def _begin(self) -> None:
        if self._origin not in self._counts:
            self._counts[self._origin] = ClockCounts.of([self._time_ms])

    def add_records(self, found: SegmentBatch, records: Sequence[Record]) -> None:  # noqa: ARG002
        self._counts[self._origin].take([each.record_offset for each in records], [each.timestamp_ms for each in records])

    def add_piece(self, piece: Piece) -> None:
        self._counts[self._origin].take_columns(piece.records[fields.OFFSET], piece.records[fields.TIMESTAMP])
