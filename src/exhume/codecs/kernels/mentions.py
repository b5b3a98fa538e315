"""Which batches have a record of one group: kernels that look at keys only."""

from __future__ import annotations

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.primitives import NO_POSITION, Bytes, Int64s, Number, int16, is_same, varint, varlong
from exhume.codecs.kernels.scan import ATTRIBUTES, CONTROL, RECORD_COUNT

_TYPE_AND_SIZE = 4


@kernel
def mark_mentions(rows: Int64s, first: Number, last: Number, data: Bytes, bodies: Int64s, name: Bytes, marks: Bytes) -> None:
    """Set `marks` to 1 for each of the batches `first` to `last` of `rows` that has a record of this group, is a control batch, or cannot
    be read to its end; 0 for the others. Their records lie in `data` from `bodies[:, 0]` to `bodies[:, 1]`.
    """
    for number in range(first, last):
        is_control = rows[number, ATTRIBUTES] & CONTROL != 0
        marks[number] = is_control or _mentions(data, bodies[number, 0], bodies[number, 1], rows[number, RECORD_COUNT], name)


@kernel
def _mentions(data: Bytes, position: Number, end: Number, records: Number, name: Bytes) -> Number:
    for _ in range(records):
        size, position = varint(data, position, end)
        if position == NO_POSITION or size < 1 or size > end - position:
            return True
        record_end = position + size
        _, position = varlong(data, position + 1, record_end)
        if position == NO_POSITION:
            return True
        _, position = varint(data, position, record_end)
        if position == NO_POSITION:
            return True
        key_size, position = varint(data, position, record_end)
        if position == NO_POSITION or key_size > record_end - position:
            return True
        # Every type of record begins with its number and the group.
        has_size = key_size >= _TYPE_AND_SIZE + len(name) and int16(data, position + 2) == len(name)
        if has_size and is_same(data, position + _TYPE_AND_SIZE, name, 0, len(name)):
            return True
        position = record_end
    return position != end
