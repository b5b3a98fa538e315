"""The three indexes beside a segment. They are hints: a log can be decoded without them, but they are evidence of the records that it held.

    .index       entries of  8 bytes: relative offset int32 | byte position int32
    .timeindex   entries of 12 bytes: timestamp int64 | relative offset int32
    .txnindex    entries of 34 bytes: version int16 (0) | producer id int64 | first offset int64 | last offset int64
                 last stable offset int64

Relative offsets count from the base offset of the segment. The offset in an entry of `.index` depends on the release: the first
offset of an append up to 1.1; its last offset with the position of its first batch from 2.0 to 3.9; the last offset of the batch at that
position from 4.0.

The first two are preallocated with zeros while their segment is the newest. The first entry with
offset field zero, apart from entry 0, ends them. An entry 0 of only zeros is preallocation too: brokers never index position 0, and no
record is from 1970.

Source: OffsetIndex, TimeIndex, TransactionIndex, AbortedTxn of Kafka 3.8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from exhume.codecs.partition_directory import PartitionDirectory
from exhume.codecs.segment_files import SegmentFile
from exhume.codecs.volumes import EvidenceFile
from exhume.codecs.wire import Buffer
from exhume.errors import EvidenceError
from exhume.findings import Finding

#: A broker adds an entry after this number of bytes (default of `index.interval.bytes`).
INDEX_INTERVAL_BYTES = 4096
_OFFSET_ENTRY = np.dtype([("relative_offset", ">i4"), ("byte_position", ">i4")])
_TIME_ENTRY = np.dtype([("timestamp_ms", ">i8"), ("relative_offset", ">i4")])
_TRANSACTION_ENTRY = np.dtype(
    [("version", ">i2"), ("producer_id", ">i8"), ("first_offset", ">i8"), ("last_offset", ">i8"), ("last_stable_offset", ">i8")]
)
_REMEDY = "No answer depends on it: exhume finds records by reading the segment"


class OffsetIndexEntry(NamedTuple):
    """A record offset, and a byte position from which a reader can search for it."""

    record_offset: int
    byte_position: int


class TimeIndexEntry(NamedTuple):
    """No record of the segment before `record_offset` has a timestamp above `timestamp_ms`."""

    timestamp_ms: int
    record_offset: int


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted. `last_offset` is that of its marker, `last_stable_offset` the one after the marker was written."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class IndexProblem(NamedTuple):
    """An entry or bytes in an index that no broker writes, with its position in the file."""

    code: str
    byte_position: int
    sentence: str


Entry = TypeVar("Entry", OffsetIndexEntry, TimeIndexEntry, AbortedTransaction)


@dataclass(frozen=True, slots=True)
class Index(Generic[Entry]):
    """The entries of one index file in its order, and its problems."""

    entries: list[Entry]
    problems: list[IndexProblem]


def decode_offset_index(buffer: Buffer, base_offset: int) -> Index[OffsetIndexEntry]:
    """The entries of an `.index` of the segment with this base offset, without the preallocated tail."""
    rows = _rows(buffer, _OFFSET_ENTRY)
    rows = rows[: _used(rows["relative_offset"], rows["byte_position"])]
    relative, positions = rows["relative_offset"].astype(np.int64), rows["byte_position"].astype(np.int64)
    problems = _partial_entry(buffer, _OFFSET_ENTRY, "index")
    problems += _backwards(relative, _OFFSET_ENTRY, "the record offset", strictly=True)
    problems += _backwards(positions, _OFFSET_ENTRY, "the byte position", strictly=True)
    problems += _below(relative, _OFFSET_ENTRY, "the record offset is below the base offset of the segment")
    problems += _below(positions, _OFFSET_ENTRY, "the byte position is negative")
    return Index(list(map(OffsetIndexEntry, (relative + base_offset).tolist(), positions.tolist())), problems)


def decode_time_index(buffer: Buffer, base_offset: int) -> Index[TimeIndexEntry]:
    """The entries of a `.timeindex` of the segment with this base offset, without the preallocated tail."""
    rows = _rows(buffer, _TIME_ENTRY)
    rows = rows[: _used(rows["relative_offset"], rows["timestamp_ms"])]
    timestamps, relative = rows["timestamp_ms"].astype(np.int64), rows["relative_offset"].astype(np.int64)
    problems = _partial_entry(buffer, _TIME_ENTRY, "timeindex")
    problems += _backwards(timestamps, _TIME_ENTRY, "the timestamp", strictly=False)
    problems += _backwards(relative, _TIME_ENTRY, "the record offset", strictly=False)
    problems += _below(relative, _TIME_ENTRY, "the record offset is below the base offset of the segment")
    return Index(list(map(TimeIndexEntry, timestamps.tolist(), (relative + base_offset).tolist())), problems)


def decode_transaction_index(buffer: Buffer) -> Index[AbortedTransaction]:
    """The aborted transactions that a `.txnindex` lists. Entries of an unknown version are left out and reported as a problem."""
    rows = _rows(buffer, _TRANSACTION_ENTRY)
    problems = _partial_entry(buffer, _TRANSACTION_ENTRY, "txnindex")
    for position in np.flatnonzero(rows["version"] != 0)[:1].tolist():
        sentence = f"version {rows['version'][position]} of an aborted transaction; only version 0 exists"
        problems.append(IndexProblem("index_unknown_version", position * _TRANSACTION_ENTRY.itemsize, sentence))
    problems += _backwards(rows["last_offset"].astype(np.int64), _TRANSACTION_ENTRY, "the last offset", strictly=True)
    rows = rows[rows["version"] == 0]
    columns = [rows[name].tolist() for name in AbortedTransaction._fields]
    return Index(list(map(AbortedTransaction, *columns)), problems)


def read_offset_index(segment: SegmentFile) -> list[OffsetIndexEntry]:
    """The entries of the `.index` beside this segment; none if there is no `.index`.

    Raises:
        EvidenceError: the file cannot be opened.
    """
    return [] if segment.index is None else decode_offset_index(segment.index.open(), segment.base_offset).entries


def last_indexed_position(segment: SegmentFile, end: int) -> int:
    """The largest byte position below `end` that the `.index` beside this segment has an entry for; 0 if it has none."""
    if segment.index is None:
        return 0
    rows = _rows(segment.index.open(), _OFFSET_ENTRY)
    rows = rows[: _used(rows["relative_offset"], rows["byte_position"])]
    positions = rows["byte_position"].astype(np.int64)
    return int(positions[positions < end].max(initial=0))


def read_time_index(segment: SegmentFile) -> list[TimeIndexEntry]:
    """The entries of the `.timeindex` beside this segment; none if there is no such file. Raises as `read_offset_index` does."""
    return [] if segment.timeindex is None else decode_time_index(segment.timeindex.open(), segment.base_offset).entries


def read_transaction_index(segment: SegmentFile) -> list[AbortedTransaction]:
    """The aborted transactions of the `.txnindex` beside this segment; none without the file. Raises as `read_offset_index` does."""
    return [] if segment.txnindex is None else decode_transaction_index(segment.txnindex.open()).entries


def find_index_problems(partition: PartitionDirectory) -> Iterator[Finding]:
    """Yield a finding for each problem in the indexes beside the segments that are read."""
    for segment in partition.segments:
        if segment.is_read:
            for file, check in _checks(segment):
                yield from _findings(partition, file, check)


def _checks(segment: SegmentFile) -> Iterator[tuple[EvidenceFile, Callable[[memoryview], list[IndexProblem]]]]:
    if segment.index is not None:
        yield segment.index, lambda buffer: _offset_index_problems(buffer, segment)
    if segment.timeindex is not None:
        yield segment.timeindex, lambda buffer: decode_time_index(buffer, segment.base_offset).problems
    if segment.txnindex is not None:
        yield segment.txnindex, lambda buffer: decode_transaction_index(buffer).problems


def _findings(partition: PartitionDirectory, file: EvidenceFile, check: Callable[[memoryview], list[IndexProblem]]) -> Iterator[Finding]:
    try:
        problems = check(file.open())
    except EvidenceError as error:
        problems = [IndexProblem("index_unreadable", 0, error.message)]
    for problem in problems:
        yield Finding(
            code=problem.code,
            sentence=problem.sentence,
            replica=partition.replica,
            offsets_partition=partition.offsets_partition,
            path=file.path,
            byte_position=problem.byte_position,
            remedy=_REMEDY,
        )


def _offset_index_problems(buffer: memoryview, segment: SegmentFile) -> list[IndexProblem]:
    index = decode_offset_index(buffer, segment.base_offset)
    beyond = next((number for number, entry in enumerate(index.entries) if entry.byte_position >= segment.size_bytes), None)
    if beyond is None:
        return index.problems
    sentence = (
        f"an entry points at byte {index.entries[beyond].byte_position} of a segment of {segment.size_bytes} bytes; the segment was cut"
    )
    return [*index.problems, IndexProblem("index_beyond_segment", beyond * _OFFSET_ENTRY.itemsize, sentence)]


def _rows(buffer: Buffer, entry: np.dtype[np.void]) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    return np.frombuffer(buffer, entry, count=len(buffer) // entry.itemsize)


def _used(offsets: np.ndarray[tuple[int], np.dtype[np.int32]], others: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    """Return the number of entries before the preallocated tail."""
    if not len(offsets) or (offsets[0] == 0 and others[0] == 0):
        return 0
    zeros = np.flatnonzero(offsets[1:] == 0)
    return int(zeros[0]) + 1 if len(zeros) else len(offsets)


def _partial_entry(buffer: Buffer, entry: np.dtype[np.void], kind: str) -> list[IndexProblem]:
    rest = len(buffer) % entry.itemsize
    if not rest:
        return []
    return [IndexProblem("index_partial_entry", len(buffer) - rest, f"{rest} bytes at the end are not a whole entry of a .{kind}")]


def _backwards(
    values: np.ndarray[tuple[int], np.dtype[np.int64]], entry: np.dtype[np.void], what: str, *, strictly: bool
) -> list[IndexProblem]:
    """Return the first place at which these values do not grow as they must."""
    wrong = np.flatnonzero(values[1:] <= values[:-1] if strictly else values[1:] < values[:-1])[:1]
    return [
        IndexProblem("index_backwards", (at + 1) * entry.itemsize, f"{what} goes from {values[at]} to {values[at + 1]}")
        for at in wrong.tolist()
    ]


def _below(values: np.ndarray[tuple[int], np.dtype[np.int64]], entry: np.dtype[np.void], sentence: str) -> list[IndexProblem]:
    return [IndexProblem("index_negative", at * entry.itemsize, sentence) for at in np.flatnonzero(values < 0)[:1].tolist()]
