"""Write new batches in every format and codec, and write batches again that were read.

`encode_batch` writes the bytes that a broker writes for these records. `rewrite_batch` writes an uncompressed batch byte for byte as it
was read, and a compressed one with the same section of records and the same header (size and CRC follow from the stream).

The layouts are those at the head of `batches` and `records`.

Source: DefaultRecordBatch.writeHeader, DefaultRecord.writeTo, LegacyRecord.write, MemoryRecordsBuilder of Kafka 3.8.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

from exhume.codecs.batch_format import (
    CODEC,
    CONTROL,
    DELETE_HORIZON,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_PRODUCER_ID,
    TRANSACTIONAL,
)
from exhume.codecs.batches import Batch, TimestampType
from exhume.codecs.compression import CODECS, compress
from exhume.codecs.kernels.crc32c import crc32c_of
from exhume.codecs.records import Record
from exhume.codecs.wire import Buffer, Reader, Writer, encode_utf8
from exhume.errors import EncodeError

_FORMAT_2_HEAD = struct.Struct(">qiibI")
_FORMAT_2_BODY = struct.Struct(">hiqqqhii")


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to be written. `offset` is its place in the log; a `timestamp_ms` of None is written as -1."""

    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


class BatchFields(TypedDict, total=False):
    """The fields of a batch that a writer may choose: keywords of `encode_batch`."""

    magic: int
    codec: int
    timestamp_type: TimestampType
    partition_leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    last_offset_delta: int | None
    base_timestamp_ms: int | None
    max_timestamp_ms: int | None
    delete_horizon_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """The header of a new batch: the fields of `BatchFields` with their defaults."""

    base_offset: int
    magic: int = 2
    codec: int = 0
    timestamp_type: TimestampType = "CreateTime"
    partition_leader_epoch: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    is_control: bool = False
    last_offset_delta: int | None = None
    base_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None
    delete_horizon_ms: int | None = None


def encode_batch(records: Sequence[NewRecord], *, base_offset: int, **fields: Unpack[BatchFields]) -> bytes:
    """The bytes of one batch holding `records`, in rising order of offsets.

    Format 2 (the default): without records an empty batch as the cleaner leaves it. `last_offset_delta` defaults to the last record's, and
    is larger if compaction removed records at the end. `base_timestamp_ms` defaults to the first record's, `max_timestamp_ms` to the
    largest (under LogAppendTime it is the time of appending). A `delete_horizon_ms` takes the place of the base timestamp.

    Formats 0 and 1: uncompressed one entry per record, compressed one wrapper around them, whose inner offsets count from `base_offset` in
    format 1. Leave each field that these formats lack at its default.

    Raises:
        EncodeError: a value does not fit, or the format has no place for it.
    """
    header = _Header(base_offset=base_offset, **fields)
    if header.magic == 2:
        return _encode_format_2(records, header)
    _refuse_unfit(records, header)
    return _encode_legacy(records, header)


def _encode_format_2(records: Sequence[NewRecord], header: _Header) -> bytes:
    stamps = [_raw_timestamp(record.timestamp_ms) for record in records]
    base_timestamp = header.base_timestamp_ms if header.base_timestamp_ms is not None else stamps[0] if stamps else -1
    base_field = base_timestamp if header.delete_horizon_ms is None else header.delete_horizon_ms
    attributes = (
        # An empty batch has nothing to compress, and Kafka clears its codec.
        (header.codec if records else 0)
        | LOG_APPEND_TIME * (header.timestamp_type == "LogAppendTime")
        | TRANSACTIONAL * header.is_transactional
        | CONTROL * header.is_control
        | DELETE_HORIZON * (header.delete_horizon_ms is not None)
    )
    section = b"".join(
        _format_2_record(record, timestamp_delta=stamp - base_field, offset_delta=record.offset - header.base_offset)
        for record, stamp in zip(records, stamps, strict=True)
    )
    last_delta = records[-1].offset - header.base_offset if records else 0
    body = (
        attributes,
        last_delta if header.last_offset_delta is None else header.last_offset_delta,
        base_field,
        header.max_timestamp_ms if header.max_timestamp_ms is not None else max(stamps, default=-1),
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        len(records),
    )
    return _format_2_batch(header.base_offset, header.partition_leader_epoch, body, section)


def _refuse_unfit(records: Sequence[NewRecord], header: _Header) -> None:
    """Raise an `EncodeError` if formats 0 and 1 have no place for these fields."""
    magic, codec = header.magic, header.codec
    if magic not in (0, 1):
        raise EncodeError(f"batch format {magic} does not exist; the formats are 0, 1 and 2")
    has_producer = header.producer_id != NO_PRODUCER_ID or header.base_sequence != -1
    has_flags = header.is_transactional or header.is_control or header.delete_horizon_ms is not None
    if has_producer or has_flags or header.last_offset_delta is not None or any(record.headers for record in records):
        raise EncodeError(f"format {magic} has no producers, transactions, control records, delete horizons, offset ranges or headers")
    if not records:
        raise EncodeError(f"format {magic} has no empty batches")
    if codec in CODECS and CODECS[codec].first_format > magic:
        raise EncodeError(f"format {magic} has no {CODECS[codec].name}")


def _encode_legacy(records: Sequence[NewRecord], header: _Header) -> bytes:
    magic, codec, max_timestamp = header.magic, header.codec, header.max_timestamp_ms
    time_bit = LOG_APPEND_TIME if magic == 1 and header.timestamp_type == "LogAppendTime" else 0
    append_time = max_timestamp if time_bit else None
    stamps = [_raw_timestamp(record.timestamp_ms if append_time is None else append_time) for record in records]
    relative_to = header.base_offset if codec and magic == 1 else 0
    entries = b"".join(
        _legacy_entry(record.key, record.value, offset=record.offset - relative_to, magic=magic, attributes=time_bit, timestamp=stamp)
        for record, stamp in zip(records, stamps, strict=True)
    )
    if codec == 0:
        return entries
    wrapper_timestamp = max(stamps) if max_timestamp is None else max_timestamp
    stream = compress(codec, entries, magic=magic)
    return _legacy_entry(None, stream, offset=records[-1].offset, magic=magic, attributes=codec | time_bit, timestamp=wrapper_timestamp)


def rewrite_batch(batch: Batch, records: Sequence[Record], buffer: Buffer) -> bytes:
    """`batch` and its `records` as bytes again; `buffer` is the buffer that it was read from (it has the wrapper's own key).

    Only the section of records is encoded again: all header fields stay the same, including the record count.
    """
    if batch.magic == 2:
        section = b"".join(
            _format_2_record(r, timestamp_delta=r.stored_timestamp_ms or 0, offset_delta=r.stored_offset, attributes=r.attributes)
            for r in records
        )
        base_field = _raw_timestamp(batch.base_timestamp_ms if batch.delete_horizon_ms is None else batch.delete_horizon_ms)
        base_offset = batch.base_offset or 0
        body = (
            batch.attributes,
            batch.last_offset - base_offset,
            base_field,
            _raw_timestamp(batch.max_timestamp_ms),
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.record_count or 0,
        )
        leader_epoch = -1 if batch.partition_leader_epoch is None else batch.partition_leader_epoch
        return _format_2_batch(base_offset, leader_epoch, body, section)
    entries = b"".join(
        _legacy_entry(r.key, r.value, offset=r.stored_offset, magic=r.magic, attributes=r.attributes, timestamp=r.stored_timestamp_ms)
        for r in records
    )
    if batch.codec == 0:
        return entries
    wrapper_key = Reader(buffer, batch.byte_position + HEADER_BYTES[batch.magic] - 8, batch.end_position).nullable_blob()
    stream = compress(batch.codec, entries, magic=batch.magic)
    return _legacy_entry(
        wrapper_key,
        stream,
        offset=batch.last_offset,
        magic=batch.magic,
        attributes=batch.attributes,
        timestamp=batch.max_timestamp_ms,
    )


def _raw_timestamp(timestamp_ms: int | None) -> int:
    return -1 if timestamp_ms is None else timestamp_ms


def _format_2_record(record: NewRecord | Record, *, timestamp_delta: int, offset_delta: int, attributes: int = 0) -> bytes:
    body = Writer()
    body.int8(attributes)
    body.varlong(timestamp_delta)
    body.varint(offset_delta)
    _write_varint_bytes(body, record.key)
    _write_varint_bytes(body, record.value)
    body.varint(len(record.headers))
    for name, content in record.headers:
        _write_varint_bytes(body, encode_utf8(name))
        _write_varint_bytes(body, content)
    framed = Writer()
    framed.varint(len(body.data))
    framed.raw(body.data)
    return framed.to_bytes()


def _write_varint_bytes(writer: Writer, content: bytes | None) -> None:
    writer.varint(-1 if content is None else len(content))
    if content is not None:
        writer.raw(content)


def _format_2_batch(base_offset: int, leader_epoch: int, body: tuple[int, ...], section: bytes) -> bytes:
    """A whole batch; `body` are the header fields from the attributes on, which the CRC covers."""
    checked_head = _pack(_FORMAT_2_BODY, *body)
    stream = compress(body[0] & CODEC, section, magic=2)
    crc = crc32c_of(checked_head + stream)
    size = HEADER_BYTES[2] - LOG_OVERHEAD + len(stream)
    return _pack(_FORMAT_2_HEAD, base_offset, size, leader_epoch, 2, crc) + checked_head + stream


def _legacy_entry(key: bytes | None, value: bytes | None, *, offset: int, magic: int, attributes: int, timestamp: int | None) -> bytes:
    body = Writer()
    body.raw(_pack(_LEGACY_HEAD, magic, attributes))
    if magic == 1:
        body.int64(_raw_timestamp(timestamp))
    body.nullable_blob(key)
    body.nullable_blob(value)
    return _pack(_LEGACY_FRAME, offset, 4 + len(body.data), zlib.crc32(body.data)) + body.to_bytes()


def _pack(layout: struct.Struct, *values: int) -> bytes:
    try:
        return layout.pack(*values)
    except struct.error as error:
        raise EncodeError(f"a header field does not fit: {error}") from error


_LEGACY_FRAME = struct.Struct(">qiI")
_LEGACY_HEAD = struct.Struct(">BB")
