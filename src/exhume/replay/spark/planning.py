"""Plan a job in tasks of about equal size: the driver lists files and opens no segment.

Small segments share a task. A segment of more than twice the wanted size is cut into parts, if it has an offset index; the task that reads
a part finds its borders. All files of one archive are one task, because exhume unpacks an archive as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from exhume.codecs.archives import ArchiveVolume
from exhume.codecs.log_directory import Evidence, LogDirectory, PartitionDirectory, SegmentFile, discover
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.replicas import choose_replicas
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.findings import Finding, Findings
from exhume.replay.spark.pushed_filters import Pushed
from exhume.replay.spark.source_options import SourceOptions

#: Kinds whose rows are about whole segments.
_WHOLE_SEGMENTS = ("segments",)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPart:
    """A segment to read, or the part with this number of it, cut at `cuts`. `segment` has no window yet."""

    partition: PartitionDirectory
    segment: SegmentFile
    cuts: tuple[int, ...] = ()
    part: int = 0

    @property
    def size_bytes(self) -> int:
        return self.segment.size_bytes // (len(self.cuts) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The segments of one task; `findings` are those of the search, which the first task of the kind `findings` returns."""

    parts: tuple[SegmentPart, ...]
    read_options: ReadOptions
    findings: tuple[Finding, ...] = field(default=(), repr=False)


def find_evidence(options: SourceOptions) -> Evidence:
    """The evidence at the places of these options, replicas chosen."""
    found = discover(
        list(options.places), include=options.include, temp_dir=options.temp_dir, filesystem_options=options.filesystem_options
    )
    return choose_replicas(found, options.replicas)


def plan(evidence: Evidence, options: SourceOptions, pushed: Pushed) -> list[Task]:
    """The tasks that read this evidence; only a task with findings of the search may have no segment."""
    parts = list(_whole_segments(evidence, options, pushed))
    read_options = replace(options.read, threads=1)
    packs = [Task(parts=tuple(pack), read_options=read_options) for pack in _packed(parts, options.bytes_per_partition)]
    if options.of == "findings":
        about = [finding for finding in evidence.findings if _is_about(finding, options)]
        packs = [Task(parts=(), read_options=read_options, findings=tuple(about)), *packs]
    if options.of == "segments":
        packs = [replace(pack, findings=_findings_about(pack, evidence)) for pack in packs]
    return packs


def _whole_segments(evidence: Evidence, options: SourceOptions, pushed: Pushed) -> Iterator[SegmentPart]:
    for partition in evidence.partitions:
        if not pushed.accepts(partition):
            continue
        if options.of in _WHOLE_SEGMENTS:
            for segment in partition.segments:
                yield SegmentPart(partition=_with_next_segment(partition, segment), segment=segment)
            continue
        next_bases = {
            segment.path: base for _, segment, base in SegmentReader(evidence_of([partition]), ReadOptions(), evidence.findings).segments()
        }
        for segment in partition.segments:
            if segment.is_read and _can_hold(segment, next_bases[segment.path], pushed.wanted):
                yield from _parts(
                    SegmentPart(partition=_with_next_segment(partition, segment), segment=segment), options.bytes_per_partition
                )


def _can_hold(segment: SegmentFile, next_base: int | None, wanted: RecordFilter) -> bool:
    """False if the names of this segment and of the next show that all its offsets are outside the wanted range."""
    if wanted.to_offset is not None and segment.base_offset > wanted.to_offset:
        return False
    return not (wanted.from_offset is not None and next_base is not None and next_base <= wanted.from_offset)


def _parts(part: SegmentPart, wanted_bytes: int) -> Iterator[SegmentPart]:
    size_bytes = part.segment.size_bytes
    if size_bytes < 2 * wanted_bytes or part.segment.index is None or isinstance(part.segment.volume, ArchiveVolume):
        yield part
        return
    cuts = tuple(range(wanted_bytes, size_bytes - wanted_bytes // 2, wanted_bytes))
    for number in range(len(cuts) + 1):
        yield replace(part, cuts=cuts, part=number)


def _packed(parts: Sequence[SegmentPart], wanted_bytes: int) -> Iterator[list[SegmentPart]]:
    pack: list[SegmentPart] = []
    for part in parts:
        volume = part.segment.volume
        shares_archive = bool(pack) and isinstance(volume, ArchiveVolume) and pack[-1].segment.volume is volume
        is_full = bool(pack) and sum(each.size_bytes for each in pack) + part.size_bytes > wanted_bytes
        leaves_archive = bool(pack) and isinstance(pack[-1].segment.volume, ArchiveVolume) and not shares_archive
        if pack and not shares_archive and (is_full or leaves_archive or isinstance(volume, ArchiveVolume)):
            yield pack
            pack = []
        pack.append(part)
    if pack:
        yield pack


def _with_next_segment(partition: PartitionDirectory, segment: SegmentFile) -> PartitionDirectory:
    """Return the partition with only this segment and the next one, which limits its offsets: a task needs no more."""
    later = (
        other
        for other in partition.segments
        if segment.is_read and other.is_read and other.origin == "log" and other.base_offset > segment.base_offset
    )
    following = next(later, None)
    segments = [segment] if following is None else [segment, following]
    return replace(partition, segments=segments, snapshots=[], side_files=[], leader_epochs=[])


def evidence_of(partitions: list[PartitionDirectory]) -> Evidence:
    """Evidence with only these partitions."""
    return Evidence([LogDirectory(path="", replica="", partitions=partitions)], Findings())


def _is_about(finding: Finding, options: SourceOptions) -> bool:
    numbers = options.wanted.offsets_partitions
    return numbers is None or finding.offsets_partition is None or finding.offsets_partition in numbers


def _findings_about(task: Task, evidence: Evidence) -> tuple[Finding, ...]:
    paths = {part.segment.path for part in task.parts}
    return tuple(finding for finding in evidence.findings if finding.path in paths)
