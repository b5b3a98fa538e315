"""A byte-by-byte reading of one record: every field of its batch header, its own frame, its key and its value, with the bytes it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from exhume.arrow_rows import Json, schema_of
from exhume.codecs.batch_format import HEADER_BYTES, LOG_OVERHEAD
from exhume.codecs.batches import Batch
from exhume.codecs.compression import DEFAULT_CAP_BYTES, decompress
from exhume.codecs.json_values import to_json
from exhume.codecs.layout import Span
from exhume.codecs.record_types import decode_control_record, decode_record
from exhume.codecs.records import Record
from exhume.codecs.schemas import InFile
from exhume.codecs.wire import Buffer, Reader
from exhume.errors import EvidenceError


class AnnotationRow(InFile):
    """One row per field. `position` counts from the start of `part`.

    `byte_position` is the place in the file, null inside a compressed batch; `bytes` are in hexadecimal.
    """

    record_offset: int
    part: str
    field: str
    wire_type: str
    position: int
    byte_position: int | None
    bytes: str
    value: Json


ANNOTATION = schema_of(AnnotationRow)

_FORMAT_2_HEADER = (
    ("base_offset", "int64", 8),
    ("batch_length", "int32", 4),
    ("partition_leader_epoch", "int32", 4),
    ("magic", "int8", 1),
    ("crc", "uint32", 4),
    ("attributes", "int16", 2),
    ("last_offset_delta", "int32", 4),
    ("base_timestamp", "int64", 8),
    ("max_timestamp", "int64", 8),
    ("producer_id", "int64", 8),
    ("producer_epoch", "int16", 2),
    ("base_sequence", "int32", 4),
    ("record_count", "int32", 4),
)
_LEGACY_HEADER = (
    ("offset", "int64", 8),
    ("message_size", "int32", 4),
    ("crc", "uint32", 4),
    ("magic", "int8", 1),
    ("attributes", "int8", 1),
)
_FORMAT_1_TIMESTAMP = (("timestamp", "int64", 8),)


@dataclass(frozen=True, slots=True)
class _Part:
    """Spans over one run of bytes, and where that run begins in the file (None: inside a compressed batch)."""

    name: str
    data: Buffer
    spans: list[Span]
    byte_position: int | None


def annotate(file: InFile, buffer: Buffer, batch: Batch, record: Record) -> Iterator[AnnotationRow]:
    """The rows of `ANNOTATION` for this record of this batch, in the order of the bytes."""
    for part in _parts(buffer, batch, record):
        for span in part.spans:
            yield {
                **file,
                "record_offset": record.record_offset,
                "part": part.name,
                "field": span.name,
                "wire_type": span.wire_type,
                "position": span.start,
                "byte_position": None if part.byte_position is None else part.byte_position + span.start,
                "bytes": bytes(part.data[span.start : span.end]).hex(),
                "value": to_json(span.value),
            }


def _parts(buffer: Buffer, batch: Batch, record: Record) -> Iterator[_Part]:
    start = batch.byte_position
    yield _Part("batch", buffer[start : batch.end_position], header_spans(buffer, batch), start)
    frame = _frame(buffer, batch, record)
    key_position = value_position = None
    if frame is not None:
        yield frame
        if frame.byte_position is not None:
            ends = {span.name: span.end for span in frame.spans}
            key_position = frame.byte_position + ends["key"] - len(record.key or b"")
            value_position = frame.byte_position + ends["value"] - len(record.value or b"")
    key_spans: list[Span] = []
    value_spans: list[Span] = []
    if batch.is_control:
        decode_control_record(record.key, record.value, trace_key=key_spans, trace_value=value_spans)
    else:
        decode_record(record.key, record.value, trace_key=key_spans, trace_value=value_spans)
    for name, data, spans, position in (
        ("key", record.key, key_spans, key_position),
        ("value", record.value, value_spans, value_position),
    ):
        if data is not None:
            yield _Part(name, data, [*spans, *_rest(data, spans)], position)


def _rest(data: bytes, spans: list[Span]) -> list[Span]:
    """A span for the bytes that no field uses: trailing bytes, or all bytes after the point where decoding failed."""
    end = max((span.end for span in spans), default=0)
    return [Span("(not decoded)", "bytes", end, len(data), data[end:])] if end < len(data) else []


def header_spans(buffer: Buffer, batch: Batch) -> list[Span]:
    """The fields of a batch header; positions count from the batch."""
    return _fixed_spans(buffer, batch.byte_position, batch.magic)


def _fixed_spans(section: Buffer, start: int, magic: int) -> list[Span]:
    """The fields of fixed width that a batch of this format begins with; positions count from `start`."""
    spans = []
    position = 0
    for name, wire_type, size in _FORMAT_2_HEADER if magic == 2 else _LEGACY_HEADER + (_FORMAT_1_TIMESTAMP if magic == 1 else ()):
        raw = bytes(section[start + position : start + position + size])
        spans.append(Span(name, wire_type, position, position + size, int.from_bytes(raw, "big", signed=not wire_type.startswith("u"))))
        position += size
    return spans


def _frame(buffer: Buffer, batch: Batch, record: Record) -> _Part | None:
    """The record's own fields; for a compressed batch those of the unfolded section. None if they cannot be found again."""
    if record.byte_position is not None:
        section, position, file_start = buffer, record.byte_position, record.byte_position
    else:
        unfolded = _unfold(buffer, batch)
        found = None if unfolded is None else _find(unfolded, batch, record)
        if unfolded is None or found is None:
            return None
        section, position, file_start = unfolded, found, None
    spans = _format_2_spans(section, position) if batch.magic == 2 else _message_spans(section, position, record.magic)
    return _Part("record", section[position:], spans, file_start)


def _unfold(buffer: Buffer, batch: Batch) -> bytes | None:
    reader = Reader(buffer, batch.byte_position + HEADER_BYTES[batch.magic], batch.end_position)
    try:
        if batch.magic < 2:
            reader.position -= 8
            reader.nullable_blob()
            stream: Buffer | None = reader.nullable_blob()
        else:
            stream = reader.raw(reader.remaining)
        return None if stream is None else decompress(batch.codec, stream, magic=batch.magic, cap_bytes=DEFAULT_CAP_BYTES, lenient=True)
    except EvidenceError:
        return None


def _find(section: bytes, batch: Batch, record: Record) -> int | None:
    """Return the position of this record in the unfolded section, found by its stored offset."""
    position = 0
    try:
        while position < len(section):
            reader = Reader(section, position)
            if batch.magic == 2:
                size = reader.varint()
                end = reader.position + size
                reader.int8()
                reader.varlong()
                stored = reader.varint()
            else:
                stored = reader.int64()
                end = position + LOG_OVERHEAD + reader.int32()
            if stored == record.stored_offset:
                return position
            if end <= position:
                return None
            position = end
    except EvidenceError:
        return None
    return None


def _format_2_spans(section: Buffer, start: int) -> list[Span]:
    reader = Reader(section, start)
    spans: list[Span] = []

    def note(name: str, wire_type: str, read: Any) -> Any:
        position = reader.position
        value = read()
        spans.append(Span(name, wire_type, position - start, reader.position - start, value))
        return value

    def note_bytes(name: str) -> None:
        size = note(f"{name}_length", "varint", reader.varint)
        note(name, "bytes", lambda: None if size < 0 else reader.raw(size))

    note("length", "varint", reader.varint)
    note("attributes", "int8", reader.int8)
    note("timestamp_delta", "varlong", reader.varlong)
    note("offset_delta", "varint", reader.varint)
    note_bytes("key")
    note_bytes("value")
    for index in range(note("header_count", "varint", reader.varint)):
        note_bytes(f"headers[{index}].key")
        note_bytes(f"headers[{index}].value")
    return spans


def _message_spans(section: Buffer, start: int, magic: int) -> list[Span]:
    spans = _fixed_spans(section, start, magic)
    reader = Reader(section, start + spans[-1].end)
    for name in ("key", "value"):
        before = reader.position
        size = reader.int32()
        spans.append(Span(f"{name}_length", "int32", before - start, reader.position - start, size))
        before = reader.position
        data = None if size < 0 else reader.raw(size)
        spans.append(Span(name, "bytes", before - start, reader.position - start, data))
    return spans
