"""Collect from a pass the records that a filter accepts, as Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from exhume.arrow_rows import Origin
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.columns.record_columns import record_table
from exhume.codecs.columns.selection import Selection
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.log_pass import LogCollector
from exhume.codecs.record_filter import RecordFilter


class SelectedRecords(LogCollector):
    """Collect the wanted records of all logs, as rows of `schemas.RECORDS`.

    Attributes:
        tables: the records in the order of the logs.
    """

    def __init__(self, wanted: RecordFilter) -> None:
        self.tables: list[pa.RecordBatch] = []
        self._wanted, self._selection = wanted, Selection(wanted)

    def of(self, partition: PartitionDirectory) -> Iterable[LogCollector]:
        """Return this collector if the filter accepts the offsets partition."""
        numbers = self._wanted.offsets_partitions
        return [self] if numbers is None or partition.offsets_partition in numbers else []

    def add_records(self, block: RecordBlock) -> None:
        selected = self._selection.of(block)
        if len(selected):
            self.tables.append(record_table(selected))


class RecordTimes:
    """Collect the time of one record of each of these logs, by its record offset."""

    def __init__(self, record_offsets: Mapping[Origin, int]) -> None:
        self._by_log = {
            origin: SelectedRecords(RecordFilter(from_offset=record_offset, to_offset=record_offset))
            for origin, record_offset in record_offsets.items()
        }

    def of(self, partition: PartitionDirectory) -> Iterable[LogCollector]:
        """Return the collector for the log in this directory; none if no record of it is wanted."""
        origin = (partition.replica, partition.offsets_partition)
        return [self._by_log[origin]] if origin in self._by_log else []

    def by_log(self) -> dict[Origin, int | None]:
        """Return the times by replica and offsets partition; None if there is no such record, or if it has no time."""
        return {origin: _last_time(found.tables) for origin, found in self._by_log.items()}


def _last_time(tables: Sequence[pa.RecordBatch]) -> int | None:
    return tables[-1]["timestamp_ms"][-1].as_py() if tables else None
