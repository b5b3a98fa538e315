"""Read logs once for several collectors: each takes every batch and every record, in the order of the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol

from exhume.codecs.columns.blocks import Block, Scratch, blocks_of
from exhume.codecs.columns.record_blocks import RecordBlock, records_of
from exhume.codecs.log_directory import PartitionDirectory, SegmentFile
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
