"""Batches of a log that is to be written, and the bytes of such a log."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.batches import Batch, BatchWalk
from exhume.codecs.records import read_records
from exhume.fixtures.log_writer import offset_commit

KeyValue = tuple[bytes | None, bytes | None]
NO_PRODUCER = -1


@dataclass(frozen=True)
class Written:
    """One batch to be: its records with their place in it (thinning leaves holes), and the header fields that matter."""

    records: tuple[tuple[int, KeyValue], ...]
    size: int
    producer_id: int = NO_PRODUCER
    is_transactional: bool = False
    is_control: bool = False
    codec: int = 0
    gap: int = 0
    magic: int = 2


def encode_log(batches: Sequence[Written], magic: int | None = None) -> tuple[bytes, list[Batch]]:
    """The bytes of these batches, one after the other, and their headers as they are read back; all of them in one format, where one is
    given.

    Formats 0 and 1 have plain batches only: of the others nothing is written but their records, of control batches nothing at all.
    """
    content = bytearray()
    next_offset = 0
    for number, written in enumerate(batches):
        base_offset = next_offset + written.gap
        next_offset = base_offset + written.size
        records = [NewRecord(base_offset + place, 1_000 * number + place, key, value) for place, (key, value) in written.records]
        own_magic = written.magic if magic is None else magic
        if own_magic == 2:
            content += encode_batch(
                records,
                base_offset=base_offset,
                codec=written.codec,
                producer_id=written.producer_id,
                producer_epoch=NO_PRODUCER if written.producer_id == NO_PRODUCER else 1,
                base_sequence=-1 if written.producer_id == NO_PRODUCER or written.is_control else 0,
                is_transactional=written.is_transactional,
                is_control=written.is_control,
                last_offset_delta=written.size - 1,
            )
        elif records and not written.is_control:
            content += encode_batch(records, base_offset=base_offset, magic=own_magic, codec=min(written.codec, 3))
    return bytes(content), list(BatchWalk(bytes(content)))


def first_offset_of(content: bytes, header: Batch) -> int:
    """The record offset that this batch begins with; a wrapper of an old format does not say it."""
    return next((record.record_offset for record in read_records(content, header)), 0) if header.base_offset is None else header.base_offset


def zeros_in_batches(directory: Path, *, count: int, value_bytes: int, codec: int = 4, batches: Sequence[bytes] = ()) -> Path:
    """Write a log of so many batches, each one record whose value ends in so many zeros, and of these batches after them."""
    key, value = offset_commit("g", "t", 0, 1, commit_timestamp_ms=1, version=1)
    batch = bytearray(encode_batch([NewRecord(0, 1_700_000_000_000, key, (value or b"") + bytes(value_bytes))], base_offset=0, codec=codec))
    partition = directory / "__consumer_offsets-0"
    partition.mkdir(parents=True)
    path = partition / f"{0:020d}.log"
    with path.open("wb") as file:
        for number in range(count):
            # The checksum does not cover the base offset.
            struct.pack_into(">q", batch, 0, number)
            file.write(batch)
        file.write(b"".join(batches))
    return path
