"""Batches that the careful reader found, as rows of `kernels.scan`, and their records as columns of `kernels.records`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from exhume.codecs import schemas
from exhume.codecs.batch_format import CODEC, CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, NOT_SET, TRANSACTIONAL
from exhume.codecs.batches import Batch, CrcStatus
from exhume.codecs.columns.arrow import Flags
from exhume.codecs.kernels import records, scan
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.codecs.records import Record
from exhume.codecs.segment_reader import SegmentBatch

#: The results of a checksum, in the order of the numbers in `scan.IS_SOUND`.
CRC_STATUSES: Sequence[CrcStatus] = ("mismatch", "ok", "not_checked", "unreadable")

_HEADERS = schemas.RECORDS.field("headers").type


class CarefulBatch:
    """A batch that the careful reader found.

    It reads the records at once if `with_records` is True, or if the header has no base offset or no record count.
    """

    __slots__ = ("_records", "found")

    def __init__(self, found: SegmentBatch, *, with_records: bool) -> None:
        self.found = found
        self._records: list[Record] | None = None
        if with_records or found.batch.base_offset is None or found.batch.record_count is None:
            self._records = found.records()

    def records(self) -> list[Record]:
        """Return the records that can be read; the first call adds findings for those that cannot."""
        if self._records is None:
            self._records = self.found.records()
        return self._records

    @property
    def base_offset(self) -> int | None:
        """The base offset of the header, else the offset of the first record; None if there is no record."""
        if self.found.batch.base_offset is not None:
            return self.found.batch.base_offset
        return next((record.record_offset for record in self.records()), None)

    @property
    def first_offset(self) -> int:
        """The record offset that this batch begins with; for a wrapper of formats 0 and 1 the smallest of its records."""
        batch = self.found.batch
        if batch.base_offset is not None:
            return batch.base_offset
        return min((record.record_offset for record in self.records()), default=batch.last_offset)

    @property
    def record_count(self) -> int:
        """The number of records that were read; the number in the header if none was read."""
        return len(self._records) if self._records is not None else self.found.batch.record_count or 0

    @property
    def size_bytes(self) -> int:
        """The bytes of the keys and values that were read, at least those of the batch."""
        unfolded = sum(len(record.key or b"") + len(record.value or b"") for record in self._records or ())
        return max(unfolded, self.found.batch.size_bytes)


def has_base_offsets(batches: Iterable[CarefulBatch]) -> Flags:
    """Return False for each batch whose base offset is unknown."""
    return np.array([each.base_offset is not None for each in batches], np.bool_)


def header_rows(batches: Sequence[CarefulBatch]) -> Int64s:
    """Return the headers of these batches as rows of `kernels.scan`.

    `IS_SOUND` is an index of `CRC_STATUSES`. A base offset that is unknown is the last offset.
    """
    return np.array([_header_row(each) for each in batches], np.int64).reshape(-1, scan.COLUMNS)


def _header_row(each: CarefulBatch) -> list[int]:
    batch = each.found.batch
    base_offset = each.base_offset
    row = [0] * scan.COLUMNS
    row[scan.POSITION], row[scan.SIZE] = batch.byte_position, batch.size_bytes
    row[scan.BASE_OFFSET] = batch.last_offset if base_offset is None else base_offset
    row[scan.LAST_OFFSET] = batch.last_offset
    row[scan.ATTRIBUTES] = _attributes(batch)
    row[scan.RECORD_COUNT] = len(each.records()) if batch.record_count is None else batch.record_count
    base_timestamp_ms = batch.base_timestamp_ms if batch.delete_horizon_ms is None else batch.delete_horizon_ms
    row[scan.BASE_TIMESTAMP] = NOT_SET if base_timestamp_ms is None else base_timestamp_ms
    row[scan.MAX_TIMESTAMP] = NOT_SET if batch.max_timestamp_ms is None else batch.max_timestamp_ms
    row[scan.PRODUCER_ID], row[scan.PRODUCER_EPOCH], row[scan.BASE_SEQUENCE] = batch.producer_id, batch.producer_epoch, batch.base_sequence
    row[scan.LEADER_EPOCH] = scan.NO_LEADER_EPOCH if batch.partition_leader_epoch is None else batch.partition_leader_epoch
    row[scan.CRC], row[scan.IS_SOUND], row[scan.MAGIC] = batch.crc, CRC_STATUSES.index(each.found.found.crc_status), batch.magic
    return row


def _attributes(batch: Batch) -> int:
    """Return the attributes that Kafka knows; the header of an old message may have other bits."""
    attributes = batch.attributes & (CODEC | LOG_APPEND_TIME)
    attributes |= TRANSACTIONAL if batch.is_transactional else 0
    attributes |= CONTROL if batch.is_control else 0
    return attributes | (DELETE_HORIZON if batch.delete_horizon_ms is not None else 0)


@dataclass(frozen=True, slots=True)
class RecordDetails:
    """What only records have that the careful reader read: headers, and magic and timestamp type of messages in a wrapper."""

    headers: pa.Array
    magics: pa.Array
    timestamp_types: pa.Array

    def take(self, wanted: Int64s) -> RecordDetails:
        """Return the details of the records with these numbers."""
        places = pa.array(wanted)
        return RecordDetails(self.headers.take(places), self.magics.take(places), self.timestamp_types.take(places))


def record_columns(
    batches: Sequence[CarefulBatch], most_records: int, most_bytes: int
) -> Iterator[tuple[Bytes, Int64s, RecordDetails | None]]:
    """Yield the records of these batches: their bytes, columns of `kernels.records`, and details if any record needs them.

    Each part has at most so many records, and about so many bytes. If there is no record, yields one empty part.
    """
    part: list[tuple[int, Batch, Record]] = []
    size_bytes = 0
    for number, each in enumerate(batches):
        for record in each.records():
            part.append((number, each.found.batch, record))
            size_bytes += len(record.key or b"") + len(record.value or b"")
            if len(part) >= most_records or size_bytes >= most_bytes:
                yield _columns(part)
                part, size_bytes = [], 0
    if part or not any(each.records() for each in batches):
        yield _columns(part)


def _columns(part: Sequence[tuple[int, Batch, Record]]) -> tuple[Bytes, Int64s, RecordDetails | None]:
    columns = np.empty((records.COLUMNS, len(part)), np.int64)
    pieces: list[bytes] = []
    position = 0
    for place, (number, batch, record) in enumerate(part):
        key, value = record.key, record.value
        columns[:, place] = (
            number,
            record.record_offset,
            records.NO_TIMESTAMP if record.timestamp_ms is None else record.timestamp_ms,
            records.MISSING if record.sequence is None else record.sequence,
            records.MISSING if batch.is_control or key is None or len(key) < 2 else int.from_bytes(key[:2], "big", signed=True),
            position,
            -1 if key is None else len(key),
            position + len(key or b""),
            -1 if value is None else len(value),
        )
        pieces += (key or b"", value or b"")
        position += len(key or b"") + len(value or b"")
    is_plain = all(not record.headers and (record.magic, record.timestamp_type) == (b.magic, b.timestamp_type) for _, b, record in part)
    return np.frombuffer(b"".join(pieces) or b"\0", np.uint8), columns, None if is_plain else _details([each[-1] for each in part])


def _details(found: Sequence[Record]) -> RecordDetails:
    headers = [[{"key": key, "value": value} for key, value in record.headers] for record in found]
    magics, timestamp_types = (schemas.RECORDS.field(name).type for name in ("magic", "timestamp_type"))
    return RecordDetails(
        pa.array(headers, _HEADERS),
        pa.array([record.magic for record in found], magics),
        pa.array([record.timestamp_type for record in found], timestamp_types),
    )
