"""Read segments in one pass: every batch and record that can be found, and findings about damage."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace

from exhume.codecs.batches import Batch, CrcStatus, read_header_fields
from exhume.codecs.compression import DEFAULT_CAP_BYTES
from exhume.codecs.damage import Context, DamageReport
from exhume.codecs.file_content import looks_like
from exhume.codecs.lenient_records import read_records_leniently
from exhume.codecs.log_directory import Evidence, PartitionDirectory, SegmentFile
from exhume.codecs.records import Record
from exhume.codecs.salvage import Found, Grade, Hole, salvage
from exhume.codecs.schemas import InFile
from exhume.codecs.wire import Buffer
from exhume.findings import Finding, Findings

#: Called repeatedly with the number of bytes read, and the number of all bytes.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of reading: with or without checksums, the cap for one compressed batch, and the function that takes the progress."""

    verify: bool = True
    cap_bytes: int = DEFAULT_CAP_BYTES
    progress: Progress | None = None
    #: Logs of fewer bytes are loaded record by record.
    least_compiled_bytes: int = 0
    #: The number of threads; None: one for each core of this process.
    threads: int | None = None

    def of_fold(self, *, verify: bool) -> ReadOptions:
        """Return the options for a fold, which holds whole batches: a cap up to the default; `verify` if the load always verifies."""
        return replace(self, verify=self.verify or verify, cap_bytes=min(self.cap_bytes, DEFAULT_CAP_BYTES))

    @property
    def most_threads(self) -> int:
        """The number of threads."""
        return self.threads or _cores()


def _cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(slots=True)
class SegmentBatch:
    """A batch of a segment, and on request its records."""

    partition: PartitionDirectory
    segment: SegmentFile
    buffer: Buffer
    found: Found
    _report: DamageReport
    _findings: Findings
    _cap_bytes: int

    @property
    def batch(self) -> Batch:
        return self.found.batch

    @property
    def origin(self) -> InFile:
        """Replica, offsets partition and path of this batch, as columns."""
        return {
            "replica": self.partition.replica,
            "offsets_partition": self.partition.offsets_partition,
            "path": self.segment.path,
        }

    @property
    def is_damaged(self) -> bool:
        """Return True if its checksum is wrong or its end is cut off."""
        return self.found.crc_status in ("mismatch", "unreadable")

    def later_records(self) -> Callable[[], list[Record]]:
        """Return a function that reads its records without findings, also after the segment is closed."""
        content = bytes(self.buffer[self.batch.byte_position : self.batch.end_position])
        batch, cap_bytes = replace(self.batch, byte_position=0), self._cap_bytes
        return lambda: read_records_leniently(content, batch, cap_bytes=cap_bytes)[0]

    def records(self) -> list[Record]:
        """The records that can be read; adds findings for those that cannot."""
        records, problems = read_records_leniently(self.buffer, self.batch, cap_bytes=self._cap_bytes)
        if self.found.crc_status != "unreadable":
            self._findings.extend(self._report.problem_findings(self.batch, problems))
        return records


@dataclass(slots=True)
class SegmentReader:
    """One pass over the segments of the evidence that are part of the answer, in order. Findings grow as it goes."""

    evidence: Evidence
    options: ReadOptions
    findings: Findings
    #: The paths of the only segments to read; None: all.
    only_paths: Collection[str] | None = None
    _done_bytes: int = field(default=0, init=False)
    #: The bytes of all segments that are read.
    total_bytes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.total_bytes = sum(segment.size_bytes for _, segment, _ in self.segments())

    def segments(self, offsets_partitions: Collection[int] | None = None) -> Iterator[tuple[PartitionDirectory, SegmentFile, int | None]]:
        """Yield every segment that is read, with its partition and the base offset of the next segment.

        `offsets_partitions`: only these; None: all.
        """
        for partition in self.evidence.partitions:
            if offsets_partitions is not None and partition.offsets_partition not in offsets_partitions:
                continue
            read = partition.read_segments
            for index, segment in enumerate(read):
                if self.only_paths is not None and segment.path not in self.only_paths:
                    continue
                later_logs = (later.base_offset for later in read[index + 1 :] if later.origin == "log")
                # Leftovers overlap with the log that replaced them.
                following = next((base for base in later_logs if base > segment.base_offset), None) if segment.origin == "log" else None
                yield partition, segment, following

    def batches(self) -> Iterator[SegmentBatch]:
        """Yield every batch as the careful reader finds it."""
        for partition, segment, following in self.segments():
            with segment.open() as buffer:
                for item in self.items(partition, segment, buffer, following):
                    if isinstance(item, SegmentBatch):
                        yield item
            self.finish(segment)

    def items(
        self,
        partition: PartitionDirectory,
        segment: SegmentFile,
        buffer: memoryview,
        next_base_offset: int | None,
        *,
        batch_before_at: int | None = None,
    ) -> Iterator[SegmentBatch | Hole]:
        """Yield the batches and holes of one segment or of its window, whose content is `buffer`.

        `batch_before_at`: begin after the batch at this position; it and all batches before it are sound and in order.
        """
        if batch_before_at is None and segment.window is not None:
            batch_before_at = segment.window.batch_before_at
        report = _report(partition, segment, next_base_offset)
        self._note_stranger(partition, segment, buffer)
        found_or_hole = salvage(
            buffer,
            position=batch_before_at or 0,
            base_offset=segment.base_offset,
            next_base_offset=next_base_offset,
            verify_crc=self.options.verify,
        )
        for item in found_or_hole:
            self.findings.extend(report.findings(item))
            if isinstance(item, Hole):
                yield item
            elif item.batch.byte_position != batch_before_at:
                yield SegmentBatch(partition, segment, buffer, item, report, self.findings, self.options.cap_bytes)
            self.advance(item.end_position)

    def sound_batch(
        self, partition: PartitionDirectory, segment: SegmentFile, buffer: Buffer, position: int, findings: Findings | None = None
    ) -> SegmentBatch:
        """Return the batch at this position, which is sound and in order.

        `findings` (default: those of the reader) get the problems of its records.
        """
        status: tuple[CrcStatus, Grade] = ("ok", "verified") if self.options.verify else ("not_checked", "unverified")
        found = Found(read_header_fields(buffer, position), *status)
        findings = self.findings if findings is None else findings
        return SegmentBatch(partition, segment, buffer, found, _report(partition, segment, None), findings, self.options.cap_bytes)

    def _note_stranger(self, partition: PartitionDirectory, segment: SegmentFile, buffer: memoryview) -> None:
        """Report a file that is no log. It is read even so: batches may follow later in the file."""
        what = looks_like(buffer) if segment.window is None else None
        if what is None:
            return
        finding = Finding(
            code="no_log",
            severity="incident",
            sentence=f"this file is named like a segment, but looks like {what}",
            replica=partition.replica,
            offsets_partition=partition.offsets_partition,
            path=segment.path,
            byte_position=0,
            size_bytes=segment.size_bytes,
            remedy="Copy the segment again, or look for it in another replica",
            is_damage=True,
        )
        self.findings.add(finding)

    def advance(self, position: int) -> None:
        """Report the progress: the present segment is read up to this position."""
        if self.options.progress is not None:
            self.options.progress(self._done_bytes + position, self.total_bytes)

    def finish(self, segment: SegmentFile) -> None:
        """Count this segment as read."""
        self._done_bytes += segment.size_bytes
        self.advance(0)


def _report(partition: PartitionDirectory, segment: SegmentFile, next_base_offset: int | None) -> DamageReport:
    context = Context(segment.path, partition.replica, partition.offsets_partition)
    return DamageReport(context, base_offset=segment.base_offset, next_base_offset=next_base_offset)
