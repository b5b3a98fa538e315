"""Read logs once for several collectors: each takes every batch and every record, in the order of the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol

from exhume.codecs.columns.pieces import Piece, pieces_of
from exhume.codecs.columns.runs import Run, Scratch, runs_of
from exhume.codecs.log_directory import PartitionDirectory, SegmentFile
from exhume.codecs.records import Record
from exhume.codecs.salvage import Hole
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader


class LogCollector:
    """Takes the batches and the records of one log, or of one log after the other. It overrides the methods that it needs.

    Attributes:
        needs_records: False if the headers of batches are enough.
    """

    __slots__ = ()
    needs_records: ClassVar[bool] = True

    def add_hole(self, hole: Hole) -> None:
        """Take bytes that hold no batch."""

    def add_batch(self, found: SegmentBatch) -> None:
        """Take the header of a batch outside of runs; `add_records` takes its records."""

    def add_run(self, run: Run) -> None:
        """Take the headers of these batches; `add_piece` takes their records, and `add_records` those that no kernel reads."""

    def add_records(self, found: SegmentBatch, records: Sequence[Record]) -> None:
        """Take the records of one batch."""

    def add_piece(self, piece: Piece) -> None:
        """Take some records of the last run."""


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
    for item in runs_of(reader, partition, segment, next_base_offset, Scratch()):
        for collector in collectors:
            if isinstance(item, Hole):
                collector.add_hole(item)
            elif isinstance(item, Run):
                collector.add_run(item)
            else:
                collector.add_batch(item)
        if of_records and not isinstance(item, Hole):
            _collect_records(item, of_records)


def _collect_records(item: Run | SegmentBatch, collectors: Sequence[LogCollector]) -> None:
    for found in pieces_of(item) if isinstance(item, Run) else (item,):
        if isinstance(found, Piece):
            for collector in collectors:
                collector.add_piece(found)
        else:
            records = found.records()
            for collector in collectors:
                collector.add_records(found, records)
