"""Collect from a pass the records that a filter accepts, as Arrow."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

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
