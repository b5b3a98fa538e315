"""Mark the batches that have a record of one group: kernels that read only keys."""

from __future__ import annotations

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.primitives import NO_POSITION, is_same
from exhume.codecs.kernels.readers import TYPE_BYTES, read_group_key
from exhume.codecs.kernels.records import read_fields
from exhume.codecs.kernels.scan import ATTRIBUTES, CONTROL, RECORD_COUNT
from exhume.codecs.kernels.types import Bytes, Number, Rows


@kernel
def mark_mentions(rows: Rows, first: Number, last: Number, data: Bytes, bodies: Rows, name: Bytes, marks: Bytes) -> None:
    """Set `marks` to 1 for each of the batches `first` to `last` of `rows` that may concern this group; to 0 for the others.

    Such a batch has a record of the group, is a control batch, or `read_fields` cannot read it to its end. The records of each batch are in
    `data` from `bodies[:, 0]` to `bodies[:, 1]`.
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
        # The key of every record type begins with the number of the type and the group.
        key = read_group_key(data, key_start + TYPE_BYTES, key_start + key_size)
        if key.group_size == len(name) and is_same(data, key.group_start, name, 0, len(name)):
            return True
        position = record_end
    return position != end
