"""Layouts as data: fields in order, with the versions they exist in, read and written by one small interpreter.

A layout mirrors one of Kafka's message schemas. The same declaration reads bytes into a dict, writes a dict into bytes,
gives the Arrow type of the result, names the bytes of every field (`trace`), and prints the documentation.

    Message        a versioned struct: its fields, its versions, and the first flexible one
    Struct         a nested struct
    Array          elements of a scalar or a struct
    Scalar         a primitive of `wire`

A decoded struct is a dict with a key per field of its version, under *our* name; absent tagged fields get
Kafka's default, and tags that no field declares stay verbatim under `unknown_tags`. In flexible versions strings, bytes and
arrays are compact and every struct ends with a tagged section.

Source: org.apache.kafka.message.* (the schema compiler); new-coordinator notes on nullable tagged structs below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import pyarrow as pa

from exhume.codecs.wire import Buffer, Reader, Writer
from exhume.errors import EncodeError, UnexpectedNull, UnknownVersion

#: A decoded struct: its fields by name. Its layout gives their names and types.
Fields = dict[str, Any]

UNKNOWN_TAGS = "unknown_tags"


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes of one decoded field: `[start, end)` of the buffer that was read. `name` is the dotted path of the field."""

    name: str
    wire_type: str
    start: int
    end: int
    value: Any


@dataclass(frozen=True, slots=True)
class Scalar:
    """One primitive. `read` and `write` take the cursor, and True for the compact form."""

    name: str
    arrow: pa.DataType
    read: Callable[[Reader, bool], Any]
    write: Callable[[Writer, Any, bool], None]
    empty: Any
    read_nullable: Callable[[Reader, bool], Any] | None = None
    write_nullable: Callable[[Writer, Any, bool], None] | None = None


INT8 = Scalar("int8", pa.int8(), lambda r, _: r.int8(), lambda w, v, _: w.int8(v), 0)
INT16 = Scalar("int16", pa.int16(), lambda r, _: r.int16(), lambda w, v, _: w.int16(v), 0)
UINT16 = Scalar("uint16", pa.int32(), lambda r, _: r.uint16(), lambda w, v, _: w.uint16(v), 0)
INT32 = Scalar("int32", pa.int32(), lambda r, _: r.int32(), lambda w, v, _: w.int32(v), 0)
INT64 = Scalar("int64", pa.int64(), lambda r, _: r.int64(), lambda w, v, _: w.int64(v), 0)
UUID = Scalar("uuid", pa.string(), lambda r, _: r.uuid(), lambda w, v, _: w.uuid(v), None)
STRING = Scalar(
    "string",
    pa.string(),
    lambda r, compact: r.string(compact=compact),
    lambda w, v, compact: w.string(v, compact=compact),
    "",
    lambda r, compact: r.nullable_string(compact=compact),
    lambda w, v, compact: w.nullable_string(v, compact=compact),
)
BYTES = Scalar(
    "bytes",
    pa.binary(),
    lambda r, compact: r.blob(compact=compact),
    lambda w, v, compact: w.blob(v, compact=compact),
    b"",
    lambda r, compact: r.nullable_blob(compact=compact),
    lambda w, v, compact: w.nullable_blob(v, compact=compact),
)


@dataclass(frozen=True, slots=True)
class Array:
    """Elements of one type, after their count."""

    element: Scalar | Struct


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct.

    `name` is ours, `kafka_name` is the one in Kafka's schema; `since` and `until` are the versions that carry it;
    `tag` makes it a tagged field; `default` is Kafka's value for an absent field. A nullable tagged struct or array
    whose schema says `"default": null` has *no* null default: absent means empty, and null is written explicitly.
    """

    name: str
    type: Scalar | Array | Struct
    kafka_name: str
    since: int = 0
    until: int | None = None
    nullable: bool = False
    tag: int | None = None
    default: Any = ...

    def is_in(self, version: int) -> bool:
        """Return True if this version has the field (tagged fields: may have it)."""
        return self.since <= version and (self.until is None or version <= self.until)

    def default_value(self, version: int) -> Any:
        """Return Kafka's value for the absent field."""
        if self.default is not ...:
            return self.default
        if isinstance(self.type, Scalar):
            return self.type.empty
        if isinstance(self.type, Array):
            return []
        return self.type.default_value(version)


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields in the order of the wire."""

    fields: tuple[Field, ...]

    def default_value(self, version: int) -> Fields:
        """A struct with every field at its default."""
        return {field.name: field.default_value(version) for field in self.fields if field.is_in(version)}

    def arrow(self) -> pa.DataType:
        """The Arrow struct of every field of every version; a field that a version lacks is null there."""
        return pa.struct(list(arrow_fields(self)))


def arrow_fields(struct: Struct) -> Iterator[pa.Field]:
    """The fields of this struct as Arrow fields, all versions together; tagged fields too, unknown tags not."""
    for field in struct.fields:
        yield pa.field(field.name, _arrow_type(field.type))


def _arrow_type(field_type: Scalar | Array | Struct) -> pa.DataType:
    if isinstance(field_type, Scalar):
        return field_type.arrow
    if isinstance(field_type, Array):
        return pa.list_(_arrow_type(field_type.element))
    return field_type.arrow()


@dataclass(frozen=True, slots=True)
class Message:
    """A versioned struct. Versions outside `versions` raise `UnknownVersion`."""

    name: str
    versions: range
    struct: Struct
    flexible_since: int | None = None

    def is_flexible(self, version: int) -> bool:
        """Return True if this version has compact forms and tagged sections."""
        return self.flexible_since is not None and version >= self.flexible_since

    def read(self, reader: Reader, version: int, trace: list[Span] | None = None, *, into: Fields | None = None) -> Fields:
        """Read one message of this version at the cursor; appends to `trace` the bytes of every field.

        `into` receives the fields one by one, so that the fields before a `DecodeError` are not lost.
        """
        if version not in self.versions:
            raise UnknownVersion(f"{self.name} has no version {version}; known are {self.versions.start} to {self.versions.stop - 1}")
        return _read_struct(self.struct, _Context(reader, version, self.is_flexible(version), trace), "", into)

    def read_front(self, reader: Reader, version: int, until: str) -> Fields:
        """Read the fields of one message of this version before the field `until`; leave the cursor there."""
        front = tuple(takewhile(lambda field: field.name != until, self.struct.fields))
        context = _Context(reader, version, self.is_flexible(version), None)
        return {field.name: _read_field(field, context, "") for field in front if field.is_in(version) and field.tag is None}

    def write(self, writer: Writer, version: int, value: Mapping[str, Any]) -> None:
        """Write one message of this version. Fields missing from `value` take their default."""
        if version not in self.versions:
            raise EncodeError(f"{self.name} has no version {version}")
        _write_struct(self.struct, writer, version, self.is_flexible(version), value)

    def decode(self, buffer: Buffer, version: int) -> tuple[Fields, int]:
        """Decode a message at the start of the buffer; return its value and its size in bytes."""
        reader = Reader(buffer)
        return self.read(reader, version), reader.position

    def encode(self, version: int, value: Mapping[str, Any]) -> bytes:
        """The bytes of this message."""
        writer = Writer()
        self.write(writer, version, value)
        return writer.to_bytes()


@dataclass(slots=True)
class _Context:
    reader: Reader
    version: int
    flexible: bool
    trace: list[Span] | None


def _read_struct(struct: Struct, context: _Context, path: str, into: Fields | None = None) -> Fields:
    value: Fields = {} if into is None else into
    has_tags = False
    for field in struct.fields:
        if not field.is_in(context.version):
            continue
        if field.tag is not None:
            value[field.name] = field.default_value(context.version)
            has_tags = True
        else:
            value[field.name] = _read_field(field, context, path)
    if context.flexible:
        _read_tags(struct, context, path, value, has_tags)
    return value


def _read_tags(struct: Struct, context: _Context, path: str, value: Fields, has_tags: bool) -> None:
    reader = context.reader
    start = reader.position
    count = reader.unsigned_varint()
    _note(context, f"{path}tag count", "unsigned varint", start, count)
    known = {field.tag: field for field in struct.fields if field.tag is not None and field.is_in(context.version)} if has_tags else {}
    for _ in range(count):
        start = reader.position
        tag = reader.unsigned_varint()
        _note(context, f"{path}tag", "unsigned varint", start, tag)
        start = reader.position
        size = reader.unsigned_varint()
        _note(context, f"{path}tag size", "unsigned varint", start, size)
        field = known.get(tag)
        if field is not None:
            # Kafka parses a known tag in place and does not check its size.
            value[field.name] = _read_field(field, context, path)
        else:
            start = reader.position
            payload = reader.raw(size)
            value.setdefault(UNKNOWN_TAGS, []).append((tag, payload))
            _note(context, f"{path}unknown tag {tag}", "bytes", start, payload)


def _read_field(field: Field, context: _Context, path: str) -> Any:
    reader = context.reader
    start = reader.position
    if isinstance(field.type, Scalar):
        read = field.type.read_nullable if field.nullable and field.type.read_nullable else field.type.read
        value = read(reader, context.flexible)
        _note(context, path + field.name, field.type.name, start, value)
        return value
    if isinstance(field.type, Array):
        count = reader.nullable_count(compact=context.flexible)
        _note(context, f"{path}{field.name} count", "unsigned varint" if context.flexible else "int32", start, count)
        if count is None:
            if not field.nullable:
                raise UnexpectedNull(f"{field.name} is null where null is not allowed", byte_position=start)
            return None
        return [_read_element(field.type.element, context, f"{path}{field.name}[{index}]") for index in range(count)]
    if field.nullable:
        present = reader.unsigned_varint() > 0 if field.tag is not None else reader.int8() >= 0
        _note(context, f"{path}{field.name} is present", "unsigned varint" if field.tag is not None else "int8", start, present)
        if not present:
            return None
    return _read_struct(field.type, context, f"{path}{field.name}.")


def _read_element(element: Scalar | Struct, context: _Context, path: str) -> Any:
    if isinstance(element, Struct):
        return _read_struct(element, context, path + ".")
    start = context.reader.position
    value = element.read(context.reader, context.flexible)
    _note(context, path, element.name, start, value)
    return value


def _note(context: _Context, name: str, wire_type: str, start: int, value: Any) -> None:
    if context.trace is not None:
        context.trace.append(Span(name, wire_type, start, context.reader.position, value))


def _write_struct(struct: Struct, writer: Writer, version: int, flexible: bool, value: Mapping[str, Any]) -> None:
    tagged: list[tuple[int, bytes]] = list(value.get(UNKNOWN_TAGS, ()))
    for field in struct.fields:
        if not field.is_in(version):
            continue
        item = value.get(field.name, ...)
        if item is ...:
            item = field.default_value(version)
        if field.tag is None:
            _write_field(field, writer, version, flexible, item)
        elif item != field.default_value(version):
            payload = Writer()
            _write_field(field, payload, version, flexible, item)
            tagged.append((field.tag, payload.to_bytes()))
    if flexible:
        writer.tagged_section(tagged)
    elif tagged:
        raise EncodeError(f"version {version} has no tagged fields")


def _write_field(field: Field, writer: Writer, version: int, flexible: bool, value: Any) -> None:
    if isinstance(field.type, Scalar):
        write = field.type.write_nullable if field.nullable and field.type.write_nullable else field.type.write
        write(writer, value, flexible)
        return
    if value is None and not field.nullable:
        raise EncodeError(f"{field.name} may not be null")
    if isinstance(field.type, Array):
        elements: Sequence[Any] | None = value
        writer.nullable_count(None if elements is None else len(elements), compact=flexible)
        for element in elements or ():
            if isinstance(field.type.element, Struct):
                _write_struct(field.type.element, writer, version, flexible, element)
            else:
                field.type.element.write(writer, element, flexible)
        return
    if field.nullable:
        if field.tag is not None:
            writer.unsigned_varint(0 if value is None else 1)
        else:
            writer.int8(-1 if value is None else 1)
        if value is None:
            return
    _write_struct(field.type, writer, version, flexible, value)
