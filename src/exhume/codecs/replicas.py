"""One offsets partition in several log directories: read all replicas, or pick one.

A pick takes the replica whose log ends last; of those the one that begins first; of those the one with the smallest label, by length and
then by letter. The end of a log is read from the tail of its newest segment, found by the offset index.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Literal

from exhume.codecs.batches import BatchWalk
from exhume.codecs.indexes import last_indexed_position
from exhume.codecs.log_directory import Evidence, LogDirectory
from exhume.codecs.partition_directory import PartitionDirectory
from exhume.errors import EvidenceError
from exhume.findings import Finding, Findings

ReplicaRule = Literal["all", "pick"]
RULES: tuple[ReplicaRule, ...] = ("all", "pick")


def choose_replicas(evidence: Evidence, rule: ReplicaRule) -> Evidence:
    """Apply the rule to the evidence.

    With `pick`, segments of the other replicas are listed but not read (`is_read`), and each replica gets a finding. Partitions without a
    known number all stay.
    """
    seen: defaultdict[int, list[PartitionDirectory]] = defaultdict(list)
    for partition in evidence.partitions:
        if partition.offsets_partition is not None and partition.read_segments:
            seen[partition.offsets_partition].append(partition)
    if rule == "all" or all(len(copies) == 1 for copies in seen.values()):
        return evidence
    findings = Findings(evidence.findings)
    left_out: set[int] = set()
    for number, copies in seen.items():
        ends = {id(copy): log_end_offset(copy) for copy in copies} if len(copies) > 1 else {}
        picked, *others = sorted(copies, key=lambda copy: _rank(copy, ends))
        for other in others:
            left_out.add(id(other))
            findings.add(
                Finding(
                    code="replica_left_out",
                    severity="info",
                    replica=other.replica,
                    offsets_partition=number,
                    path=other.path,
                    sentence=(
                        f"offsets partition {number} is read from replica {picked.replica}, whose log ends at {ends[id(picked)]}; "
                        f"this one ends at {ends[id(other)]} and is left out"
                    ),
                    remedy="Read every replica, or give this one alone",
                )
            )
    directories = [_without(directory, left_out) for directory in evidence.log_directories]
    return Evidence(directories, findings, evidence.volumes, evidence.paths)


def log_end_offset(partition: PartitionDirectory) -> int:
    """Return the record offset after the last batch of this log, as far as its newest segments can be read; 0 for an empty log."""
    for segment in reversed(partition.read_segments):
        try:
            start = last_indexed_position(segment, segment.size_bytes)
            tail = memoryview(segment.read(start, segment.size_bytes - start))
        except EvidenceError:
            continue
        last = max((batch.last_offset for batch in BatchWalk(tail)), default=None)
        if last is not None:
            return last + 1
    return max((segment.base_offset for segment in partition.read_segments), default=0)


def _rank(copy: PartitionDirectory, ends: dict[int, int]) -> tuple[int, int, int, str]:
    first = min(segment.base_offset for segment in copy.read_segments)
    return -ends.get(id(copy), 0), first, len(copy.replica), copy.replica


def _without(directory: LogDirectory, left_out: set[int]) -> LogDirectory:
    partitions = [
        replace(partition, segments=[replace(segment, is_read=False) for segment in partition.segments])
        if id(partition) in left_out
        else partition
        for partition in directory.partitions
    ]
    return replace(directory, partitions=partitions)
