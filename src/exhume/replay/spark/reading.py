"""Read the segments of a task as record batches of its kind, with the readers of local logs, one segment or part after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from exhume.arrow_rows import batch_of, batches_of
from exhume.codecs import schemas
from exhume.codecs.columns.tables import batch_tables, decoded_batches, dump_batches, record_batches
from exhume.codecs.log_directory import PartitionDirectory, SegmentFile
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.remote_volume import RemoteVolume
from exhume.codecs.segment_reader import SegmentReader
from exhume.codecs.segment_spans import segment_rows, span_of
from exhume.codecs.segment_windows import windows
from exhume.findings import Findings
from exhume.replay.spark.kinds import READS
from exhume.replay.spark.planning import Task, evidence_of
from exhume.replay.spark.source_options import SourceOptions


def read_task(task: Task, options: SourceOptions, wanted: RecordFilter) -> Iterator[pa.RecordBatch]:
    """The rows of this task. Damage never raises an error; for the kind `findings` it gives findings.

    Raises:
        EvidenceError: a file cannot be read: it was deleted, or the connection breaks.
    """
    findings = Findings(task.findings)
    for reader, partition, segment in _parts(task, findings):
        yield from _Reading(reader, partition, segment, options, wanted).batches()
    if options.kind == "findings":
        yield from findings.to_table().to_batches()


def readers_of(task: Task) -> Iterator[SegmentReader]:
    """Return a reader for each part of this task in the order of the log; use each one up before the next one."""
    return (reader for reader, _, _ in _parts(task, Findings(task.findings)))


def _parts(task: Task, findings: Findings) -> Iterator[tuple[SegmentReader, PartitionDirectory, SegmentFile]]:
    """Return for each part of this task: a reader, the directory of the segment, and the segment or the part of it to read."""
    for part in task.parts:
        segment = windows(part.segment, part.cuts)[part.part] if part.cuts else part.segment
        if segment is None:
            continue
        partition = replace(part.partition, segments=[segment if other is part.segment else other for other in part.partition.segments])
        reader = SegmentReader(evidence_of([partition]), task.read_options, findings, only_paths=frozenset([segment.path]))
        yield reader, partition, segment
        if isinstance(segment.volume, RemoteVolume):
            # Fetched segments take disk space, and a task reads each only once.
            segment.volume.close()


@dataclass(frozen=True, slots=True)
class _Reading:
    """One segment, or one part of it, read for one kind of rows."""

    reader: SegmentReader
    partition: PartitionDirectory
    segment: SegmentFile
    options: SourceOptions
    wanted: RecordFilter

    def batches(self) -> Iterator[pa.RecordBatch]:
        return self._counted() if self.options.kind == "reads" else self._rows()

    def _rows(self) -> Iterator[pa.RecordBatch]:
        match self.options.of:
            case "records":
                return record_batches(self.reader, self.wanted)
            case "dump":
                return dump_batches(self.reader, self.wanted, raw=self.options.raw)
            case "batches":
                return batch_tables(self.reader)
            case "segments":
                return self._segments()
            case "findings":
                # Read every record for its findings; the rows are not needed.
                return (batch.slice(0, 0) for batch in record_batches(self.reader, RecordFilter()))
            case name:
                return decoded_batches(name, self.reader, self.wanted)

    def _segments(self) -> Iterator[pa.RecordBatch]:
        spans = {
            id(segment): span_of(self.reader, partition, segment, next_base) for partition, segment, next_base in self.reader.segments()
        }
        only = replace(self.partition, segments=[self.segment])
        yield from batches_of(schemas.SEGMENTS, segment_rows([only], spans, self.reader.findings))

    def _counted(self) -> Iterator[pa.RecordBatch]:
        volume, window = self.segment.volume, self.segment.window
        row_count = sum(batch.num_rows for batch in self._rows())
        start = window.batch_before_at or 0 if window else 0
        row = {
            "replica": self.partition.replica,
            "offsets_partition": self.partition.offsets_partition,
            "path": self.segment.path,
            "base_offset": self.segment.base_offset,
            "from_byte_position": start,
            "size_bytes": (window.end if window else self.segment.size_bytes) - start,
            "fetched_bytes": volume.take_fetched_bytes() if isinstance(volume, RemoteVolume) else 0,
            "row_count": row_count,
        }
        yield batch_of(READS, [row])
