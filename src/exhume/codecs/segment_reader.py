"""Reading segments for people: every batch and record that can be found, and findings for what is wrong, in one pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace

from exhume.codecs import kernel_cache
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

#: Told, now and then, how many bytes of how many have been read.
Progress = Callable[[int, int], None]


#: Smaller logs are read by plain code: before it were done, kernels would not even be there. Those below the second size do not wait for
#: a compiler.
WORTH_KERNELS_BYTES, WORTH_COMPILING_BYTES = 2 * 1024 * 1024, 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read: whether checksums are verified, what one compressed batch may unfold to, and who is told of the progress."""

    verify: bool = True
    cap_bytes: int = DEFAULT_CAP_BYTES
    progress: Progress | None = None
    #: Logs of fewer bytes are read by plain code; None: those that are read before a compiler, or compiled code, is there.
    least_compiled_bytes: int | None = None
    #: How many threads may work; None: as many as there are cores for this process.
    threads: int | None = None

    def of_fold(self, *, verify: bool) -> ReadOptions:
        """The same for a fold, which holds whole batches: no cap beyond the default; `verify` where the load verifies in any case."""
        return replace(self, verify=self.verify or verify, cap_bytes=min(self.cap_bytes, DEFAULT_CAP_BYTES))

    @property
    def most_threads(self) -> int:
        """How many threads may work."""
        return self.threads or _cores()

    def least_kernel_bytes(self, total_bytes: int) -> int:
        """The size from which on a log is read by kernels, where so many bytes are read in all: they are compiled once for all logs."""
        if self.least_compiled_bytes is not None:
            return self.least_compiled_bytes
        return WORTH_KERNELS_BYTES if total_bytes >= WORTH_COMPILING_BYTES or kernel_cache.is_warm() else WORTH_COMPILING_BYTES


def _cores() -> int:
    """How many cores this process may use."""
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
        """Replica, offsets partition and path: where this batch lies, as columns."""
        return {
            "replica": self.partition.replica,
            "offsets_partition": self.partition.offsets_partition,
            "path": self.segment.path,
        }

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

    @property
    def is_worth_compiling(self) -> bool:
        """True where there is enough to read for kernels to be worth their start."""
        return self.total_bytes >= self.options.least_kernel_bytes(self.total_bytes)

    def segments(self, offsets_partitions: Collection[int] | None = None) -> Iterator[tuple[PartitionDirectory, SegmentFile, int | None]]:
        """Every segment that is read, with its partition and the base offset of the one behind it; of these offsets partitions only where
        some are named.
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
                behind = next((base for base in later_logs if base > segment.base_offset), None) if segment.origin == "log" else None
                yield partition, segment, behind

    def batches(self, offsets_partitions: Collection[int] | None = None, *, besides: Collection[str] = ()) -> Iterator[SegmentBatch]:
        """Every batch of every segment, of these offsets partitions only where some are named, besides segments of these paths."""
        for partition, segment, behind in self.segments(offsets_partitions):
            if segment.path in besides:
                self.finish(segment)
                continue
            for item in self.items(partition, segment, behind):
                if isinstance(item, SegmentBatch):
                    yield item

    def items(
        self, partition: PartitionDirectory, segment: SegmentFile, next_base_offset: int | None, *, behind_batch_at: int | None = None
    ) -> Iterator[SegmentBatch | Hole]:
        """The batches and holes of one segment or of its window; only what lies behind the batch at this position, if one is given: all in
        front of it and itself are sound and in order.
        """
        if behind_batch_at is None and segment.window is not None:
            behind_batch_at = segment.window.behind_batch_at
        report = _report(partition, segment, next_base_offset)
        with segment.open() as buffer:
            self._note_stranger(partition, segment, buffer)
            found_or_hole = salvage(
                buffer,
                position=behind_batch_at or 0,
                base_offset=segment.base_offset,
                next_base_offset=next_base_offset,
                verify_crc=self.options.verify,
            )
            for item in found_or_hole:
                self.findings.extend(report.findings(item))
                if isinstance(item, Hole):
                    yield item
                elif item.batch.byte_position != behind_batch_at:
                    yield SegmentBatch(partition, segment, buffer, item, report, self.findings, self.options.cap_bytes)
                self.advance(item.end_position)
        self.finish(segment)

    def sound_batch(self, partition: PartitionDirectory, segment: SegmentFile, buffer: Buffer, position: int) -> SegmentBatch:
        """The batch at this position, which has been found to be sound and in order."""
        status: tuple[CrcStatus, Grade] = ("ok", "verified") if self.options.verify else ("not_checked", "unverified")
        found = Found(read_header_fields(buffer, position), *status)
        return SegmentBatch(partition, segment, buffer, found, _report(partition, segment, None), self.findings, self.options.cap_bytes)

    def _note_stranger(self, partition: PartitionDirectory, segment: SegmentFile, buffer: memoryview) -> None:
        """Say what this file is if it is no log. It is read all the same: batches may lie further on."""
        what = looks_like(buffer) if segment.window is None else None
        if what is None:
            return
        finding = Finding(
            code="no_log",
            severity="incident",
            sentence=f"this file is named like a segment and looks like {what}",
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
        """Tell whoever wants to know that the present segment is read up to here."""
        if self.options.progress is not None:
            self.options.progress(self._done_bytes + position, self.total_bytes)

    def finish(self, segment: SegmentFile) -> None:
        """Count this segment as read."""
        self._done_bytes += segment.size_bytes
        self.advance(0)


def _report(partition: PartitionDirectory, segment: SegmentFile, next_base_offset: int | None) -> DamageReport:
    context = Context(segment.path, partition.replica, partition.offsets_partition)
    return DamageReport(context, base_offset=segment.base_offset, next_base_offset=next_base_offset)
