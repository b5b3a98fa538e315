"""Collect the order of append times in each log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from exhume.arrow_rows import Origin
from exhume.codecs.columns.blocks import Block
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.kernels import records as fields
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.log_pass import LogCollector
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

    def add_block(self, block: Block) -> None:  # noqa: ARG002
        if self._origin not in self._counts:
            self._counts[self._origin] = ClockCounts.of([self._time_ms])

    def add_records(self, block: RecordBlock) -> None:
        self._counts[self._origin].take_columns(block.records[fields.OFFSET], block.records[fields.TIMESTAMP])
