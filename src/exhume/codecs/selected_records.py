"""Collect from a pass the records that a filter accepts, as Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from exhume.arrow_rows import batches_of
from exhume.codecs import schemas
from exhume.codecs.columns.arrow import ROWS
from exhume.codecs.columns.pieces import Piece
from exhume.codecs.columns.record_columns import record_table
from exhume.codecs.columns.selection import Selection
from exhume.codecs.log_directory import PartitionDirectory
from exhume.codecs.log_pass import LogCollector
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.records import Record
from exhume.codecs.records_table import rows_of
from exhume.codecs.schemas import RecordRow
from exhume.codecs.segment_reader import SegmentBatch


class SelectedRecords(LogCollector):
    """Collect the wanted records of all logs, as rows of `schemas.RECORDS`."""

    def __init__(self, wanted: RecordFilter) -> None:
        self._wanted, self._selection = wanted, Selection(wanted)
        self._tables: list[pa.RecordBatch] = []
        #: The rows after the last table.
        self._rows: list[RecordRow] = []

    def of(self, partition: PartitionDirectory) -> Iterable[LogCollector]:
        """Return this collector if the filter accepts the offsets partition."""
        numbers = self._wanted.offsets_partitions
        return [self] if numbers is None or partition.offsets_partition in numbers else []

    def add_records(self, found: SegmentBatch, records: Sequence[Record]) -> None:
        self._rows += rows_of(found, records, self._wanted)
        if len(self._rows) >= ROWS:
            self._end_rows()

    def add_piece(self, piece: Piece) -> None:
        self._end_rows()
        selected = self._selection.of(piece)
        if len(selected):
            self._tables.append(record_table(selected))

    def tables(self) -> list[pa.RecordBatch]:
        """Return the records in the order of the logs."""
        self._end_rows()
        return self._tables

    def _end_rows(self) -> None:
        self._tables += batches_of(schemas.RECORDS, self._rows)
        self._rows = []
