"""Batches and records of segments as Arrow record batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from exhume.arrow_rows import batches_of
from exhume.codecs import schemas
from exhume.codecs.batch_format import NO_PRODUCER_ID
from exhume.codecs.batches import Batch
from exhume.codecs.compression import codec_name
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import Decoded, decode_control_record, decode_record
from exhume.codecs.records import Record
from exhume.codecs.schemas import BatchRow, CrcVerdict, InFile, RecordRow
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader


def batch_tables(reader: SegmentReader) -> Iterator[pa.RecordBatch]:
    """A row of `schemas.BATCHES` for each batch."""
    if not reader.is_worth_compiling:
        yield from batches_of(schemas.BATCHES, map(_batch_row, reader.batches()))
        return
    from exhume.codecs.columns import tables

    yield from tables.tables_of_batches(reader, lambda batches: batches_of(schemas.BATCHES, map(_batch_row, batches)))


def record_batches(reader: SegmentReader, wanted: RecordFilter) -> Iterator[pa.RecordBatch]:
    """A row of `schemas.RECORDS` for each wanted record."""
    if not reader.is_worth_compiling:
        yield from tables_of_batches(reader.batches(wanted.offsets_partitions), wanted)
        return
    from exhume.codecs.columns.record_columns import record_table
    from exhume.codecs.columns.tables import tables_of_records

    yield from tables_of_records(reader, wanted, record_table, lambda batches: tables_of_batches(batches, wanted))


def tables_of_batches(batches: Iterator[SegmentBatch], wanted: RecordFilter) -> Iterator[pa.RecordBatch]:
    """A row of `schemas.RECORDS` for each wanted record of these batches, without kernels."""
    return batches_of(schemas.RECORDS, (_record_row(*match) for match in _matching(batches, wanted)))


def matching_records(reader: SegmentReader, wanted: RecordFilter) -> Iterator[tuple[SegmentBatch, Record, Decoded]]:
    """Each wanted record, with its batch and its decoded key (the value is not decoded)."""
    return _matching(reader.batches(wanted.offsets_partitions), wanted)


def rows_of(found: SegmentBatch, records: Iterable[Record], wanted: RecordFilter) -> Iterator[RecordRow]:
    """A row of `schemas.RECORDS` for each wanted record of these, which are records of one batch."""
    return (_record_row(found, record, decoded) for record, decoded in _wanted_of(found, records, wanted))


def _matching(batches: Iterator[SegmentBatch], wanted: RecordFilter) -> Iterator[tuple[SegmentBatch, Record, Decoded]]:
    return ((found, record, decoded) for found in batches for record, decoded in _wanted_of(found, found.records(), wanted))


def _wanted_of(found: SegmentBatch, records: Iterable[Record], wanted: RecordFilter) -> Iterator[tuple[Record, Decoded]]:
    decode = decode_control_record if found.batch.is_control else decode_record
    for record in records:
        if wanted.accepts_position(record.record_offset, record.timestamp_ms):
            decoded = decode(record.key, None)
            if not wanted.needs_key or wanted.accepts_key(decoded):
                yield record, decoded


class _BatchColumns(InFile):
    """The columns of a batch that each of its records has too."""

    byte_position: int
    partition_leader_epoch: int | None
    producer_id: int | None
    producer_epoch: int | None
    is_transactional: bool
    crc_status: CrcVerdict
    magic: int
    codec: str
    timestamp_type: str | None
    is_control: bool


def _batch_columns(found: SegmentBatch) -> _BatchColumns:
    batch = found.batch
    has_producer = batch.producer_id != NO_PRODUCER_ID
    return {
        **found.origin,
        "byte_position": batch.byte_position,
        "partition_leader_epoch": batch.partition_leader_epoch,
        "producer_id": batch.producer_id if has_producer else None,
        "producer_epoch": batch.producer_epoch if has_producer else None,
        "is_transactional": batch.is_transactional,
        "crc_status": found.found.crc_status,
        "magic": batch.magic,
        "codec": codec_name(batch.codec),
        "timestamp_type": batch.timestamp_type,
        "is_control": batch.is_control,
    }


def _batch_row(found: SegmentBatch) -> BatchRow:
    batch = found.batch
    return {
        **_batch_columns(found),
        "size_bytes": batch.size_bytes,
        "base_offset": _base_offset(found),
        "last_offset": batch.last_offset,
        "base_timestamp_ms": batch.base_timestamp_ms,
        "max_timestamp_ms": batch.max_timestamp_ms,
        "base_sequence": None if batch.base_sequence == -1 else batch.base_sequence,
        "delete_horizon_ms": batch.delete_horizon_ms,
        "record_count": batch.record_count if batch.record_count is not None else len(found.records()),
        "crc": batch.crc,
    }


def _base_offset(found: SegmentBatch) -> int | None:
    batch: Batch = found.batch
    if batch.base_offset is not None:
        return batch.base_offset
    return next((record.record_offset for record in found.records()), None)


def _record_row(found: SegmentBatch, record: Record, decoded: Decoded) -> RecordRow:
    return {
        **_batch_columns(found),
        "record_offset": record.record_offset,
        "timestamp_ms": record.timestamp_ms,
        "timestamp_type": record.timestamp_type,
        "magic": record.magic,
        "sequence": record.sequence,
        "record_type": None if found.batch.is_control else decoded.number,
        "key": record.key,
        "value": record.value,
        "headers": [{"key": key, "value": value} for key, value in record.headers],
    }
