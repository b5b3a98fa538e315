"""Read logs once for several collectors: each takes every batch and every record, in the order of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Protocol

import pyarrow as pa

from exhume.arrow_rows import Origin
from exhume.codecs.columns.blocks import Block, Scratch, blocks_of
from exhume.codecs.columns.following import Following
from exhume.codecs.columns.record_blocks import RecordBlock, records_of
from exhume.codecs.columns.record_columns import record_table
from exhume.codecs.columns.selection import Selection
from exhume.codecs.log_directory import PartitionDirectory, SegmentFile
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.salvage import Hole
from exhume.codecs.segment_reader import SegmentReader


class LogCollector:
    """Takes the batches and the records of one log, or of one log after the other. It overrides the methods that it needs.

    Attributes:
        needs_records: False if the headers of batches are enough.
    """

    __slots__ = ()
    needs_records: ClassVar[bool] = True

    def add_hole(self, hole: Hole) -> None:
        """Take bytes that hold no batch."""

    def add_block(self, block: Block) -> None:
        """Take the headers of these batches; `add_records` takes their records."""

    def add_records(self, block: RecordBlock) -> None:
        """Take some records of the last block. There are none if the careful reader could read no record of a batch."""


class Collector(Protocol):
    """Collects from all logs of a pass."""

    def of(self, partition: PartitionDirectory) -> Iterable[LogCollector]:
        """Return the collectors for the log in this directory; none if that log is not needed."""
        ...


def collect(reader: SegmentReader, collectors: Iterable[Collector]) -> None:
    """Read each segment of this reader once, for all of these collectors."""
    collectors = [*collectors]
    for partition, segment, next_base_offset in reader.segments():
        own = [each for collector in collectors for each in collector.of(partition)]
        if own:
            collect_segment(reader, partition, segment, next_base_offset, own)
        else:
            reader.finish(segment)


def collect_segment(
    reader: SegmentReader,
    partition: PartitionDirectory,
    segment: SegmentFile,
    next_base_offset: int | None,
    collectors: Sequence[LogCollector],
) -> None:
    """Give the items of one segment to all of these collectors, in the order of the file; findings go to the reader."""
    of_records = [collector for collector in collectors if collector.needs_records]
    for item in blocks_of(reader, partition, segment, next_base_offset, Scratch(), with_records=bool(of_records)):
        for collector in collectors:
            if isinstance(item, Hole):
                collector.add_hole(item)
            else:
                collector.add_block(item)
        for found in records_of(item) if of_records and not isinstance(item, Hole) else ():
            for collector in of_records:
                collector.add_records(found)


class Beside:
    """Let these collectors take batches and records on the thread of `following`; wait for it before you use their results.

    They must add no finding, because findings have an order.
    """

    def __init__(self, following: Following, collectors: Iterable[Collector]) -> None:
        self._following, self._collectors = following, [*collectors]

    def of(self, partition: PartitionDirectory) -> Iterable[LogCollector]:
        """Return a collector for the log in this directory; none if it is not needed."""
        own = [each for collector in self._collectors for each in collector.of(partition)]
        return [_LogBeside(self._following, own)] if own else []


class _LogBeside(LogCollector):
    __slots__ = ("_block", "_copy", "_following", "_own")

    def __init__(self, following: Following, own: Sequence[LogCollector]) -> None:
        self._following, self._own = following, own
        self._block: Block | None = None
        self._copy: Block | None = None

    def add_hole(self, hole: Hole) -> None:
        self._do(lambda each: each.add_hole(hole))

    def add_block(self, block: Block) -> None:
        # A kernel fills the rows again while the other thread reads them.
        copy = replace(block, rows=block.rows.copy(), columns=block.columns.copy())
        self._block, self._copy = block, copy
        self._do(lambda each: each.add_block(copy))

    def add_records(self, block: RecordBlock) -> None:
        if self._copy is not None and block.batches is self._block:
            block = replace(block, batches=self._copy)
        self._do(lambda each: each.add_records(block))

    def _do(self, give: Callable[[LogCollector], None]) -> None:
        def give_all() -> None:
            for each in self._own:
                give(each)

        self._following.do(give_all)


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
