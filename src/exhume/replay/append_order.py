"""Collect the order of append times in each log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from exhume.arrow_rows import Origin
from exhume.codecs.columns.pieces import Piece
from exhume.codecs.columns.runs import Run
from exhume.codecs.kernels import records as fields
from exhume.codecs.kernels.types import Int64s
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.log_pass import LogCollector
from exhume.codecs.records import Record
from exhume.codecs.segment_reader import SegmentBatch
from exhume.replay.moment import ClockOrder


class AppendOrders:
    """Collect the order of append times in each log, and its first record later than this time.

    Records before the log start count here; a load leaves them out.

    Attributes:
        by_log: the order of each log with a batch, by replica and offsets partition.
    """

    def __init__(self, time_ms: int) -> None:
        self.by_log: dict[Origin, ClockOrder] = {}
        self._time_ms = time_ms

    def of(self, partition: PartitionDirectory) -> Iterable[LogCollector]:
        """Return the reader for the log in this directory."""
        return [_OrderReader(self.by_log, (partition.replica, partition.offsets_partition), self._time_ms)]


class _OrderReader(LogCollector):
    def __init__(self, by_log: dict[Origin, ClockOrder], origin: Origin, time_ms: int) -> None:
        self._by_log, self._origin, self._time_ms = by_log, origin, time_ms

    def add_batch(self, found: SegmentBatch) -> None:  # noqa: ARG002
        self._by_log.setdefault(self._origin, ClockOrder())

    def add_run(self, run: Run) -> None:  # noqa: ARG002
        self._by_log.setdefault(self._origin, ClockOrder())

    def add_records(self, found: SegmentBatch, records: Sequence[Record]) -> None:  # noqa: ARG002
        order = self._by_log[self._origin]
        for record in records:
            order.take(record.record_offset, record.timestamp_ms, self._time_ms)

    def add_piece(self, piece: Piece) -> None:
        offsets, times = piece.records[fields.OFFSET], piece.records[fields.TIMESTAMP]
        has_time = times != fields.NO_TIMESTAMP
        order = self._by_log[self._origin]
        order.untimed += int((~has_time).sum())
        if has_time.any():
            _take_timed(order, offsets[has_time], times[has_time], self._time_ms)


def _take_timed(order: ClockOrder, record_offsets: Int64s, times: Int64s, moment_ms: int) -> None:
    """Add the next records with a time, at least one, in the order of the log."""
    order.timed += len(times)
    greatest = np.maximum.accumulate(np.append(times[0] if order.greatest_ms is None else order.greatest_ms, times))
    order.out_of_order += int((times < greatest[:-1]).sum())
    order.greatest_ms = int(greatest[-1])
    is_later = times > moment_ms
    if order.first_later is None and is_later.any():
        place = int(is_later.argmax())
        order.first_later = int(record_offsets[place]), int(times[place])
        is_later = is_later[place:]
    if order.first_later is not None:
        order.left_out += int((~is_later).sum())
