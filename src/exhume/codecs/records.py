"""Read the records of a batch as Kafka reads them.

    format 2, each record    length varint | attributes int8 | timestamp delta varlong | offset delta varint
                             key varint+bytes | value varint+bytes | header count varint | headers: key varint+bytes, value varint+bytes
    formats 0 and 1          the log entry itself; in a wrapper a run of whole entries, each with offset, size and CRC of its own.
                             The wrapper's magic decides what inner offsets mean (0: absolute, 1: relative to the last one, which has
                             the wrapper's offset), the inner magic how an entry is laid out: cleaners of 0.10.0 mixed them (KAFKA-4298).

Varints are zigzag; a negative length is null.

Source: DefaultRecord, DefaultRecordBatch, AbstractLegacyRecordBatch.DeepRecordsIterator of Kafka 3.8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from exhume.codecs.batch_format import HEADER_BYTES, LOG_OVERHEAD
from exhume.codecs.batches import Batch, TimestampType, crc_matches, read_header_fields, timestamp_or_none, wrap_int64
from exhume.codecs.compression import DEFAULT_CAP_BYTES, decompress
from exhume.codecs.wire import Buffer, Reader, decode_utf8
from exhume.errors import DecodeError, DecompressionError, LengthOverrun, UnknownVersion

_MAX_INT32 = 2**31 - 1


@dataclass(slots=True)
class Record:
    """One record.

    `timestamp_ms` is None if the format has none or the record has -1; under LogAppendTime it is the batch's. `sequence` is None if the
    batch has none. `magic` is that of the entry itself, which may differ from its wrapper's. `byte_position` is the start of the record in
    the buffer, None for a compressed record. `crc_ok` is True if the entry's own checksum matches, None in format 2, which has none per
    record.

    The `stored_…` fields and `attributes` are the values on disk, which a writer of the same record needs: offset and timestamp as deltas
    in format 2, the inner offset and the entry's own timestamp (None in format 0) in formats 0 and 1.
    """

    record_offset: int
    timestamp_ms: int | None
    timestamp_type: TimestampType
    sequence: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)
    magic: int = 2
    byte_position: int | None = None
    crc_ok: bool | None = None
    attributes: int = 0
    stored_offset: int = 0
    stored_timestamp_ms: int | None = None


def read_records(buffer: Buffer, batch: Batch, *, cap_bytes: int = DEFAULT_CAP_BYTES) -> Iterator[Record]:
    """Yield the records of `batch` in file order, exactly those that Kafka's own reader returns.

    Like Kafka's load this does not verify the CRC of the batch. Timestamps under a delete horizon are exact: their deltas count from it.

    Raises:
        DecodeError: Kafka refuses these bytes; `byte_position` is that of the field, or of the batch if it is compressed.
        DecompressionError: the same for the compressed stream, or it unfolds to more than `cap_bytes`.
    """
    if batch.end_position > len(buffer):
        raise LengthOverrun(
            f"a batch of {batch.size_bytes} bytes, but only {len(buffer) - batch.byte_position} are left", byte_position=batch.byte_position
        )
    if batch.magic == 2:
        yield from _read_format_2(buffer, batch, cap_bytes)
    elif batch.codec:
        yield from _read_wrapper(buffer, batch, cap_bytes)
    else:
        yield read_message(buffer, batch, batch.last_offset, None)


def _read_format_2(buffer: Buffer, batch: Batch, cap_bytes: int) -> Iterator[Record]:
    count = batch.record_count or 0
    if count == 0:
        # Kafka does not check the codec of an empty batch.
        return
    if count < 0:
        raise DecodeError(f"a record count of {count}", byte_position=batch.byte_position)
    reader = Reader(buffer, batch.byte_position + HEADER_BYTES[2], batch.end_position)
    if batch.codec:
        reader = Reader(record_section(buffer, batch, cap_bytes=cap_bytes))
    end = reader.end
    for index in range(count):
        reader.end = end
        try:
            yield read_record(reader, batch, is_compressed=batch.codec != 0)
        except DecodeError as error:
            raise _placed(error, batch, f"record {index + 1} of {count}") from error
    if reader.position != end:
        surplus = DecodeError(f"{end - reader.position} bytes are left after the last record", byte_position=reader.position)
        raise _placed(surplus, batch, f"a batch of {count} records")


def read_record_at(section: Buffer, batch: Batch, place: int) -> Record:
    """The record of this batch that begins at `section[place]`; `section` is the result of `record_section`.

    Raises:
        DecodeError: no record begins there.
    """
    if batch.magic < 2:
        return read_message(section, read_header_fields(section, place), batch.last_offset, None)
    return read_record(Reader(section, place), batch, is_compressed=batch.codec != 0)


def record_section(buffer: Buffer, batch: Batch, *, cap_bytes: int = DEFAULT_CAP_BYTES) -> Buffer:
    """The records of a format 2 batch as bytes, unfolded if they are compressed; a plain message of formats 0 and 1.

    Raises:
        DecompressionError: they cannot be unfolded, or they unfold to more than `cap_bytes`.
    """
    if batch.magic < 2:
        return memoryview(buffer)[batch.byte_position : batch.end_position]
    section = memoryview(buffer)[batch.byte_position + HEADER_BYTES[2] : batch.end_position]
    return _unfold(batch, section, cap_bytes) if batch.codec and batch.record_count else section


def _unfold(batch: Batch, data: Buffer, cap_bytes: int) -> bytes:
    try:
        return decompress(batch.codec, data, magic=batch.magic, cap_bytes=cap_bytes)
    except DecompressionError as error:
        error.byte_position = batch.byte_position
        raise


def _placed(error: DecodeError, batch: Batch, what: str) -> DecodeError:
    """Return the same error with the position of the batch: a position in an unfolded stream cannot be found in the file."""
    place = f", byte {error.byte_position} of the unfolded records" if batch.codec else ""
    position = batch.byte_position if batch.codec else error.byte_position
    return type(error)(f"{what}{place}: {error.message}", byte_position=position)


def read_record(reader: Reader, batch: Batch, *, is_compressed: bool) -> Record:
    """The format 2 record at the cursor; leaves `reader.end` at its end.

    Raises:
        DecodeError: the bytes are no record, or some are left after its last field.
    """
    start = reader.position
    size = reader.varint()
    if not 0 <= size <= reader.remaining:
        raise LengthOverrun(f"a record of {size} bytes, but {reader.remaining} are left", byte_position=start)
    reader.end = reader.position + size
    attributes = reader.int8()
    timestamp_delta = reader.varlong()
    offset_delta = reader.varint()
    key = _varint_bytes(reader)
    value = _varint_bytes(reader)
    headers = _headers(reader)
    if reader.remaining:
        raise DecodeError(f"{reader.remaining} bytes of the record are left after its last field", byte_position=reader.position)
    return Record(
        record_offset=wrap_int64((batch.base_offset or 0) + offset_delta),
        timestamp_ms=_timestamp(batch, timestamp_delta),
        timestamp_type=batch.timestamp_type,
        sequence=_sequence(batch.base_sequence, offset_delta),
        key=key,
        value=value,
        headers=headers,
        byte_position=None if is_compressed else start,
        attributes=attributes,
        stored_offset=offset_delta,
        stored_timestamp_ms=timestamp_delta,
    )


def _timestamp(batch: Batch, delta: int) -> int | None:
    if batch.timestamp_type == "LogAppendTime":
        return batch.max_timestamp_ms
    base = batch.delete_horizon_ms if batch.delete_horizon_ms is not None else batch.base_timestamp_ms
    return timestamp_or_none(wrap_int64((-1 if base is None else base) + delta))


def _sequence(base: int, delta: int) -> int | None:
    if base < 0:
        return None
    sequence = base + delta
    return sequence if sequence <= _MAX_INT32 else sequence - _MAX_INT32 - 1


def _varint_bytes(reader: Reader) -> bytes | None:
    size = reader.varint()
    return None if size < 0 else reader.raw(size)


def _headers(reader: Reader) -> list[tuple[str, bytes | None]]:
    start = reader.position
    count = reader.varint()
    if count == 0:
        return []
    if not 0 <= count <= reader.remaining:
        raise LengthOverrun(f"{count} record headers, but {reader.remaining} bytes are left", byte_position=start)
    headers = []
    for _ in range(count):
        start = reader.position
        key = _varint_bytes(reader)
        if key is None:
            raise DecodeError("the key of a record header is null", byte_position=start)
        headers.append((decode_utf8(key), _varint_bytes(reader)))
    return headers


# --- Formats 0 and 1


def read_message(section: Buffer, entry: Batch, record_offset: int, wrapper: Batch | None) -> Record:
    """The record of one log entry of format 0 or 1; `wrapper` is the message that contains it, whose timestamp type applies in format 1.

    Raises:
        DecodeError: its key or value does not fit into it.
    """
    start = entry.byte_position + HEADER_BYTES[entry.magic] - 8
    if start > entry.end_position:
        raise DecodeError(f"a batch of format {entry.magic} cannot have {entry.size_bytes} bytes", byte_position=entry.byte_position)
    reader = Reader(section, start, entry.end_position)
    key, value = reader.nullable_blob(), reader.nullable_blob()
    stored_timestamp = None if entry.magic == 0 else -1 if entry.max_timestamp_ms is None else entry.max_timestamp_ms
    timestamp, timestamp_type = entry.max_timestamp_ms, entry.timestamp_type
    if wrapper is not None and entry.magic == 1:
        timestamp_type = wrapper.timestamp_type
        timestamp = wrapper.max_timestamp_ms if timestamp_type == "LogAppendTime" else timestamp
    return Record(
        record_offset=record_offset,
        timestamp_ms=timestamp,
        timestamp_type=timestamp_type,
        sequence=None,
        key=key,
        value=value,
        magic=entry.magic,
        byte_position=entry.byte_position if wrapper is None else None,
        crc_ok=crc_matches(section, entry),
        attributes=entry.attributes,
        stored_offset=entry.last_offset,
        stored_timestamp_ms=stored_timestamp,
    )


def _read_wrapper(buffer: Buffer, batch: Batch, cap_bytes: int) -> Iterator[Record]:
    reader = Reader(buffer, batch.byte_position + HEADER_BYTES[batch.magic] - 8, batch.end_position)
    _, stream = reader.nullable_blob(), reader.nullable_blob()
    if stream is None:
        raise DecodeError("a compressed message with a null value", byte_position=batch.byte_position)
    section = _unfold(batch, stream, cap_bytes)
    try:
        entries = list(_entries(section))
        if not entries:
            raise DecodeError("a compressed message without inner messages", byte_position=0)
        base = wrapper_base(batch, entries[-1].last_offset)
        for entry in entries:
            if entry.codec:
                raise DecodeError("an inner message is compressed itself", byte_position=entry.byte_position)
            yield read_message(section, entry, wrap_int64(base + entry.last_offset), batch)
    except DecodeError as error:
        raise _placed(error, batch, f"the compressed message at offset {batch.last_offset}") from error


def _entries(section: bytes) -> Iterator[Batch]:
    """The log entries of an unfolded wrapper; an entry that is cut ends them without an error, as in Kafka."""
    position = 0
    while len(section) - position >= LOG_OVERHEAD:
        size = int.from_bytes(section[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
        if size < HEADER_BYTES[0] - LOG_OVERHEAD:
            raise DecodeError(f"an inner message of {size} bytes", byte_position=position)
        if position + LOG_OVERHEAD + size > len(section):
            return
        magic = section[position + 16]
        if magic > 1:
            raise UnknownVersion(f"an inner message with magic {magic}", byte_position=position)
        if LOG_OVERHEAD + size < HEADER_BYTES[magic]:
            raise DecodeError(f"an inner message of {size} bytes and format {magic}", byte_position=position)
        yield read_header_fields(section, position)
        position += LOG_OVERHEAD + size


def wrapper_base(batch: Batch, last_inner_offset: int) -> int:
    """Return the number to add to inner offsets.

    Raises:
        DecodeError: the wrapper's offset is below its last inner one.
    """
    if batch.magic == 0 or batch.last_offset == 0:
        # Old librdkafka wrote 0 in wrappers of format 1: their inner offsets are absolute.
        return 0
    if batch.last_offset < last_inner_offset:
        raise DecodeError(f"the wrapper has offset {batch.last_offset}, its last inner message {last_inner_offset}", byte_position=0)
    return batch.last_offset - last_inner_offset
