"""Log directories: find the directories in which a broker keeps its logs, also in partial copies.

`discover` takes a data directory, a partition directory, segment files, an archive, or a directory of any of these. It lists and describes
files; it reads no record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Self

from exhume.codecs.checkpoints import (
    MetaProperties,
    read_clean_shutdown,
    read_meta_properties,
    read_offset_checkpoint,
    read_partition_metadata,
)
from exhume.codecs.evidence_files import EvidenceFiles, read_evidence_files
from exhume.codecs.file_names import (
    CLEAN_SHUTDOWN,
    KNOWN_DIRECTORIES,
    META_PROPERTIES,
    METADATA_DIRECTORY,
    OFFSET_CHECKPOINTS,
    PARTITION_METADATA,
    DirectoryName,
    as_text,
    parse_directory_name,
    parse_file_name,
)
from exhume.codecs.partition_directory import Checkpointed, PartitionDirectory, SegmentSelection, read_partition_directory, read_side_file
from exhume.codecs.places import Place, find_places
from exhume.codecs.segment_files import Reporter, SegmentFile
from exhume.codecs.uris import parse_place
from exhume.codecs.volumes import Entry, Volume, join
from exhume.errors import EvidenceError, RequestError
from exhume.findings import Findings

__all__ = ["LEFTOVERS", "Evidence", "LogDirectory", "PartitionDirectory", "SegmentFile", "discover"]

#: The files and directories, by suffix, that a broker does not read; `discover` includes them on request.
LEFTOVERS = frozenset({"deleted", "swap", "cleaned", "delete", "future", "stray"})

Offsets = dict[tuple[str, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectory:
    """One log directory, whole or in part.

    `replica` is its label: the broker id of `meta.properties`, or the directory's name; a label that exists already gets `#2` and so on.
    `is_whole`: it has `meta.properties` or a checkpoint, so it is a broker's whole directory. `clean_shutdown` is None if the files do not
    show how the broker stopped. The offsets by (topic, partition) are those of the four checkpoints. `topic_ids` maps topic ids to names,
    from every topic's `partition.metadata`. `cluster_metadata` holds the snapshots and segments of `__cluster_metadata-0`, oldest first.
    `captured` has the other files of an evidence directory that `exhume capture` wrote.
    """

    path: str
    replica: str
    is_whole: bool = False
    clean_shutdown: bool | None = None
    meta: MetaProperties | None = None
    high_watermarks: Offsets = field(default_factory=dict)
    recovery_points: Offsets = field(default_factory=dict)
    log_starts: Offsets = field(default_factory=dict)
    cleaner_offsets: Offsets = field(default_factory=dict)
    partitions: list[PartitionDirectory] = field(default_factory=list)
    topic_ids: dict[str, str] = field(default_factory=dict)
    cluster_metadata: list[SegmentFile] = field(default_factory=list)
    captured: EvidenceFiles | None = None


@dataclass(slots=True)
class Evidence:
    """All log directories in the order of the paths given, and findings about them.

    Buffers of files that are still in use stay valid after `close`. Also a context manager.
    """

    log_directories: list[LogDirectory]
    findings: Findings
    volumes: list[Volume] = field(default_factory=list, repr=False)
    #: The paths and URIs that were given, without credentials.
    paths: tuple[str, ...] = ()

    @property
    def partitions(self) -> list[PartitionDirectory]:
        """The partition directories of all log directories."""
        return [partition for directory in self.log_directories for partition in directory.partitions]

    @property
    def offsets_partitions(self) -> list[int | None]:
        """The offsets partitions of which a segment is read; None for one whose number is not known."""
        return [partition.offsets_partition for partition in self.partitions if partition.read_segments]

    def close(self) -> None:
        """Release unpacked archives."""
        for volume in self.volumes:
            volume.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def discover(
    paths: Sequence[str | Path],
    *,
    include: frozenset[str] = frozenset(),
    temp_dir: str | Path | None = None,
    filesystem_options: Mapping[str, str] | None = None,
) -> Evidence:
    """The log directories that these paths hold, with their partitions of `__consumer_offsets`.

    Args:
        paths: data directories, partition directories, segment files, archives of them, or directories that hold several of them: paths
            of this machine, or URIs (`codecs.uris`).
        include: the leftovers to read as well, of `LEFTOVERS`. Without it they are listed, and `is_read` of their segments is False.
        temp_dir: the directory for members of archives and for fetched files; they are temporary files without names.
        filesystem_options: options for the file systems of URIs (`codecs.file_systems.OPTIONS`), before those in the URIs.

    Raises:
        EvidenceError: a path that is missing, unreadable, or no evidence; or no partition of the offsets topic in any path.
        RequestError: an unknown leftover.
    """
    unknown = sorted(include - LEFTOVERS)
    if unknown:
        raise RequestError(f"unknown leftovers: {', '.join(unknown)}", remedy=f"Known are {', '.join(sorted(LEFTOVERS))}")
    findings = Findings()
    parsed = [path if isinstance(path, Path) else parse_place(path, filesystem_options) for path in paths]
    places, volumes = find_places(parsed, findings, Path(temp_dir) if temp_dir else None)
    labels: Counter[str] = Counter()
    directories = [_read_log_directory(place, labels, include, findings) for place in places]
    for volume in volumes:
        findings.extend(volume.findings)
    return Evidence(directories, findings, volumes, tuple(map(str, parsed)))


def _read_log_directory(place: Place, labels: Counter[str], include: frozenset[str], findings: Findings) -> LogDirectory:
    volume = place.volume
    by_name = {entry.name: entry for entry in volume.entries(place.directory)} if place.is_data_directory else {}
    # The replica of these findings is known only after meta.properties is read.
    nameless = Findings()
    meta = read_side_file(volume, by_name, META_PROPERTIES, read_meta_properties, Reporter(nameless, ""))
    replica = _label(place, meta, labels)
    findings.extend(replace(finding, replica=replica) for finding in nameless)
    reporter = Reporter(findings, replica)
    checkpoints = _Checkpoints(
        *(read_side_file(volume, by_name, name, read_offset_checkpoint, reporter) or {} for name in OFFSET_CHECKPOINTS)
    )
    has_checkpoints = any(name in by_name for name in OFFSET_CHECKPOINTS)
    is_whole = has_checkpoints or META_PROPERTIES in by_name
    if place.is_data_directory and not has_checkpoints:
        _report_no_checkpoints(place, reporter)
    if CLEAN_SHUTDOWN in by_name:
        read_side_file(volume, by_name, CLEAN_SHUTDOWN, read_clean_shutdown, reporter)
    partitions = [
        read_partition_directory(
            volume,
            directory,
            name,
            replica=replica,
            findings=findings,
            checkpointed=checkpoints.of(name),
            selection=_selection(place, directory, name, include),
        )
        for directory, name in _partition_directories(place, by_name)
    ]
    captured = None
    if place.is_data_directory:
        _report_unknown_entries(place, by_name, reporter)
        captured = read_evidence_files(volume, place.directory, by_name)
    if captured is not None:
        findings.extend(replace(finding, replica=replica) for finding in captured.incomplete_findings())
    return LogDirectory(
        path=volume.shown(place.directory),
        replica=replica,
        is_whole=is_whole,
        clean_shutdown=True if CLEAN_SHUTDOWN in by_name else False if is_whole else None,
        meta=meta,
        high_watermarks=checkpoints.high_watermarks,
        recovery_points=checkpoints.recovery_points,
        log_starts=checkpoints.log_starts,
        cleaner_offsets=checkpoints.cleaner_offsets,
        partitions=partitions,
        topic_ids=_topic_ids(volume, by_name, partitions),
        cluster_metadata=_cluster_metadata(volume, by_name),
        captured=captured,
    )


class _Checkpoints(NamedTuple):
    """The offsets of the four checkpoints, in the order of `OFFSET_CHECKPOINTS`."""

    high_watermarks: Offsets
    recovery_points: Offsets
    log_starts: Offsets
    cleaner_offsets: Offsets

    def of(self, name: DirectoryName | None) -> Checkpointed:
        """The offsets of this partition; none for a directory that is not the live one."""
        key = (name.topic, name.partition) if name is not None and name.suffix is None else ("", -1)
        return Checkpointed(
            high_watermark=self.high_watermarks.get(key),
            recovery_point=self.recovery_points.get(key),
            log_start_offset=self.log_starts.get(key),
            cleaner_offset=self.cleaner_offsets.get(key),
        )


def _selection(place: Place, directory: str, name: DirectoryName | None, include: frozenset[str]) -> SegmentSelection:
    given = place.given.get(directory)
    is_read = given is not None or name is None or name.suffix is None or name.suffix in include
    return SegmentSelection(is_read=is_read, include=include, given=given.files if given else None)


def _report_no_checkpoints(place: Place, reporter: Reporter) -> None:
    path = place.volume.shown(place.directory)
    sentence = "the directory has no checkpoint: high watermarks and log start offsets are unknown"
    reporter.info("no_checkpoints", path, sentence, remedy="Copy the files in the root of the log directory as well")


def _label(place: Place, meta: MetaProperties | None, labels: Counter[str]) -> str:
    label = as_text(place.name) if meta is None or meta.broker_id is None else str(meta.broker_id)
    labels[label] += 1
    return label if labels[label] == 1 else f"{label}#{labels[label]}"


def _partition_directories(place: Place, by_name: Mapping[str, Entry]) -> list[tuple[str, DirectoryName | None]]:
    """The directories to read as partitions: those given, and in a data directory all of the offsets topic."""
    named = {directory: parse_directory_name(given.name) for directory, given in place.given.items()}
    for entry in by_name.values():
        name = parse_directory_name(entry.name) if entry.is_directory else None
        if name is not None and name.offsets_partition is not None:
            named[entry.path] = name
    return sorted(named.items(), key=lambda item: (item[1].partition, item[1].suffix or "") if item[1] else (-1, item[0]))


def _report_unknown_entries(place: Place, by_name: Mapping[str, Entry], reporter: Reporter) -> None:
    for entry in by_name.values():
        path = place.volume.shown(entry.path)
        if entry.is_directory:
            if parse_directory_name(entry.name) is None and entry.name not in KNOWN_DIRECTORIES and entry.path not in place.given:
                reporter.info("not_a_partition", path, "the name of this directory is not that of a partition; it is left out")
        elif parse_file_name(entry.name) is not None:
            sentence = "this file of a partition is not in a partition directory; it is left out"
            reporter.warn("loose_file", path, sentence, remedy="Give the file itself to read it")


def _topic_ids(volume: Volume, by_name: Mapping[str, Entry], partitions: Sequence[PartitionDirectory]) -> dict[str, str]:
    """Topic id to topic name, from the metadata of every partition directory; a live directory decides."""
    names: dict[str, str] = {}
    known: set[str] = set()
    directories = [(entry, parse_directory_name(entry.name)) for entry in by_name.values() if entry.is_directory]
    firsts = {name.topic: entry for entry, name in reversed(directories) if name is not None and name.offsets_partition is None}
    volume.expect([join(entry.path, PARTITION_METADATA) for entry in firsts.values()])
    for entry, name in directories:
        if name is None or name.is_cut or name.offsets_partition is not None or (name.suffix is None and name.topic in known):
            continue
        topic_id = _topic_id(volume, join(entry.path, PARTITION_METADATA))
        if topic_id is None:
            continue
        if name.suffix is None:
            known.add(name.topic)
            names[topic_id] = name.topic
        else:
            names.setdefault(topic_id, name.topic)
    return names | {partition.topic_id: partition.topic for partition in partitions if partition.topic_id and partition.topic}


def _topic_id(volume: Volume, path: str) -> str | None:
    """The topic id in the metadata of another topic; None if none can be read, which does not matter for offsets."""
    if volume.find(path) is None:
        return None
    try:
        return read_partition_metadata(volume.open(path))
    except EvidenceError:
        return None


def _cluster_metadata(volume: Volume, by_name: Mapping[str, Entry]) -> list[SegmentFile]:
    directory = by_name.get(METADATA_DIRECTORY)
    if directory is None or not directory.is_directory:
        return []
    found = []
    for entry in volume.entries(directory.path):
        name = None if entry.is_directory else parse_file_name(entry.name)
        if name is not None and name.kind in ("checkpoint", "log") and name.origin == "log":
            found.append(
                (name.record_offset, name.kind, SegmentFile(volume=volume, entry=entry, base_offset=name.record_offset, origin="log"))
            )
    # "checkpoint" sorts before "log": a snapshot holds what happened before the segment of the same offset.
    return [segment for _, _, segment in sorted(found, key=lambda item: item[:2])]
