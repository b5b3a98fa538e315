"""What a segment holds, counted: the rows of `schemas.SEGMENTS`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from exhume.codecs.log_directory import PartitionDirectory, SegmentFile
from exhume.codecs.records import Record
from exhume.codecs.records_table import codec_name
from exhume.codecs.salvage import Hole
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader
from exhume.findings import Finding


@dataclass(slots=True)
class SegmentSpan:
    """Counts over a run of batches."""

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

    def add_batch(self, found: SegmentBatch, records: Sequence[Record], first: int) -> None:
        """Count this batch, which has these records and begins with the record offset `first`."""
        batch = found.batch
        self.batch_count += 1
        self.record_count += len(records)
        self.add_offset(first, batch.last_offset)
        self.magics.add(batch.magic)
        self.codecs.add(codec_name(batch.codec))
        for record in records:
            self.add_time(record.timestamp_ms)
            self.tombstone_count += record.value is None
        if found.found.crc_status in ("mismatch", "unreadable"):
            self.damaged_bytes += batch.size_bytes

    def add_hole(self, hole: Hole) -> None:
        """Count these bytes as damaged, unless they are the zeros of a preallocated file."""
        if hole.reason != "zero_tail":
            self.damaged_bytes += hole.size_bytes

    def columns(self) -> dict[str, Any]:
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


def first_offset_of(found: SegmentBatch, records: Sequence[Record]) -> int:
    """The record offset that this batch begins with; of a wrapper of formats 0 and 1 the least of its records."""
    batch = found.batch
    if batch.base_offset is not None:
        return batch.base_offset
    return min((record.record_offset for record in records), default=batch.last_offset)


def span_of(reader: SegmentReader, partition: PartitionDirectory, segment: SegmentFile, behind: int | None) -> SegmentSpan:
    """What one segment holds; findings go to the reader."""
    span = SegmentSpan()
    for item in reader.items(partition, segment, behind):
        if isinstance(item, Hole):
            span.add_hole(item)
        else:
            records = item.records()
            span.add_batch(item, records, first_offset_of(item, records))
    return span


def segment_rows(
    partitions: Iterable[PartitionDirectory], spans: Mapping[int, SegmentSpan], findings: Iterable[Finding]
) -> Iterator[dict[str, Any]]:
    """A row for each segment file, leftovers among them; `spans` has those that were read, by the `id` of the segment."""
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
                **(span.columns() if span else {}),
                "magics": sorted(span.magics) if span else None,
                "codecs": sorted(span.codecs) if span else None,
                "damage": ", ".join(damage[segment.path]) if damage.get(segment.path) else None,
            }
