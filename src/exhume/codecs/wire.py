"""The primitives of the Kafka protocol as read/write pairs.

All integers are big-endian, two's complement. `classic` forms carry int16/int32 lengths with -1 for null; `compact` forms
carry an unsigned varint of length + 1 with 0 for null. Every read checks the end before it takes a byte, and raises
a different error for each case that Kafka's own readers distinguish:

    Underflow        a fixed-width field or varint is cut
    LengthOverrun    a length or count promises more than is left
    UnexpectedNull   a negative length (compact: 0) where null is not allowed

Source: Kafka protocol guide; org.apache.kafka.common.protocol.ByteBufferAccessor.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import Self

from exhume.errors import DecodeError, EncodeError, LengthOverrun, Underflow, UnexpectedNull

_MAX_STRING = 0x7FFF

Buffer = bytes | bytearray | memoryview

#: The character in a text instead of bytes that are no valid UTF-8.
REPLACEMENT = "\ufffd"


class InvalidUtf8(str):
    """A string whose bytes are no valid UTF-8: reads as Java would decode it, with `REPLACEMENT`, and keeps its bytes in `raw`."""

    raw: bytes

    def __new__(cls, raw: bytes) -> Self:
        self = super().__new__(cls, raw.decode("utf-8", "replace"))
        self.raw = raw
        return self

    def __reduce__(self) -> tuple[type[Self], tuple[bytes]]:
        # A copy, also in another process, needs the raw bytes: the text has lost them.
        return type(self), (self.raw,)


def decode_utf8(raw: bytes) -> str:
    """Return these bytes as text; as `InvalidUtf8` if they are no valid UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return InvalidUtf8(raw)


#: Types of values that are never an `InvalidUtf8`.
_PLAIN_TYPES = frozenset({str, int, bool, float, bytes, type(None)})


def has_invalid_utf8(value: object) -> bool:
    """Return True if a decoded value contains an `InvalidUtf8`, at any depth."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return isinstance(value, InvalidUtf8)
    return any(type(item) not in _PLAIN_TYPES and has_invalid_utf8(item) for item in value)


def encode_utf8(text: str) -> bytes:
    """The bytes of this text: for an `InvalidUtf8` the bytes that it was decoded from."""
    return text.raw if isinstance(text, InvalidUtf8) else text.encode("utf-8")


def format_uuid(raw: Buffer) -> str:
    """16 bytes as Kafka prints a UUID: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def is_uuid(text: str) -> bool:
    """Return True if this text has the form of an id in Kafka's spelling."""
    try:
        return format_uuid(parse_uuid(text)) == text
    except EncodeError:
        return False


def parse_uuid(text: str) -> bytes:
    """The 16 bytes of a UUID in Kafka's spelling, or in the usual hexadecimal one with or without dashes."""
    plain = text.replace("-", "")
    try:
        raw = bytes.fromhex(plain) if len(plain) == 32 else base64.urlsafe_b64decode(text + "==")
    except (ValueError, binascii.Error) as error:
        raise EncodeError(f"{text!r} is no UUID") from error
    if len(raw) != 16:
        raise EncodeError(f"{text!r} is no UUID: {len(raw)} bytes instead of 16")
    return raw


class Reader:
    """A cursor over `buffer[position:end]`. Every method advances `position` or raises and leaves it where the field began."""

    __slots__ = ("buffer", "end", "position")

    def __init__(self, buffer: Buffer, position: int = 0, end: int | None = None) -> None:
        self.buffer = buffer
        self.position = position
        self.end = len(buffer) if end is None else end

    @property
    def remaining(self) -> int:
        """Bytes between the cursor and the end."""
        return self.end - self.position

    def _fixed(self, size: int) -> int:
        position = self.position
        if position + size > self.end:
            raise Underflow(f"{size} bytes needed, {self.end - position} left", byte_position=position)
        self.position = position + size
        return position

    def _bytes(self, size: int) -> bytes:
        position = self.position
        if position + size > self.end:
            raise LengthOverrun(f"a length of {size} bytes, but only {self.end - position} are left", byte_position=position)
        self.position = position + size
        return bytes(self.buffer[position : position + size])

    def int8(self) -> int:
        return int(_INT8.unpack_from(self.buffer, self._fixed(1))[0])

    def int16(self) -> int:
        return int(_INT16.unpack_from(self.buffer, self._fixed(2))[0])

    def uint16(self) -> int:
        return int(_UINT16.unpack_from(self.buffer, self._fixed(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack_from(self.buffer, self._fixed(4))[0])

    def uint32(self) -> int:
        return int(_UINT32.unpack_from(self.buffer, self._fixed(4))[0])

    def int64(self) -> int:
        return int(_INT64.unpack_from(self.buffer, self._fixed(8))[0])

    def uuid(self) -> str | None:
        """A topic id in Kafka's spelling (22 characters of URL-safe base64); None for all zeros, which mean "no topic id"."""
        position = self._fixed(16)
        raw = self.buffer[position : position + 16]
        return format_uuid(raw) if any(raw) else None

    def unsigned_varint(self) -> int:
        """At most 5 bytes of 7 bits each, lowest first; reads as Kafka does: 35 bits, cut to 32."""
        value = shift = 0
        position = self.position
        while True:
            if position >= self.end:
                raise Underflow("a varint is cut", byte_position=self.position)
            byte = self.buffer[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                self.position = position
                return value & 0xFFFFFFFF
            shift += 7
            if shift > 28:
                raise DecodeError("a varint of more than 5 bytes", byte_position=self.position)

    def unsigned_varlong(self) -> int:
        """At most 10 bytes of 7 bits each, lowest first."""
        value = shift = 0
        position = self.position
        while True:
            if position >= self.end:
                raise Underflow("a varlong is cut", byte_position=self.position)
            byte = self.buffer[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                self.position = position
                return value & 0xFFFFFFFFFFFFFFFF
            shift += 7
            if shift > 63:
                raise DecodeError("a varlong of more than 10 bytes", byte_position=self.position)

    def varint(self) -> int:
        """A zigzag varint: int32."""
        value = self.unsigned_varint()
        return (value >> 1) ^ -(value & 1)

    def varlong(self) -> int:
        """A zigzag varlong: int64."""
        value = self.unsigned_varlong()
        return (value >> 1) ^ -(value & 1)

    def raw(self, size: int) -> bytes:
        """Exactly these many bytes."""
        return self._bytes(size)

    def _length(self, *, compact: bool, wide: bool) -> int:
        """Read the length before a value; negative means null."""
        if compact:
            size = self.unsigned_varint() - 1
            # Java computes in 32 bits: a varint of 2^31 or more is a negative length there, hence null.
            return size if size <= 0x7FFFFFFF else -1
        return self.int32() if wide else self.int16()

    def nullable_string(self, *, compact: bool = False) -> str | None:
        start = self.position
        size = self._length(compact=compact, wide=False)
        if size < 0:
            return None
        if size > _MAX_STRING:
            raise LengthOverrun(f"a string of {size} bytes; at most {_MAX_STRING} are allowed", byte_position=start)
        return decode_utf8(self._bytes(size))

    def string(self, *, compact: bool = False) -> str:
        start = self.position
        value = self.nullable_string(compact=compact)
        if value is None:
            raise UnexpectedNull("a string is null where null is not allowed", byte_position=start)
        return value

    def nullable_blob(self, *, compact: bool = False) -> bytes | None:
        size = self._length(compact=compact, wide=True)
        return None if size < 0 else self._bytes(size)

    def blob(self, *, compact: bool = False) -> bytes:
        start = self.position
        value = self.nullable_blob(compact=compact)
        if value is None:
            raise UnexpectedNull("bytes are null where null is not allowed", byte_position=start)
        return value

    def nullable_count(self, *, compact: bool = False) -> int | None:
        """The element count of an array, never more than bytes are left (an element takes at least one)."""
        start = self.position
        count = self._length(compact=compact, wide=True)
        if count < 0:
            return None
        if count > self.remaining:
            raise LengthOverrun(f"an array of {count} elements in {self.remaining} bytes", byte_position=start)
        return count

    def tagged_section(self) -> list[tuple[int, bytes]]:
        """A tagged section with every payload verbatim: (tag, payload), in the order written."""
        return [(self.unsigned_varint(), self._bytes(self.unsigned_varint())) for _ in range(self.unsigned_varint())]


class Writer:
    """The mirror of `Reader`: appends to `data`. A value its type cannot carry raises `EncodeError`."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = bytearray()

    def _pack(self, codec: struct.Struct, value: int) -> None:
        try:
            self.data += codec.pack(value)
        except struct.error as error:
            raise EncodeError(f"{value!r} does not fit: {error}") from error

    def int8(self, value: int) -> None:
        self._pack(_INT8, value)

    def int16(self, value: int) -> None:
        self._pack(_INT16, value)

    def uint16(self, value: int) -> None:
        self._pack(_UINT16, value)

    def int32(self, value: int) -> None:
        self._pack(_INT32, value)

    def uint32(self, value: int) -> None:
        self._pack(_UINT32, value)

    def int64(self, value: int) -> None:
        self._pack(_INT64, value)

    def uuid(self, value: str | None) -> None:
        self.data += _NO_UUID if value is None else parse_uuid(value)

    def unsigned_varint(self, value: int) -> None:
        if not 0 <= value <= 0xFFFFFFFF:
            raise EncodeError(f"{value} does not fit an unsigned varint")
        self._varint_bytes(value)

    def _varint_bytes(self, value: int) -> None:
        while value > 0x7F:
            self.data.append(value & 0x7F | 0x80)
            value >>= 7
        self.data.append(value)

    def varint(self, value: int) -> None:
        if not -(2**31) <= value < 2**31:
            raise EncodeError(f"{value} does not fit a varint")
        self._varint_bytes((value << 1 ^ value >> 31) & 0xFFFFFFFF)

    def varlong(self, value: int) -> None:
        if not -(2**63) <= value < 2**63:
            raise EncodeError(f"{value} does not fit a varlong")
        self._varint_bytes((value << 1 ^ value >> 63) & 0xFFFFFFFFFFFFFFFF)

    def raw(self, value: Buffer) -> None:
        self.data += value

    def _length(self, size: int, *, compact: bool, wide: bool) -> None:
        if compact:
            self.unsigned_varint(size + 1)
        elif wide:
            self.int32(size)
        else:
            self.int16(size)

    def nullable_string(self, value: str | None, *, compact: bool = False) -> None:
        if value is None:
            self._length(-1, compact=compact, wide=False)
            return
        raw = encode_utf8(value)
        if len(raw) > _MAX_STRING:
            raise EncodeError(f"a string of {len(raw)} bytes; at most {_MAX_STRING} are allowed")
        self._length(len(raw), compact=compact, wide=False)
        self.data += raw

    def string(self, value: str, *, compact: bool = False) -> None:
        if value is None:
            raise EncodeError("null is not allowed here")
        self.nullable_string(value, compact=compact)

    def nullable_blob(self, value: Buffer | None, *, compact: bool = False) -> None:
        self._length(-1 if value is None else len(value), compact=compact, wide=True)
        if value is not None:
            self.data += value

    def blob(self, value: Buffer, *, compact: bool = False) -> None:
        if value is None:
            raise EncodeError("null is not allowed here")
        self.nullable_blob(value, compact=compact)

    def nullable_count(self, count: int | None, *, compact: bool = False) -> None:
        self._length(-1 if count is None else count, compact=compact, wide=True)

    def tagged_section(self, fields: list[tuple[int, bytes]]) -> None:
        self.unsigned_varint(len(fields))
        for tag, payload in sorted(fields, key=lambda field: field[0]):
            self.unsigned_varint(tag)
            self.unsigned_varint(len(payload))
            self.data += payload

    def to_bytes(self) -> bytes:
        return bytes(self.data)


_NO_UUID = bytes(16)
_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_UINT16 = struct.Struct(">H")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_INT64 = struct.Struct(">q")
