"""Which batches have a record of one group: kernels that look at keys only."""

from __future__ import annotations

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.primitives import NO_POSITION, int16, is_same
from exhume.codecs.kernels.records import read_fields
from exhume.codecs.kernels.scan import ATTRIBUTES, CONTROL, RECORD_COUNT
from exhume.codecs.kernels.types import Bytes, Number, Rows

_TYPE_AND_SIZE = 4


@kernel
def mark_mentions(rows: Rows, first: Number, last: Number, data: Bytes, bodies: Rows, name: Bytes, marks: Bytes) -> None:
    """Set `marks` to 1 for each of the batches `first` to `last` of `rows` that has a record of this group, is a control batch, or cannot
    be read to its end by `read_fields`; 0 for the others. Their records lie in `data` from `bodies[:, 0]` to `bodies[:, 1]`.
    """
    for number in range(first, last):
        is_control = rows[number, ATTRIBUTES] & CONTROL != 0
        marks[number] = is_control or _mentions(data, bodies[number, 0], bodies[number, 1], rows[number, RECORD_COUNT], name)


@kernel
def _mentions(data: Bytes, position: Number, end: Number, records: Number, name: Bytes) -> Number:
    for _ in range(records):
        record_end, _, _, key_start, key_size, _, _ = read_fields(data, position, end)
        if record_end == NO_POSITION:
            return True
        # Every type of record begins with its number and the group.
        has_size = key_size >= _TYPE_AND_SIZE + len(name) and int16(data, key_start + 2) == len(name)
        if has_size and is_same(data, key_start + _TYPE_AND_SIZE, name, 0, len(name)):
            return True
        position = record_end
    return position != end
