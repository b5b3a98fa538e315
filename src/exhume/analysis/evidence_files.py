"""The files of the evidence with their digests: they prove later that an answer is about these bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import pyarrow as pa

from exhume.arrow_rows import OfLog, schema_of, table_of
from exhume.codecs.partition_directory import PartitionDirectory
from exhume.codecs.segment_files import SegmentFile
from exhume.codecs.volumes import EvidenceFile

_CHUNK_BYTES = 1 << 20


class EvidenceFileRow(OfLog):
    """One row per file of the partition directories, in the order of the logs.

    `kind` is segment, index, snapshot or other. `is_read`: the file is a segment that answers are made of. `sha256` is the digest of all of
    its bytes, in hexadecimal.
    """

    path: str
    kind: str
    is_read: bool
    size_bytes: int
    sha256: str


EVIDENCE_FILES = schema_of(EvidenceFileRow)


def evidence_files(partitions: Iterable[PartitionDirectory]) -> pa.Table:
    """Read each file of these directories whole, and return the digests as `EVIDENCE_FILES`."""
    return table_of(EVIDENCE_FILES, [_row(each, kind, file) for each in partitions for kind, file in _files(each)])


def _files(partition: PartitionDirectory) -> Iterator[tuple[str, EvidenceFile]]:
    for segment in partition.segments:
        yield "segment", segment
        for index in segment.indexes:
            yield "index", index
    for snapshot in partition.snapshots:
        yield "snapshot", snapshot
    for file in partition.side_files:
        yield "other", file


def _row(partition: PartitionDirectory, kind: str, file: EvidenceFile) -> EvidenceFileRow:
    # A part of a segment is read through a window; the digest is that of the file.
    size_bytes, sha256 = _digest(file.volume.open(file.entry.path))
    return {
        "replica": partition.replica,
        "offsets_partition": partition.offsets_partition,
        "path": file.path,
        "kind": kind,
        "is_read": isinstance(file, SegmentFile) and file.is_read,
        "size_bytes": size_bytes,
        "sha256": sha256,
    }


def _digest(content: memoryview) -> tuple[int, str]:
    digest = hashlib.sha256()
    with content:
        for start in range(0, content.nbytes, _CHUNK_BYTES):
            digest.update(content[start : start + _CHUNK_BYTES])
        return content.nbytes, digest.hexdigest()
