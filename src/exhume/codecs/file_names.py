"""Parse the names in a log directory. Names are evidence: they are parsed, compared and kept, but no file is trusted by its name.

    <topic>-<partition>                              a log; the partition is what follows the last `-`
    <topic>-<partition>.<id>-delete|future|stray     a log about to be deleted, moved between disks, or no longer owned
    <base offset>.log|index|timeindex|txnindex       a segment and its indexes, 20 digits as Kafka writes them
    <record offset>.snapshot                         producer state of all offsets below
    <any of these>.deleted|swap|cleaned              unlinked, waiting to replace a segment, still being written by the cleaner
    <offset>-<epoch>.checkpoint                      a snapshot of the KRaft metadata log

Source: UnifiedLog.parseTopicPartitionName, LogFileUtils, LogLoader, Snapshots of Kafka 3.8.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from exhume.codecs.wire import decode_utf8

OFFSETS_TOPIC = "__consumer_offsets"
METADATA_DIRECTORY = "__cluster_metadata-0"

DirectorySuffix = Literal["delete", "future", "stray"]
FileKind = Literal["log", "index", "timeindex", "txnindex", "snapshot", "checkpoint"]
#: `log` is a file under its final name; the others carry their suffix.
Origin = Literal["log", "swap", "deleted", "cleaned"]

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
OFFSET_CHECKPOINTS = (HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS, CLEANER_OFFSETS)
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
#: The suffix of a file that a broker writes first and renames when it is complete.
UNFINISHED_SUFFIX = ".tmp"

#: Directories that are no partitions but belong in a log directory.
KNOWN_DIRECTORIES = frozenset({"remote-log-index-cache"})

_SIDE_FILES = frozenset({*OFFSET_CHECKPOINTS, META_PROPERTIES, CLEAN_SHUTDOWN, LEADER_EPOCHS, PARTITION_METADATA})
_ROOT_FILES = frozenset({*OFFSET_CHECKPOINTS, META_PROPERTIES, CLEAN_SHUTDOWN})

_PARTITION = re.compile(r"(?P<topic>.+)-(?P<partition>[0-9]{1,10})", re.DOTALL)
_SUFFIXED = re.compile(r"(?P<log>\S+-\S+)\.[^\s.]+-(?P<suffix>delete|future|stray)", re.ASCII)
_SEGMENT_FILE = re.compile(r"(?P<offset>[0-9]{1,20})\.(?P<kind>log|index|timeindex|txnindex|snapshot)(\.(?P<origin>deleted|swap|cleaned))?")
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")
_METADATA_SNAPSHOT = re.compile(r"(?P<offset>[0-9]{20})-[0-9]{10}\.checkpoint")
_MAX_FILE_NAME = 255


@dataclass(frozen=True, slots=True)
class DirectoryName:
    """The parts of a partition directory's name. `is_cut`: the topic may be a prefix, because the name has the maximum length."""

    topic: str
    partition: int
    suffix: DirectorySuffix | None = None
    is_cut: bool = False

    @property
    def offsets_partition(self) -> int | None:
        """The partition of `__consumer_offsets`; None for other topics."""
        return self.partition if self.topic == OFFSETS_TOPIC else None


@dataclass(frozen=True, slots=True)
class FileName:
    """The parts of the name of a file in a partition directory; `record_offset` is the base offset of its segment."""

    record_offset: int
    kind: FileKind
    origin: Origin


def parse_directory_name(name: str) -> DirectoryName | None:
    """Topic, partition and suffix, read from the right as Kafka does; None if the name is not that of a partition."""
    suffixed = _SUFFIXED.fullmatch(name)
    match = _PARTITION.fullmatch(suffixed["log"] if suffixed else name)
    if match is None or int(match["partition"]) > 2**31 - 1:
        return None
    suffix: DirectorySuffix | None = suffixed["suffix"] if suffixed else None  # type: ignore[assignment]
    return DirectoryName(
        decode_utf8(_raw(match["topic"])), int(match["partition"]), suffix, is_cut=suffix is not None and len(name) >= _MAX_FILE_NAME
    )


def is_malformed_log(name: str) -> bool:
    """Return True if a broker takes this file for a segment and finds no number before the first dot."""
    return name.endswith(".log") and _NUMBER.fullmatch(name.partition(".")[0]) is None


def parse_file_name(name: str) -> FileName | None:
    """Offset, kind and origin; None if the name is not that of a segment, an index or a snapshot."""
    match = _SEGMENT_FILE.fullmatch(name)
    if match is not None:
        parsed = FileName(int(match["offset"]), match["kind"], match["origin"] or "log")  # type: ignore[arg-type]
    elif (match := _METADATA_SNAPSHOT.fullmatch(name)) is not None:
        parsed = FileName(int(match["offset"]), "checkpoint", "log")
    else:
        return None
    return parsed if parsed.record_offset < 2**63 else None


def as_text(path: str) -> str:
    """This path as valid text: bytes that are no valid character are shown in hexadecimal."""
    return path if path.isascii() else _raw(path).decode("utf-8", "backslashreplace")


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def is_root_file(name: str) -> bool:
    """Return True for files that a broker writes only in the root of a log directory."""
    return name.removesuffix(UNFINISHED_SUFFIX) in _ROOT_FILES


def is_side_file(name: str) -> bool:
    """Return True for checkpoints and metadata, finished or not, of a log directory or a partition."""
    return name.removesuffix(UNFINISHED_SUFFIX) in _SIDE_FILES


def matters(directory: str, name: str) -> bool:
    """Return True if a file of this name in a directory of this name can be evidence about the offsets topic.

    The segments of other topics are not: they are most of a broker's disk.
    """
    if is_side_file(name):
        return True
    if parse_file_name(name) is None:
        return False
    partition = parse_directory_name(directory)
    return partition is None or partition.topic == OFFSETS_TOPIC or directory == METADATA_DIRECTORY
