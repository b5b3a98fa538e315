"""Producer snapshots: the state of each producer when the log reached the offset in the file's name.

    0 version int16 (1) | 2 crc uint32 (CRC-32C of all bytes from 6 on) | 6 count int32 | 10 entries of 46 bytes
    entry: producer id int64 | producer epoch int16 | last sequence int32 | last offset int64 | offset delta int32 | timestamp int64
           coordinator epoch int32 | current transaction's first offset int64

A snapshot named N covers the record offsets below N. The format is the same from 0.11 to 4.x.

Source: ProducerStateManager.readSnapshot of Kafka 3.8.
"""

from __future__ import annotations

from dataclasses import dataclass

from exhume.codecs.kernels.crc32c import crc32c_of
from exhume.codecs.wire import Buffer, Reader
from exhume.errors import CrcMismatch, LengthOverrun, UnknownVersion

_ENTRY_BYTES = 46
_CRC_START = 6
_REMEDY = "No answer depends on it: exhume reads transactions from the log"


@dataclass(frozen=True, slots=True)
class ProducerState:
    """One producer. `last_offset`, `last_sequence` and `offset_delta` describe its last batch, None if the log only had a marker.

    `current_txn_first_offset` is None unless a transaction was open, `coordinator_epoch` unless a marker was written.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int | None
    last_offset: int | None
    offset_delta: int | None
    timestamp_ms: int
    coordinator_epoch: int | None
    current_txn_first_offset: int | None


@dataclass(frozen=True, slots=True)
class ProducerSnapshot:
    """All producers of one snapshot, in the order of the file."""

    version: int
    producers: tuple[ProducerState, ...]


def read_producer_snapshot(data: Buffer) -> ProducerSnapshot:
    """The producers that this snapshot holds.

    Raises:
        UnknownVersion: not version 1.
        CrcMismatch: the bytes changed, or bytes follow the last entry.
        DecodeError: the file is cut (`Underflow`), or announces more entries than it holds (`LengthOverrun`).
    """
    reader = Reader(data)
    version = reader.int16()
    if version != 1:
        raise UnknownVersion(f"version {version} of a producer snapshot; only version 1 exists", byte_position=0, remedy=_REMEDY)
    expected = reader.uint32()
    found = crc32c_of(memoryview(data)[_CRC_START:])
    if found != expected:
        raise CrcMismatch(
            f"the checksum of this producer snapshot is {expected:08x}, that of its bytes {found:08x}",
            expected=expected,
            found=found,
            byte_position=2,
        )
    count = reader.int32()
    if not 0 <= count * _ENTRY_BYTES <= reader.remaining:
        raise LengthOverrun(f"{count} producers in {reader.remaining} bytes", byte_position=_CRC_START, remedy=_REMEDY)
    return ProducerSnapshot(version, tuple(_read_producer(reader) for _ in range(count)))


def _read_producer(reader: Reader) -> ProducerState:
    producer_id, producer_epoch, last_sequence = reader.int64(), reader.int16(), reader.int32()
    last_offset, offset_delta, timestamp_ms = reader.int64(), reader.int32(), reader.int64()
    coordinator_epoch, current_txn_first_offset = reader.int32(), reader.int64()
    has_batch = last_offset >= 0
    return ProducerState(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        last_sequence=last_sequence if has_batch else None,
        last_offset=last_offset if has_batch else None,
        offset_delta=offset_delta if has_batch else None,
        timestamp_ms=timestamp_ms,
        coordinator_epoch=None if coordinator_epoch == -1 else coordinator_epoch,
        current_txn_first_offset=None if current_txn_first_offset == -1 else current_txn_first_offset,
    )
