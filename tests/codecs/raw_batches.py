"""Batches as bytes: Kafka's own, and such as no writer makes; and how they are read."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import crc32c

from exhume.codecs.batches import read_batch_header
from exhume.codecs.compression import compress
from exhume.codecs.lenient_records import read_records_leniently
from exhume.codecs.records import Record, read_records
from exhume.codecs.wire import Writer

T = 1_600_000_000_000
#: Written by Kafka's own classes, by name.
GOLDEN = {
    name: bytes.fromhex(data)
    for name, data in (
        line.split()
        for line in (Path(__file__).parents[1] / "data/batches/golden.txt").read_text().splitlines()
        if not line.startswith("#")
    )
}
#: Record offset, timestamp, key, value.
Row = tuple[int, int | None, bytes | None, bytes | None]


def rows(records: list[Record]) -> list[Row]:
    return [(record.record_offset, record.timestamp_ms, record.key, record.value) for record in records]


def read(data: bytes) -> list[Record]:
    return list(read_records(data, read_batch_header(data, 0)))


def read_leniently(data: bytes) -> tuple[list[Row], list[str]]:
    records, problems = read_records_leniently(data, read_batch_header(data, 0))
    return rows(records), [problem.code for problem in problems]


def section(*records: bytes) -> bytes:
    writer = Writer()
    for record in records:
        writer.varint(len(record))
        writer.raw(record)
    return writer.to_bytes()


def body(offset_delta: int = 0, key: bytes = b"\x02k", value: bytes = b"\x02v", headers: bytes = b"\x00") -> bytes:
    """A record behind its length; the parts are as on disk, lengths included."""
    writer = Writer()
    writer.raw(b"\0\0")
    writer.varint(offset_delta)
    writer.raw(key + value + headers)
    return writer.to_bytes()


def batch_of(content: bytes, *, count: int = 1, codec: int = 0, last_offset_delta: int = 0, base_sequence: int = -1) -> bytes:
    """A format 2 batch around any bytes, at offset 100, its checksum right."""
    checked = struct.pack(">hiqqqhii", codec, last_offset_delta, T, T, -1, -1, base_sequence, count) + content
    return struct.pack(">qiibI", 100, 9 + len(checked), 0, 2, crc32c.crc32c(checked)) + checked


def entry(offset: int, key: bytes | None, value: bytes | None, *, magic: int = 1, attributes: int = 0, timestamp: int = T) -> bytes:
    """A log entry of format 0 or 1, its checksum right."""
    checked = struct.pack(">BB", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for part in (key, value):
        checked += struct.pack(">i", -1 if part is None else len(part)) + (part or b"")
    return struct.pack(">qiI", offset, 4 + len(checked), zlib.crc32(checked)) + checked


def wrapper(offset: int, inner: bytes, *, magic: int = 1, codec: int = 1, attributes: int = 0, timestamp: int = T) -> bytes:
    stream = compress(codec, inner, magic=magic)
    return entry(offset, None, stream, magic=magic, attributes=codec | attributes, timestamp=timestamp)
