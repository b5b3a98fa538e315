"""Count the content of a segment: the rows of `schemas.SEGMENTS`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from exhume.codecs.columns.blocks import Block
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.compression import codec_name
from exhume.codecs.kernels import records as fields
from exhume.codecs.kernels import scan
from exhume.codecs.log_directory import PartitionDirectory, SegmentFile
from exhume.codecs.log_pass import LogCollector, collect_segment
from exhume.codecs.salvage import Hole
from exhume.codecs.schemas import SegmentRow
from exhume.codecs.segment_reader import SegmentReader
from exhume.findings import Finding


class SpanColumns(TypedDict):
    """The counts of a span, as columns of `SEGMENTS` and of `inspection.PARTITIONS`."""

    batch_count: int
    record_count: int
    tombstone_count: int
    first_offset: int | None
    last_offset: int | None
    min_timestamp_ms: int | None
    max_timestamp_ms: int | None
    damaged_bytes: int


@dataclass(slots=True)
class SegmentSpan(LogCollector):
    """Counts over some batches."""

    batch_count: int = 0
    record_count: int = 0
    tombstone_count: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    min_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None
    magics: set[int] = field(default_factory=set)
    codecs: set[str] = field(default_factory=set)
    damaged_bytes: int = 0

    def add_offset(self, first: int, last: int) -> None:
        """Count offsets from `first` to `last`."""
        self.first_offset = first if self.first_offset is None else min(self.first_offset, first)
        self.last_offset = last if self.last_offset is None else max(self.last_offset, last)

    def add_time(self, timestamp_ms: int | None) -> None:
        if timestamp_ms is not None:
            self.min_timestamp_ms = timestamp_ms if self.min_timestamp_ms is None else min(self.min_timestamp_ms, timestamp_ms)
            self.max_timestamp_ms = timestamp_ms if self.max_timestamp_ms is None else max(self.max_timestamp_ms, timestamp_ms)

    def add_block(self, block: Block) -> None:
        self.batch_count += len(block)
        self.add_offset(int(block.first_offsets().min()), int(block.columns[scan.LAST_OFFSET].max()))
        self.magics.update(block.columns[scan.MAGIC].tolist())
        self.codecs.update(codec_name(codec) for codec in set((block.columns[scan.ATTRIBUTES] & scan.CODEC).tolist()))
        self.damaged_bytes += sum(each.found.batch.size_bytes for each in block.careful or () if each.found.is_damaged)

    def add_records(self, block: RecordBlock) -> None:
        self.record_count += len(block)
        self.tombstone_count += int((block.records[fields.VALUE_SIZE] < 0).sum())
        times = block.records[fields.TIMESTAMP]
        times = times[times != fields.NO_TIMESTAMP]
        if len(times):
            self.add_time(int(times.min()))
            self.add_time(int(times.max()))

    def add_hole(self, hole: Hole) -> None:
        """Count these bytes as damaged, unless they are the zeros of a preallocated file."""
        if hole.is_damage:
            self.damaged_bytes += hole.size_bytes

    def columns(self) -> SpanColumns:
        return {
            "batch_count": self.batch_count,
            "record_count": self.record_count,
            "tombstone_count": self.tombstone_count,
            "first_offset": self.first_offset,
            "last_offset": self.last_offset,
            "min_timestamp_ms": self.min_timestamp_ms,
            "max_timestamp_ms": self.max_timestamp_ms,
            "damaged_bytes": self.damaged_bytes,
        }


def span_of(reader: SegmentReader, partition: PartitionDirectory, segment: SegmentFile, next_base_offset: int | None) -> SegmentSpan:
    """Count one segment; findings go to the reader."""
    span = SegmentSpan()
    collect_segment(reader, partition, segment, next_base_offset, [span])
    return span


def segment_rows(
    partitions: Iterable[PartitionDirectory], spans: Mapping[int, SegmentSpan], findings: Iterable[Finding]
) -> Iterator[SegmentRow]:
    """A row for each segment file, also for leftovers; `spans` has the segments that were read, by their `id`."""
    damage: dict[str | None, list[str]] = {}
    for finding in findings:
        if finding.is_damage and finding.code not in damage.setdefault(finding.path, []):
            damage[finding.path].append(finding.code)
    for partition in partitions:
        for segment in partition.segments:
            span = spans.get(id(segment))
            yield {
                "replica": partition.replica,
                "offsets_partition": partition.offsets_partition,
                "path": segment.path,
                "origin": segment.origin,
                "is_read": segment.is_read,
                "base_offset": segment.base_offset,
                "size_bytes": segment.size_bytes,
                "batch_count": span.batch_count if span else None,
                "record_count": span.record_count if span else None,
                "first_offset": span.first_offset if span else None,
                "last_offset": span.last_offset if span else None,
                "min_timestamp_ms": span.min_timestamp_ms if span else None,
                "max_timestamp_ms": span.max_timestamp_ms if span else None,
                "damaged_bytes": span.damaged_bytes if span else None,
                "magics": sorted(span.magics) if span else None,
                "codecs": sorted(span.codecs) if span else None,
                "damage": ", ".join(damage[segment.path]) if damage.get(segment.path) else None,
            }
