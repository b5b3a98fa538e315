"""The readers of hostile bytes, each as a function of bytes, and the bytes to begin with.

A reader returns, or raises an `ExhumeError`. Any other exception, a hang, or memory beyond the budget is a crash.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import IO

import zstandard

from exhume.codecs import checkpoints, indexes
from exhume.codecs.archives import ArchiveLimits, ArchiveVolume
from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.compression import CODECS, compress, decompress
from exhume.codecs.embedded import decode_assignment, decode_subscription
from exhume.codecs.file_content import looks_like
from exhume.codecs.kernels.crc32c import crc32c_of
from exhume.codecs.lenient_records import read_records_leniently
from exhume.codecs.record_types import decode_control_record, decode_record, encode_control_record
from exhume.codecs.records import read_record_at, read_records
from exhume.codecs.salvage import Found, salvage
from exhume.codecs.snapshots import read_producer_snapshot
from exhume.errors import ExhumeError
from exhume.fixtures.log_writer import offset_commit
from tests.fuzz.mutations import edited, mutated, sealed, segments_of
from tests.judges import corpus

CAP_BYTES = 1 << 20
_PROTOCOLS = (("consumer", "range"), ("consumer", "stream"), ("consumer", "cooperative-sticky"), ("connect", "compatible"), (None, None))
_LIMITS = ArchiveLimits(members=1000, member_bytes=1 << 20, kept_bytes=4 << 20, unpacked_bytes=16 << 20)


@dataclass(frozen=True, slots=True)
class Entry:
    """A reader: it takes bytes. `change` makes new bytes of two inputs; None: any bytes may change."""

    read: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    change: Callable[[Random, bytes, bytes], bytes] | None = None


def check(entry: Entry, data: bytes) -> None:
    """Read these bytes. Raises what is no `ExhumeError`."""
    try:
        entry.read(data)
    except ExhumeError as error:
        # The message is made last, and from hostile bytes too.
        str(error)


# What the readers are


def _read_batches(data: bytes) -> None:
    end = 0
    looks_like(memoryview(data))
    for found in salvage(memoryview(data), base_offset=0):
        assert (found.batch.byte_position if isinstance(found, Found) else found.byte_position) == end
        end = found.end_position
        if isinstance(found, Found):
            read_records_leniently(memoryview(data), found.batch, cap_bytes=CAP_BYTES)
            try:
                for _ in read_records(data, found.batch, cap_bytes=CAP_BYTES):
                    pass
            except ExhumeError as error:
                str(error)
    assert end == len(data)


_BATCH = next(found.batch for found in salvage(encode_batch([NewRecord(0, 1, b"k", b"v")], base_offset=0)) if isinstance(found, Found))


def _read_record(data: bytes) -> None:
    read_record_at(data, _BATCH, 0)


def _read_value(data: bytes) -> None:
    """Two bytes of the length of the key, the key, the value."""
    size = int.from_bytes(data[:2], "big")
    key, value = data[2 : 2 + size], data[2 + size :]
    decode_record(key, value)
    decode_record(key, value, trace_key=[], trace_value=[])
    decode_control_record(key, value)


def _read_payload(data: bytes) -> None:
    protocol_type, protocol = _PROTOCOLS[data[0] % len(_PROTOCOLS)] if data else (None, None)
    decode_subscription(protocol_type, protocol, data[1:])
    decode_assignment(protocol_type, protocol, data[1:])


def _read_index(data: bytes) -> None:
    if data:
        [read_offsets, read_times, read_transactions][data[0] % 3](memoryview(data)[1:])


def read_offsets(data: memoryview) -> None:
    """Read an offset index."""
    indexes.decode_offset_index(data, 5)


def read_times(data: memoryview) -> None:
    """Read a time index."""
    indexes.decode_time_index(data, 5)


def read_transactions(data: memoryview) -> None:
    """Read a transaction index."""
    indexes.decode_transaction_index(data)


_CHECKPOINTS: tuple[Callable[[bytes], object], ...] = (
    checkpoints.read_offset_checkpoint,
    checkpoints.read_leader_epochs,
    checkpoints.read_partition_metadata,
    checkpoints.read_meta_properties,
    checkpoints.read_clean_shutdown,
)


def _read_checkpoint(data: bytes) -> None:
    if data:
        _CHECKPOINTS[data[0] % len(_CHECKPOINTS)](data[1:])


def _read_snapshot(data: bytes) -> None:
    read_producer_snapshot(data)


def _read_stream(data: bytes) -> None:
    """A byte for the codec, one for the reader, and a compressed stream."""
    if len(data) > 2:
        decompress(data[0] % (len(CODECS) + 1), data[2:], magic=data[1] % 3, cap_bytes=CAP_BYTES, lenient=data[1] >= 128)


@dataclass(frozen=True, slots=True)
class _InMemory:
    content: bytes
    shown: str = "archive"
    identity: str = "archive"

    def open(self) -> IO[bytes]:
        return io.BytesIO(self.content)


def _read_archive(data: bytes) -> None:
    volume = ArchiveVolume(_InMemory(data), limits=_LIMITS)
    waiting = [""]
    while waiting:
        for entry in volume.entries(waiting.pop()):
            if entry.is_directory:
                waiting.append(entry.path)
            else:
                assert len(volume.open(entry.path)) == entry.size_bytes


# What they begin with


def _logs() -> list[bytes]:
    segments = [batches for batches in segments_of(corpus.BUNDLED) if len(b"".join(batches)) < 40_000]
    return [b"".join(batches[:6]) for batches in segments[::7]]


def _batches() -> list[bytes]:
    return [batch for batches in segments_of(corpus.BUNDLED)[::9] for batch in batches[:3] if len(batch) < 4000]


def _keys_and_values() -> list[bytes]:
    found: dict[tuple[int | None, int | None], bytes] = {}
    for batch in (batch for batches in segments_of(corpus.BUNDLED)[::3] for batch in batches[:40]):
        for item in salvage(batch):
            for record in read_records_leniently(batch, item.batch)[0] if isinstance(item, Found) else ():
                key, value = record.key or b"", record.value or b""
                decoded = decode_record(key, value)
                found.setdefault((decoded.number, decoded.value_version), struct.pack(">H", len(key)) + key + value)
    marker, content = encode_control_record(1, {"coordinator_epoch": 0})
    return [*found.values(), struct.pack(">H", len(marker)) + marker + content]


def _records() -> list[bytes]:
    batches = [batch for batch in _batches() if batch[16] == 2 and not batch[22] & 7]
    return [batch[61:] for batch in batches]


def _payloads() -> list[bytes]:
    subscription, assignment = b"\0\1\0\0\0\1\0\6orders\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0\0\1\0\6orders\0\0\0\1\0\0\0\2\xff\xff\xff\xff"
    return [bytes([number]) + data for number in range(5) for data in (subscription, assignment, b'{"version":1,"host":"h","port":1}')]


def _files(*patterns: str) -> list[bytes]:
    paths = sorted({path for pattern in patterns for path in corpus.BUNDLED.rglob(pattern)})
    contents = sorted({path.read_bytes()[:3000] for path in paths} - {b""}, key=len)
    return contents[:: max(1, len(contents) // 40)]


def _indexes() -> list[bytes]:
    kinds = ("*.index", "*.timeindex", "*.txnindex")
    return [bytes([number]) + data for number, kind in enumerate(kinds) for data in (_files(kind) or [bytes(34)])]


def _checkpoints() -> list[bytes]:
    texts = _files("*checkpoint", "*.properties", "partition.metadata", ".kafka_cleanshutdown")
    return [bytes([number]) + text for number in range(len(_CHECKPOINTS)) for text in texts]


def _streams() -> list[bytes]:
    key, value = offset_commit("g", "t", 0, 1, commit_timestamp_ms=1, version=1)
    plain = ((key or b"") + (value or b"")) * 20
    return [bytes([codec, magic]) + compress(codec, plain, magic=min(magic, 2)) for codec in CODECS for magic in (2, 130)]


def _archives() -> list[bytes]:
    name = "data/__consumer_offsets-0/00000000000000000000.log"
    log = encode_batch([NewRecord(0, 1, b"k", b"v" * 50)], base_offset=0)
    found = []
    for tar_format in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        buffer = io.BytesIO()
        with tarfile.TarFile(fileobj=buffer, mode="w", format=tar_format) as archive:
            for number, kind in enumerate((tarfile.DIRTYPE, tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.REGTYPE)):
                info = tarfile.TarInfo(name if number % 2 else "x/" * 60 + name)
                info.type, info.size = kind, len(log) if kind == tarfile.REGTYPE else 0
                archive.addfile(info, io.BytesIO(log))
        found.append(buffer.getvalue()[: 12 * 512])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr(name, log)
        zipped.writestr("data/meta.properties", b"broker.id=1\n")
    first = found[0]
    return [*found, packed.getvalue(), gzip.compress(first), bz2.compress(first), lzma.compress(first), zstandard.compress(first)]


# How they change


def _change_log(random: Random, data: bytes, other: bytes) -> bytes:
    """Batches that are whole again, with the checksums that they then need."""
    batches = [data[found.batch.byte_position : found.end_position] for found in salvage(data) if isinstance(found, Found)]
    return b"".join(mutated(random, batches, [other], random.choice((1, 1, 2)))) if batches else edited(random, data, other)


def _seal_snapshot(random: Random, data: bytes, other: bytes) -> bytes:
    changed = edited(random, data, other)
    return changed if len(changed) < 6 else changed[:2] + struct.pack(">I", crc32c_of(memoryview(changed)[6:])) + changed[6:]


def _change_archive(random: Random, data: bytes, other: bytes) -> bytes:
    """A tar gets the checksum of one header right again."""
    changed = bytearray(edited(random, data, other))
    for start in range(0, len(changed) - 511, 512):
        if changed[start + 257 : start + 262] == b"ustar":
            changed[start + 148 : start + 156] = b" " * 8
            changed[start + 148 : start + 156] = b"%06o\0 " % sum(changed[start : start + 512])
    return bytes(changed)


def _sealed_or(random: Random, data: bytes, other: bytes) -> bytes:
    """Change a batch; three times of four its size and checksum fit again."""
    changed = edited(random, data, other)
    if random.random() < 0.25 or len(changed) < 61 or changed[16] > 2:
        return changed
    return sealed(changed)


ENTRIES: dict[str, Entry] = {
    "batch": Entry(_read_batches, _batches, _sealed_or),
    "log": Entry(_read_batches, _logs, _change_log),
    "record": Entry(_read_record, _records),
    "value": Entry(_read_value, _keys_and_values),
    "payload": Entry(_read_payload, _payloads),
    "index": Entry(_read_index, _indexes),
    "checkpoint": Entry(_read_checkpoint, _checkpoints),
    "snapshot": Entry(_read_snapshot, lambda: _files("*.snapshot"), _seal_snapshot),
    "stream": Entry(_read_stream, _streams),
    "archive": Entry(_read_archive, _archives, _change_archive),
}


def corpus_of(name: str, directory: Path | None) -> list[bytes]:
    """The bytes that the fuzzer of this entry begins with: its seeds, and the files that earlier runs left."""
    kept = (
        [path.read_bytes() for path in sorted((directory / name).glob("*"))]
        if directory is not None and (directory / name).is_dir()
        else []
    )
    return ENTRIES[name].seeds() + kept
