"""Scan and fold in one call, a few batches at a time: a kernel. A verified batch is folded while it is still in the cache."""

from __future__ import annotations

import numpy as np

from exhume.codecs.batch_format import LZ4
from exhume.codecs.kernels import inlined, kernel, scan
from exhume.codecs.kernels.lz4 import put_side_by_side
from exhume.codecs.kernels.primitives import int16
from exhume.codecs.kernels.types import Bytes, Int64s, Number, Rows
from exhume.replay.fold import tables as columns
from exhume.replay.fold.kernels.batches import fold
from exhume.replay.fold.kernels.chosen_groups import fold_chosen, takes_room
from exhume.replay.fold.rules import CHOSEN_GROUPS
from exhume.replay.fold.tables import Tables


@kernel
def scan_and_fold(
    content: Bytes,
    position: Number,
    until: Number,
    end: Number,
    verifies: bool,
    rows: Rows,
    bodies: Rows,
    cap_bytes: Number,
    memory: Bytes,
    unfolded: Bytes,
    segment: Number,
    rules: Int64s,
    tables: Tables,
    room: Int64s,
) -> Number:
    """Scan and fold the batches of `content[position:end]` that begin before `until`; with chosen groups, by `fold_chosen`.

    Compressed records are decompressed into `memory`; `unfolded` is the same memory, for kernels that only read. Returns the byte after the
    last batch. Ends early where a fold does. Ends also before a batch that needs more than `room`, before a batch that `put_side_by_side`
    does not take, before a message of format 0 or 1, and before an incomplete batch.
    """
    counts = tables.counts
    while position < until:
        if end - position < scan.HEADER_BYTES or not _is_taken(content, position):
            break
        scanned, _ = scan.scan(content, position, end, verifies, rows)
        count = np.int64(0)
        while count < scanned and rows[count, scan.POSITION] < until and _is_taken(content, rows[count, scan.POSITION]):
            count += 1
        if count == 0:
            break
        if counts[columns.FIRST_BASE_OFFSET] < 0:
            counts[columns.FIRST_BASE_OFFSET] = rows[0, scan.BASE_OFFSET]
            counts[columns.FIRST_LEADER_EPOCH] = rows[0, scan.LEADER_EPOCH]
        counts[columns.LAST_OFFSET_SEEN] = rows[count - 1, scan.LAST_OFFSET]
        first = np.int64(0)
        while first < count:
            last = _first_compressed(rows, first, count, bodies)
            if last > first:
                done = _fold(rows, first, last, content, bodies, segment, rules, tables, room)
            else:
                last = put_side_by_side(content, rows, first, count, cap_bytes, memory, bodies)
                done = _fold(rows, first, last, unfolded, bodies, segment, rules, tables, room)
            if done > first:
                counts[columns.LAST_BATCH] = rows[done - 1, scan.POSITION]
            if done < last or last == first:
                return rows[done, scan.POSITION]
            first = last
        position = rows[count - 1, scan.POSITION] + rows[count - 1, scan.SIZE]
    return position


@inlined
def _is_taken(content: Bytes, position: Number) -> Number:
    """True where a batch of format 2 begins here whose records are not compressed, or are an lz4 stream."""
    codec = int16(content, position + 21) & scan.CODEC
    return content[np.uint64(position + 16)] == 2 and (codec == 0 or codec == LZ4)


@inlined
def _first_compressed(rows: Rows, first: Number, count: Number, bodies: Rows) -> Number:
    """Return the first compressed batch of `first` to `count`; write to `bodies` the places of the records of the batches before it."""
    number = first
    while number < count and rows[number, scan.ATTRIBUTES] & scan.CODEC == 0:
        bodies[number, 0] = rows[number, scan.POSITION] + scan.HEADER_BYTES
        bodies[number, 1] = rows[number, scan.POSITION] + rows[number, scan.SIZE]
        number += 1
    return number


@kernel
def _fold(
    rows: Rows, first: Number, last: Number, data: Bytes, bodies: Rows, segment: Number, rules: Int64s, tables: Tables, room: Int64s
) -> Number:
    if rules[CHOSEN_GROUPS]:
        return fold_chosen(rows, first, last, data, bodies, segment, rules, tables, room)
    fitting = first
    while fitting < last and takes_room(rows, fitting, bodies, room):
        fitting += 1
    return fold(rows, first, fitting, data, bodies, segment, rules, tables)
