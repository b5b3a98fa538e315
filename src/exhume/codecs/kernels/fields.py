"""Read the fields of keys and values that have a length: the parts that `readers` is made of."""

from __future__ import annotations

from exhume.codecs.kernels import inlined
from exhume.codecs.kernels.primitives import NO_POSITION, NOT_EXACT, int16, int32, kind_of_text, unsigned_varint
from exhume.codecs.kernels.types import Bytes, Number

MOST_STRING_BYTES = 0x7FFF
#: The sizes that these kernels return for a null, and for bytes that cannot be read.
NULL, BAD = -1, -2


@inlined
def length(data: Bytes, position: Number, end: Number, is_wide: bool, is_compact: bool) -> tuple[Number, Number]:
    """Read a length: return it, `NULL`, or `BAD` if it is cut or leads beyond the end; and the position after it."""
    if is_compact:
        size, position = unsigned_varint(data, position, end)
        if position == NO_POSITION:
            return BAD, position
        size -= 1
    else:
        width = 4 if is_wide else 2
        if end - position < width:
            return BAD, position
        size = int32(data, position) if is_wide else int16(data, position)
        position += width
    if size < 0:
        return NULL, position
    return (size if size <= end - position else BAD), position


@inlined
def text(data: Bytes, position: Number, end: Number, is_compact: bool) -> tuple[Number, Number]:
    """Return size and start of a text, as `length` does; the size is `BAD` also for a text that is not exact."""
    size, position = length(data, position, end, False, is_compact)
    if size > MOST_STRING_BYTES or (size > 0 and kind_of_text(data, position, size) == NOT_EXACT):
        return BAD, position
    return size, position


@inlined
def tagged(data: Bytes, position: Number, end: Number, tag: Number) -> tuple[Number, Number]:
    """Return size and start of the content of the tagged field that begins here; the size is `BAD` for another tag, or if it is cut."""
    found, position = unsigned_varint(data, position, end)
    if position == NO_POSITION or found != tag:
        return BAD, position
    size, position = unsigned_varint(data, position, end)
    if position == NO_POSITION or size > end - position:
        return BAD, position
    return size, position
