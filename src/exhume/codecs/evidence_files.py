"""The files of an evidence directory besides those of a broker: what `exhume capture` writes, and every command finds.

    manifest.json       the origin of every byte: cluster, leaders, offsets, gaps, and the SHA-256 of each file
    topics.csv          topic,topic_id,partitions,racks
    end-offsets.txt     topic:partition:offset, the latest offsets of data topics
    start-offsets.txt   the same for the earliest offsets
    live.txt            the committed offsets of all groups, as kafka-consumer-groups.sh prints them
    groups.json         the complete answers of the coordinators

The directory itself is a log directory: `meta.properties`, checkpoints, and directories `__consumer_offsets-N` with segments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from exhume.codecs.volumes import Entry, Volume, join
from exhume.errors import EvidenceError
from exhume.findings import Finding

EVIDENCE_MANIFEST = "manifest.json"
TOPICS, END_OFFSETS, START_OFFSETS = "topics.csv", "end-offsets.txt", "start-offsets.txt"
LIVE, GROUPS = "live.txt", "groups.json"
#: The version of the layout, in the manifest.
LAYOUT_VERSION = 1

_MAX_MANIFEST_BYTES = 64 * 1024 * 1024
_REMEDY = "Take the directory again from where it was captured, or continue with caution"


class Run(TypedDict):
    """A run of the command: times in ISO 8601, and the bytes of a torn batch that its start has cut."""

    started_at: str
    ended_at: str | None
    cut_bytes: int


class SeenLeader(TypedDict):
    """A leader, and the first offset that was fetched from it."""

    broker: int
    leader_epoch: int
    from_offset: int
    seen_at: str


class ListingSpan(TypedDict):
    """The listing of the groups: it was taken after the records before `offsets_before`, by offsets partition.

    `offsets_after` are the ends of the captured log right after it; None if the log goes on.
    """

    started_at: str
    ended_at: str
    group_count: int
    offsets_before: dict[str, int]
    offsets_after: dict[str, int] | None


class CapturedPartition(TypedDict):
    """A captured partition. Offsets are those of its leader at its last answer.

    `gaps` are ranges of offsets that the leader no longer had, both ends included; `missing_offsets` counts these and those inside batches.
    `unsound_offsets` are base offsets of batches whose checksum does not match. `removed_below`: `--keep` removed the records before it.
    `lost_from`: the first captured offset that a later leader did not have.
    """

    offsets_partition: int
    next_offset: int
    high_watermark: int | None
    last_stable_offset: int | None
    log_start_offset: int | None
    leaders: list[SeenLeader]
    has_caught_up: bool
    gaps: list[list[int]]
    missing_offsets: int
    unsound_offsets: list[int]
    removed_below: int | None
    lost_from: int | None


@dataclass(frozen=True, slots=True)
class EvidenceFiles:
    """The manifest and the other files of an evidence directory."""

    volume: Volume
    directory: str
    manifest: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        """Return the text of this file; None if the directory has no such file.

        Raises:
            EvidenceError: the file cannot be read, or is not UTF-8.
        """
        path = join(self.directory, name)
        if self.volume.find(path) is None:
            return None
        try:
            return bytes(self.volume.open(path)).decode("utf-8")
        except UnicodeDecodeError as error:
            raise EvidenceError("this file is not UTF-8 text", path=self.shown(name), byte_position=error.start, remedy=_REMEDY) from error

    def shown(self, name: str) -> str:
        """Return the path of this file as answers show it."""
        return self.volume.shown(join(self.directory, name))

    def int_of(self, name: str) -> int | None:
        """Return this number of the manifest; None if it has none."""
        value = self.manifest.get(name)
        return value if isinstance(value, int) else None

    @property
    def has_current_listing(self) -> bool:
        """True if the log ends right after the listing, so that both can be compared."""
        listing = self.manifest.get("listing")
        return bool(self.manifest.get("complete")) and isinstance(listing, dict) and listing.get("offsets_after") is not None

    def incomplete_findings(self) -> Iterator[Finding]:
        """Yield a finding for each part of the log that the manifest names as missing."""
        path = self.shown(EVIDENCE_MANIFEST)
        partitions = list(_rows(self.manifest.get("partitions")))
        if not self.manifest.get("complete") and not any(isinstance(partition.get("lost_from"), int) for partition in partitions):
            sentence = "the capture did not come to its end: later records of the log are missing"
            yield Finding(
                code="capture_incomplete",
                severity="warn",
                sentence=sentence,
                path=path,
                remedy="Run exhume capture again with the same directory; it goes on after the last whole batch",
            )
        for partition in partitions:
            removed = partition.get("removed_below")
            if isinstance(removed, int):
                yield Finding(
                    code="recorder_removed_records",
                    severity="warn",
                    sentence=(
                        f"--keep removed the records below offset {removed}: groups and offsets whose last record was there "
                        "are missing from every answer"
                    ),
                    path=path,
                    offsets_partition=partition.get("offsets_partition"),
                    remedy="Take the state of all groups from a capture without --keep",
                )
            lost = partition.get("lost_from")
            if isinstance(lost, int):
                yield Finding(
                    code="leader_lost_records",
                    severity="warn",
                    sentence=(
                        f"an unclean election lost the records from offset {lost} on: "
                        "this directory has them, and not those that the cluster has in their place"
                    ),
                    path=path,
                    offsets_partition=partition.get("offsets_partition"),
                    remedy="Capture the present log into another directory; this one has the lost records",
                )

    def verify(self) -> Iterator[Finding]:
        """Read each file that the manifest lists, and yield a finding for each that differs from it."""
        from hashlib import sha256

        for row in _rows(self.manifest.get("files")):
            name, size, digest = row.get("path"), row.get("size_bytes"), row.get("sha256")
            if not isinstance(name, str) or not isinstance(size, int) or not isinstance(digest, str):
                yield self._damage(
                    EVIDENCE_MANIFEST, "manifest_unreadable", f"an entry has not path, size_bytes and sha256: {str(row)[:80]!r}"
                )
                continue
            path = join(self.directory, name)
            found = self.volume.find(path) if _is_inside(name) else None
            if found is None:
                yield self._damage(name, "file_missing", "the manifest lists this file, and it is missing")
                continue
            with_bytes = self.volume.open(path)
            # A recorder that runs, or was killed, adds to segments, and replaces small files before the manifest.
            may_grow, is_segment = not self.manifest.get("complete"), name.endswith(".log")
            is_same = sha256(with_bytes[:size]).hexdigest() == digest and (len(with_bytes) == size or may_grow)
            if not is_same and (is_segment or not may_grow):
                yield self._damage(
                    name, "file_changed", f"{len(with_bytes)} bytes that are not the {size} bytes of the manifest, by their SHA-256"
                )

    def _damage(self, name: str, code: str, sentence: str) -> Finding:
        return Finding(code=code, severity="incident", sentence=sentence, path=self.shown(name), remedy=_REMEDY, is_damage=True)


def read_evidence_files(volume: Volume, directory: str, by_name: Mapping[str, Entry]) -> EvidenceFiles | None:
    """Return the manifest of this directory; None if it has none, or one that is not of `exhume capture`.

    Raises:
        EvidenceError: the file is named and begins like a manifest of exhume, and cannot be read.
    """
    entry = by_name.get(EVIDENCE_MANIFEST)
    if entry is None or entry.is_directory:
        return None
    path = join(directory, EVIDENCE_MANIFEST)
    data = volume.open(path)
    if len(data) > _MAX_MANIFEST_BYTES:
        return None
    try:
        manifest = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"the manifest is not valid JSON: {error}", path=volume.shown(path), remedy=_REMEDY) from error
    if not isinstance(manifest, dict) or "exhume_capture" not in manifest:
        return None
    return EvidenceFiles(volume, directory, manifest)


def _rows(value: object) -> Iterator[Mapping[str, Any]]:
    for row in value if isinstance(value, list) else ():
        if isinstance(row, dict):
            yield row


def _is_inside(name: str) -> bool:
    return not name.startswith("/") and ".." not in name.split("/")
