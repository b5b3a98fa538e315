"""The files of the evidence with their digests: they prove later that an answer is about these bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from exhume.arrow_rows import OfLog, schema_of, table_of
from exhume.codecs.partition_directory import PartitionDirectory
from exhume.codecs.segment_files import SegmentFile
from exhume.codecs.segment_reader import Progress
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


def evidence_files(partitions: Iterable[PartitionDirectory], progress: Progress | None = None) -> pa.Table:
    """Read each file of these directories whole, and return the digests as `EVIDENCE_FILES`.

    `progress` takes the number of bytes read, and the number of all bytes.
    """
    files = [(each, kind, file) for each in partitions for kind, file in _files(each)]
    total_bytes = sum(file.size_bytes for _, _, file in files)
    rows: list[EvidenceFileRow] = []
    done_bytes = 0
    for partition, kind, file in files:

        def reach(position: int, before: int = done_bytes) -> None:
            if progress is not None:
                progress(min(before + position, total_bytes), total_bytes)

        rows.append(_row(partition, kind, file, reach))
        done_bytes += file.size_bytes
    return table_of(EVIDENCE_FILES, rows)


def _files(partition: PartitionDirectory) -> Iterator[tuple[str, EvidenceFile]]:
    for segment in partition.segments:
        yield "segment", segment
        for index in segment.indexes:
            yield "index", index
    for snapshot in partition.snapshots:
        yield "snapshot", snapshot
    for file in partition.side_files:
        yield "other", file


def _row(partition: PartitionDirectory, kind: str, file: EvidenceFile, reach: Callable[[int], None]) -> EvidenceFileRow:
    # A part of a segment is read through a window; the digest is that of the file.
    size_bytes, sha256 = _digest(file.volume.open(file.entry.path), reach)
    return {
        "replica": partition.replica,
        "offsets_partition": partition.offsets_partition,
        "path": file.path,
        "kind": kind,
        "is_read": isinstance(file, SegmentFile) and file.is_read,
        "size_bytes": size_bytes,
        "sha256": sha256,
    }


def _digest(content: memoryview, reach: Callable[[int], None]) -> tuple[int, str]:
    digest = hashlib.sha256()
    with content:
        for start in range(0, content.nbytes, _CHUNK_BYTES):
            digest.update(content[start : start + _CHUNK_BYTES])
            reach(min(start + _CHUNK_BYTES, content.nbytes))
        return content.nbytes, digest.hexdigest()
