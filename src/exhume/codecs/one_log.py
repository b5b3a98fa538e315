"""Evidence log by log, for work on one log at a time: by another process, or by an executor of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from exhume.arrow_rows import Origin
from exhume.codecs.log_directory import Evidence, LogDirectory, PartitionDirectory
from exhume.codecs.segment_reader import Progress, ReadOptions, SegmentReader
from exhume.codecs.volumes import LocalVolume
from exhume.findings import Findings


@dataclass(frozen=True, slots=True)
class OneLog:
    """The directories of one log: of one replica of an offsets partition. They are pruned of all others. It can be pickled."""

    directories: tuple[LogDirectory, ...]
    options: ReadOptions

    @property
    def partitions(self) -> list[PartitionDirectory]:
        """Its partition directories."""
        return [partition for directory in self.directories for partition in directory.partitions]

    @property
    def size_bytes(self) -> int:
        """The bytes of its segments."""
        return sum(partition.size_bytes for partition in self.partitions)

    @property
    def is_local(self) -> bool:
        """True if all of its segments are files of this machine."""
        return all(isinstance(segment.volume, LocalVolume) for partition in self.partitions for segment in partition.read_segments)

    def reader(self, findings: Findings, progress: Progress | None = None) -> SegmentReader:
        """A reader of this log."""
        return SegmentReader(Evidence([*self.directories], Findings()), replace(self.options, progress=progress), findings)


def logs_of(evidence: Evidence, options: ReadOptions) -> list[OneLog]:
    """The logs of this evidence, in its order; directories that hold a part of the same one are together. Each is read by one thread."""
    found: dict[Origin, list[LogDirectory]] = {}
    for directory in evidence.log_directories:
        for each in directory.partitions:
            if each.read_segments:
                alone = replace(directory, partitions=[each], topic_ids={}, cluster_metadata=[])
                found.setdefault((each.replica, each.offsets_partition), []).append(alone)
    options = replace(options, threads=1, progress=None)
    return [OneLog(tuple(directories), options) for directories in found.values()]


def largest_first(logs: Sequence[OneLog]) -> list[int]:
    """The numbers of these logs, those of the largest ones first."""
    return sorted(range(len(logs)), key=lambda number: -logs[number].size_bytes)
