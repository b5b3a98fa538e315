"""Record batches of formats 0, 1 and 2: finding them in a buffer and reading their headers.

A batch begins, in every format, with `base or last offset int64`, `size int32` (of all that follows), and has its magic at byte 16.

    format 0, 1   12 crc uint32 | 16 magic | 17 attributes int8 | [1: 18 timestamp int64] | key int32+bytes | value int32+bytes
                  one message, or a wrapper whose value is a compressed run of messages; the offset is that of its last message
    format 2      12 leader epoch int32 | 16 magic | 17 crc uint32 | 21 attributes int16 | 23 last offset delta int32
                  27 base timestamp int64 (or delete horizon) | 35 max timestamp int64 | 43 producer id int64 | 51 producer epoch int16
                  53 base sequence int32 | 57 record count int32 | 61 records, plain or one compressed stream

The CRC of formats 0 and 1 (CRC-32) covers everything from the magic on; that of format 2 (CRC-32C) everything from the attributes
on: brokers rewrite base offset and leader epoch and must not recompute it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CrcStatus = Literal["ok", "mismatch", "not_checked", "unreadable"]
TimestampType = Literal["NoTimestampType", "CreateTime", "LogAppendTime"]

CODEC_NAMES = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


@dataclass(frozen=True, slots=True)
class Batch:
    """The header of one batch (formats 0 and 1: of one log entry), at `buffer[byte_position : byte_position + size_bytes]`.

    `base_offset` is None for a compressed wrapper of formats 0 and 1 until its messages are read; `base_timestamp_ms` is None
    where the field holds a delete horizon or nothing. Producer fields are -1 as on disk (formats 0 and 1: -1). `record_count` is as the
    header says (formats 0 and 1: None for a wrapper, else 1).
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
