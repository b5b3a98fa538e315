"""Record batches of formats 0, 1 and 2: finding them in a buffer and reading their headers.

A batch begins, in every format, with `base or last offset int64`, `size int32` (of all that follows), and has its magic at byte 16.

    format 0, 1   12 crc uint32 | 16 magic | 17 attributes int8 | [1: 18 timestamp int64] | key int32+bytes | value int32+bytes
                  one message, or a wrapper whose value is a compressed run of messages; the offset is that of its last message
    format 2      12 leader epoch int32 | 16 magic | 17 crc uint32 | 21 attributes int16 | 23 last offset delta int32
                  27 base timestamp int64 (or delete horizon) | 35 max timestamp int64 | 43 producer id int64 | 51 producer epoch int16
                  53 base sequence int32 | 57 record count int32 | 61 records, plain or one compressed stream

The CRC of formats 0 and 1 (CRC-32) covers everything from the magic on; that of format 2 (CRC-32C) everything from the attributes
on: brokers rewrite base offset and leader epoch and must not recompute it.

    attributes    bits 0-2 codec, 3 LogAppendTime; format 2 also 4 transactional, 5 control, 6 delete horizon

Source: FileLogInputStream, DefaultRecordBatch, LegacyRecord, AbstractLegacyRecordBatch of Kafka 3.8.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from exhume.codecs.batch_format import (
    CHECKED_FROM,
    CODEC,
    CONTROL,
    DELETE_HORIZON,
    HEADER_BYTES,
    HEADER_UP_TO_MAGIC,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_PRODUCER_ID,
    TRANSACTIONAL,
)
from exhume.codecs.kernels.crc32c import crc32c_of
from exhume.codecs.wire import Buffer
from exhume.errors import DecodeError, Underflow, UnknownVersion

CrcStatus = Literal["ok", "mismatch", "not_checked", "unreadable"]
TimestampType = Literal["NoTimestampType", "CreateTime", "LogAppendTime"]
_MOST_SIZE_BYTES = 0x7FFFFFFF
EndReason = Literal["end", "short_tail", "cut_batch", "size_too_small", "bad_magic"]

_LEGACY = struct.Struct(">qiIBB")
_FORMAT_2 = struct.Struct(">qiibIhiqqqhii")
_OFFSET_AND_SIZE = struct.Struct(">qi")
_INT64 = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Batch:
    """The header of one batch (formats 0 and 1: of one log entry), at `buffer[byte_position : byte_position + size_bytes]`.

    `base_offset` is None for a compressed wrapper of formats 0 and 1 until its messages are read; `base_timestamp_ms` is None
    if the field holds a delete horizon or -1. Producer fields are -1 as on disk (formats 0 and 1: -1). `record_count` is the number in the
    header (formats 0 and 1: None for a wrapper, else 1).
    """

    byte_position: int
    size_bytes: int
    base_offset: int | None
    last_offset: int
    magic: int
    crc: int
    attributes: int
    codec: int
    timestamp_type: TimestampType
    base_timestamp_ms: int | None
    max_timestamp_ms: int | None
    partition_leader_epoch: int | None
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    delete_horizon_ms: int | None
    record_count: int | None

    @property
    def end_position(self) -> int:
        """The position of the first byte after the batch."""
        return self.byte_position + self.size_bytes

    @property
    def next_offset(self) -> int:
        """The record offset after the last one, as a Java long: the smallest long follows the largest."""
        return wrap_int64(self.last_offset + 1)


@dataclass(frozen=True, slots=True)
class WalkEnd:
    """The position at which a walk ended, and the reason.

    `end`: nothing is left. `short_tail`: 17 bytes or less, which Kafka ignores. `cut_batch`: the batch ends beyond the buffer, which Kafka
    takes for the end of the log. `size_too_small`, `bad_magic`: no batch of that size or format exists; Kafka fails here.
    """

    byte_position: int
    reason: EndReason


class BatchWalk:
    """The batches of `buffer[position:end]` as Kafka's sequential reader finds them, with no checksum verified.

    Iterate, then read `end`: damage raises no error, it ends the walk. `end` is None until then.
    """

    def __init__(self, buffer: Buffer, position: int = 0, end: int | None = None) -> None:
        self._buffer = buffer
        self._position = position
        self._limit = len(buffer) if end is None else end
        self.end: WalkEnd | None = None

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        reason = end_reason(self._buffer, self._position, self._limit)
        if reason is not None:
            self.end = WalkEnd(self._position, reason)
            raise StopIteration
        batch = read_header_fields(self._buffer, self._position)
        self._position = batch.end_position
        return batch


def end_reason(buffer: Buffer, position: int, end: int) -> EndReason | None:
    """Return the reason why no batch can be read at `position`; None if one can."""
    if end - position <= HEADER_UP_TO_MAGIC:
        return "end" if position >= end else "short_tail"
    size = _OFFSET_AND_SIZE.unpack_from(buffer, position)[1]
    if size < HEADER_BYTES[0] - LOG_OVERHEAD:
        return "size_too_small"
    if position + LOG_OVERHEAD + size > end:
        return "cut_batch"
    magic = buffer[position + 16]
    if magic not in HEADER_BYTES:
        return "bad_magic"
    # Kafka steps over a batch that is too small for its own header, and fails when it reads the header.
    return "size_too_small" if LOG_OVERHEAD + size < HEADER_BYTES[magic] else None


def overflows(buffer: Buffer, position: int) -> bool:
    """Return True if the size of the batch here, with its offset and size fields, exceeds 32 bits: Kafka throws where it reads records."""
    return bool(_OFFSET_AND_SIZE.unpack_from(buffer, position)[1] > _MOST_SIZE_BYTES - LOG_OVERHEAD)


def read_batch_header(buffer: Buffer, position: int) -> Batch:
    """The header of the batch at `position`. The body may reach beyond the end of the buffer, the header may not.

    Raises:
        UnknownVersion: the magic is not 0, 1 or 2.
        DecodeError: the size is too small for a batch of that format, or the header is cut (`Underflow`).
    """
    end = len(buffer)
    if end - position < HEADER_UP_TO_MAGIC:
        raise Underflow(f"the batch header is cut: only {end - position} bytes are left", byte_position=position)
    size = _OFFSET_AND_SIZE.unpack_from(buffer, position)[1]
    magic = buffer[position + 16]
    if size < HEADER_BYTES[0] - LOG_OVERHEAD:
        raise DecodeError(f"the size of the batch is {size} bytes, too small for a header", byte_position=position)
    if magic not in HEADER_BYTES:
        raise UnknownVersion(f"magic {magic - 256 if magic > 127 else magic} is not a batch format (0, 1 or 2)", byte_position=position)
    if LOG_OVERHEAD + size < HEADER_BYTES[magic]:
        raise DecodeError(f"a batch of format {magic} cannot have a size of {size} bytes", byte_position=position)
    if end - position < HEADER_BYTES[magic]:
        raise Underflow(f"the batch header is cut: only {end - position} bytes are left", byte_position=position)
    return read_header_fields(buffer, position)


def read_header_fields(buffer: Buffer, position: int, magic: int | None = None) -> Batch:
    """Read the header fields at `position` without a check, as format `magic` (default: the magic in the header).

    The caller has checked that the header ends within the buffer.
    """
    magic = buffer[position + 16] if magic is None else magic
    return _read_format_2(buffer, position) if magic == 2 else _read_legacy(buffer, position, magic)


def _read_legacy(buffer: Buffer, position: int, magic: int) -> Batch:
    offset, size, crc, _, attributes = _LEGACY.unpack_from(buffer, position)
    codec = attributes & CODEC
    timestamp_ms = None if magic == 0 else timestamp_or_none(_INT64.unpack_from(buffer, position + 18)[0])
    timestamp_type: TimestampType = "LogAppendTime" if attributes & LOG_APPEND_TIME else "CreateTime"
    return Batch(
        byte_position=position,
        size_bytes=LOG_OVERHEAD + size,
        base_offset=None if codec else offset,
        last_offset=offset,
        magic=magic,
        crc=crc,
        attributes=attributes,
        codec=codec,
        timestamp_type="NoTimestampType" if magic == 0 else timestamp_type,
        base_timestamp_ms=None if codec else timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        partition_leader_epoch=None,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=-1,
        base_sequence=-1,
        is_transactional=False,
        is_control=False,
        delete_horizon_ms=None,
        record_count=None if codec else 1,
    )


def _read_format_2(buffer: Buffer, position: int) -> Batch:
    (
        base_offset,
        size,
        leader_epoch,
        _,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    ) = _FORMAT_2.unpack_from(buffer, position)
    has_horizon = bool(attributes & DELETE_HORIZON)
    return Batch(
        byte_position=position,
        size_bytes=LOG_OVERHEAD + size,
        base_offset=base_offset,
        last_offset=wrap_int64(base_offset + last_offset_delta),
        magic=2,
        crc=crc,
        attributes=attributes,
        codec=attributes & CODEC,
        timestamp_type="LogAppendTime" if attributes & LOG_APPEND_TIME else "CreateTime",
        base_timestamp_ms=None if has_horizon else timestamp_or_none(base_timestamp),
        max_timestamp_ms=timestamp_or_none(max_timestamp),
        partition_leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=bool(attributes & TRANSACTIONAL),
        is_control=bool(attributes & CONTROL),
        delete_horizon_ms=base_timestamp if has_horizon else None,
        record_count=record_count,
    )


def timestamp_or_none(timestamp_ms: int) -> int | None:
    """A timestamp as written, None for -1, which means "none"."""
    return None if timestamp_ms == -1 else timestamp_ms


def first_offset(batch: Batch) -> int:
    """The first offset of the batch, as far as its header has it: a wrapper of formats 0 and 1 has its last only."""
    return batch.last_offset if batch.base_offset is None else batch.base_offset


def wrap_int64(value: int) -> int:
    """`value` as Java's long holds it: damaged offsets and timestamps may add up to more than 63 bits."""
    return value if -(2**63) <= value < 2**63 else (value + 2**63) % 2**64 - 2**63


def crc_matches(buffer: Buffer, batch: Batch) -> bool:
    """Return True if the stored checksum matches the stored bytes; False also for a batch that is cut."""
    return batch.end_position <= len(buffer) and checksum(buffer, batch, batch.end_position) == batch.crc


def checksum(buffer: Buffer, batch: Batch, end: int) -> int:
    """Return the checksum that `batch` would have if it ended at `end` and its magic in the buffer were `batch.magic`."""
    start = batch.byte_position + CHECKED_FROM[batch.magic]
    body = memoryview(buffer)[start:end]
    if batch.magic == 2:
        return crc32c_of(body)
    return zlib.crc32(body[1:], zlib.crc32(bytes((batch.magic,))))
