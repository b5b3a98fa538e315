"""Batches and records of a log, one by one, as rows: the slow twin of the tables that `codecs.columns` makes of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from exhume.arrow_rows import batches_of
from exhume.codecs import schemas
from exhume.codecs.compression import codec_name
from exhume.codecs.decoded_tables import DUMP, decode_table, dump_table
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import decode_control_record, decode_record
from exhume.codecs.records import Record
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader

Row = dict[str, Any]


def batches(reader: SegmentReader) -> pa.Table:
    """A row of `schemas.BATCHES` for each batch."""
    return _table(schemas.BATCHES, batches_of(schemas.BATCHES, map(_batch_row, reader.batches())))


def records(reader: SegmentReader, wanted: RecordFilter | None = None) -> pa.Table:
    """A row of `schemas.RECORDS` for each wanted record."""
    return _table(schemas.RECORDS, _records(reader, wanted or RecordFilter()))


def typed(reader: SegmentReader, name: str, wanted: RecordFilter | None = None) -> pa.Table:
    """The typed table of one record type, or `end_txn_markers`."""
    schema = schemas.END_TXN_MARKERS if name == "end_txn_markers" else schemas.decoded()[name]
    return _table(schema, (decode_table(name, batch) for batch in _records(reader, wanted or RecordFilter())))


def dump(reader: SegmentReader, *, raw: bool = False) -> pa.Table:
    """The dump of all records."""
    return _table(DUMP, (dump_table(batch, raw=raw) for batch in _records(reader, RecordFilter())))


def _table(schema: pa.Schema, found: Iterator[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(found, schema)


def _records(reader: SegmentReader, wanted: RecordFilter) -> Iterator[pa.RecordBatch]:
    return batches_of(schemas.RECORDS, _record_rows(reader, wanted))


def _record_rows(reader: SegmentReader, wanted: RecordFilter) -> Iterator[Row]:
    for found in reader.batches():
        if wanted.offsets_partitions is not None and found.partition.offsets_partition not in wanted.offsets_partitions:
            continue
        decode = decode_control_record if found.batch.is_control else decode_record
        for record in found.records():
            decoded = decode(record.key, None)
            is_placed = wanted.accepts_position(record.record_offset, record.timestamp_ms)
            if is_placed and (not wanted.needs_key or wanted.accepts_key(decoded)):
                yield _record_row(found, record, None if found.batch.is_control else decoded.number)


def _batch_columns(found: SegmentBatch) -> Row:
    batch = found.batch
    has_producer = batch.producer_id != -1
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


def _batch_row(found: SegmentBatch) -> Row:
    batch = found.batch
    base_offset, record_count = batch.base_offset, batch.record_count
    if base_offset is None or record_count is None:
        offsets = [record.record_offset for record in found.records()]
        base_offset, record_count = next(iter(offsets), None), len(offsets)
    return {
        **_batch_columns(found),
        "size_bytes": batch.size_bytes,
        "base_offset": base_offset,
        "last_offset": batch.last_offset,
        "base_timestamp_ms": batch.base_timestamp_ms,
        "max_timestamp_ms": batch.max_timestamp_ms,
        "base_sequence": None if batch.base_sequence == -1 else batch.base_sequence,
        "delete_horizon_ms": batch.delete_horizon_ms,
        "record_count": record_count,
        "crc": batch.crc,
    }


def _record_row(found: SegmentBatch, record: Record, record_type: int | None) -> Row:
    return {
        **_batch_columns(found),
        "record_offset": record.record_offset,
        "timestamp_ms": record.timestamp_ms,
        "timestamp_type": record.timestamp_type,
        "magic": record.magic,
        "sequence": record.sequence,
        "record_type": record_type,
        "key": record.key,
        "value": record.value,
        "headers": [{"key": key, "value": value} for key, value in record.headers],
    }
