"""Batches of a log that is to be written, and the bytes of such a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.batches import Batch, BatchWalk
from exhume.codecs.records import read_records

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
