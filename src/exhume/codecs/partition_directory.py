"""One partition directory: its segments, the files beside them, and its entries in the log directory's checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from exhume.codecs.checkpoints import LeaderEpoch, read_leader_epochs, read_partition_metadata
from exhume.codecs.file_names import (
    LEADER_EPOCHS,
    OFFSETS_TOPIC,
    PARTITION_METADATA,
    UNFINISHED_SUFFIX,
    DirectoryName,
    DirectorySuffix,
    is_malformed_log,
)
from exhume.codecs.segment_files import Reporter, SegmentFile, SegmentFiles, SnapshotFile
from exhume.codecs.volumes import Entry, EvidenceFile, Volume
from exhume.codecs.wire import Buffer
from exhume.errors import EvidenceError
from exhume.findings import Findings

Content = TypeVar("Content")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointed:
    """The record offsets of one partition in the checkpoints of a log directory, None without an entry.

    `high_watermark`: records below are committed. `recovery_point`: records below were flushed. `log_start_offset`: records below are
    deleted, even if the file still has them. `cleaner_offset`: records below were compacted.
    """

    high_watermark: int | None = None
    recovery_point: int | None = None
    log_start_offset: int | None = None
    cleaner_offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDirectory(Checkpointed):
    """One partition directory. `segments` are in offset order, leftovers after the segment of the same offset.

    `topic` and `partition` are those of the directory's name, None if the name has none; `offsets_partition` is the partition if the topic
    is `__consumer_offsets`. `side_files` are the files that are neither segments nor indexes nor snapshots.
    """

    path: str
    replica: str
    topic: str | None
    partition: int | None
    offsets_partition: int | None
    suffix: DirectorySuffix | None
    segments: list[SegmentFile]
    snapshots: list[SnapshotFile] = field(default_factory=list)
    leader_epochs: list[LeaderEpoch] = field(default_factory=list)
    topic_id: str | None = None
    side_files: list[EvidenceFile] = field(default_factory=list)

    @property
    def malformed_names(self) -> list[str]:
        """The paths of files that end in `.log` and do not begin with a base offset: no broker starts beside them."""
        return [file.path for file in self.side_files if is_malformed_log(file.path.rsplit("/", 1)[-1])]

    @property
    def read_segments(self) -> list[SegmentFile]:
        """The segments that are read."""
        return [segment for segment in self.segments if segment.is_read]

    @property
    def size_bytes(self) -> int:
        """The bytes of the segments that are read."""
        return sum(segment.size_bytes for segment in self.read_segments)

    @property
    def start_offset(self) -> int:
        """The first record offset that belongs to the log; 0 if no segment is read."""
        first = next((segment.base_offset for segment in self.read_segments), 0)
        return max(first, self.log_start_offset or 0)

    def bytes_from(self, segment: SegmentFile, byte_position: int) -> int:
        """The bytes of the log from this byte of a segment on, as far as segments are read."""
        read = self.read_segments
        return sum(each.size_bytes for each in read[read.index(segment) :]) - byte_position


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentSelection:
    """The files of a partition directory to read.

    `is_read`: False lists it only. `include`: the leftovers to read as well (`deleted`, `swap`, `cleaned`). `given`: the only segment
    files to read (name to base offset); None for all.
    """

    is_read: bool = True
    include: frozenset[str] = frozenset()
    given: Mapping[str, int] | None = None


def read_partition_directory(
    volume: Volume,
    directory: str,
    name: DirectoryName | None,
    *,
    replica: str,
    findings: Findings,
    checkpointed: Checkpointed,
    selection: SegmentSelection,
) -> PartitionDirectory:
    """List the partition directory at this path of a volume; unexpected files become findings.

    `name` is the parsed name of the directory, None if it is not the name of a partition.
    """
    reporter = Reporter(findings, replica, name.offsets_partition if name else None)
    path = volume.shown(directory)
    entries = [entry for entry in volume.entries(directory) if not entry.is_directory]
    files = SegmentFiles(volume, entries, selection.given, reporter)
    segments = files.segments(selection.include, is_read=selection.is_read)
    if selection.is_read:
        _report_topic(path, name, reporter)
        if selection.given is None:
            _report_missing(path, segments, files, checkpointed, reporter)
    snapshots = files.snapshots()
    by_name = {entry.name: entry for entry in entries}
    accounted = {file.entry.path for segment in segments for file in (segment, *segment.indexes)} | {file.entry.path for file in snapshots}
    return PartitionDirectory(
        path=path,
        replica=replica,
        topic=name.topic if name else None,
        partition=name.partition if name else None,
        offsets_partition=reporter.offsets_partition,
        suffix=name.suffix if name else None,
        segments=segments,
        snapshots=snapshots,
        leader_epochs=read_side_file(volume, by_name, LEADER_EPOCHS, read_leader_epochs, reporter) or [],
        topic_id=read_side_file(volume, by_name, PARTITION_METADATA, read_partition_metadata, reporter),
        side_files=[EvidenceFile(volume=volume, entry=entry) for entry in entries if entry.path not in accounted],
        high_watermark=checkpointed.high_watermark,
        recovery_point=checkpointed.recovery_point,
        log_start_offset=checkpointed.log_start_offset,
        cleaner_offset=checkpointed.cleaner_offset,
    )


def read_side_file(
    volume: Volume, by_name: Mapping[str, Entry], name: str, read: Callable[[Buffer], Content], reporter: Reporter
) -> Content | None:
    """Read this small file; return None if it is missing, or if it is damaged, which becomes a finding.

    If only the unfinished `<name>.tmp` exists, read that instead.
    """
    entry = by_name.get(name)
    unfinished = by_name.get(name + UNFINISHED_SUFFIX)
    if unfinished is not None:
        what = "the unfinished file is read" if entry is None else "the finished file is read"
        reporter.info("unfinished_file", volume.shown(unfinished.path), f"the broker stopped while it wrote {name}; {what}")
        entry = entry or unfinished
    if entry is None:
        return None
    try:
        return read(volume.open(entry.path))
    except EvidenceError as error:
        reporter.warn("broken_side_file", volume.shown(entry.path), f"this file cannot be used: {error.message}", remedy=error.remedy)
        return None


def _report_topic(path: str, name: DirectoryName | None, reporter: Reporter) -> None:
    if name is None:
        sentence = f"the name of this directory does not say which partition of {OFFSETS_TOPIC} it is"
        reporter.warn("unnamed_partition", path, sentence, remedy=f"Name a copy of it {OFFSETS_TOPIC}-N")
    elif name.topic != OFFSETS_TOPIC:
        sentence = f"this is a partition of topic {name.topic}; it is read as a partition of {OFFSETS_TOPIC}"
        reporter.warn("not_the_offsets_topic", path, sentence, remedy=f"Give a directory named {OFFSETS_TOPIC}-N")


def _report_missing(path: str, segments: list[SegmentFile], files: SegmentFiles, checkpointed: Checkpointed, reporter: Reporter) -> None:
    read = [segment for segment in segments if segment.is_read]
    if not read:
        reporter.info(
            "no_segments", path, "the directory has no segment" if not segments else "the directory has only leftovers; none is read"
        )
    elif read[0].base_offset > 0 and checkpointed.log_start_offset is None:
        start = f"the log begins at record offset {read[0].base_offset}, and no checkpoint explains it"
        sentence = f"{start}: earlier segments are missing or were deleted"
        reporter.info("earlier_segments_missing", read[0].path, sentence)
    unindexed = [segment for segment in read if segment.index is None]
    if unindexed:
        which = "the only segment has" if len(read) == 1 else f"{len(unindexed)} of {len(read)} segments have"
        reporter.info("missing_index", unindexed[0].path, f"{which} no .index; a broker would rebuild it, exhume does not need it")
    orphans = files.orphan_indexes()
    if orphans:
        sentence = f"{len(orphans)} index files have no segment; a broker deletes them at its start"
        remedy = "Look for the segment of the same name: it may be missing from the copy"
        reporter.info("orphan_index", orphans[0].path, sentence, remedy=remedy)
