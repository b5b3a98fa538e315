"""Scanning and folding in one go, a few batches at a time: a kernel. What was verified is folded while it is near."""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel, scan
from exhume.codecs.kernels.primitives import Bytes, Int64s, Number, int16
from exhume.replay.survivors import tables as columns
from exhume.replay.survivors.asked import fold_asked, takes_room
from exhume.replay.survivors.fold import fold
from exhume.replay.survivors.rules import ASKED_GROUPS
from exhume.replay.survivors.tables import Tables


@kernel
def fold_ahead(
    content: Bytes,
    position: Number,
    until: Number,
    end: Number,
    verifies: bool,
    rows: Int64s,
    bodies: Int64s,
    segment: Number,
    rules: Int64s,
    tables: Tables,
    room: Int64s,
) -> Number:
    """Scan and fold batches of `content[position:end]`: those that begin in front of `until`, by `fold_asked` where groups are asked for.

    Gives the byte behind the last one. Ends early as a fold does, and in front of a batch that needs more than `room`, of a compressed
    one or a message, and of what is no whole batch.
    """
    counts = tables.counts
    while position < until:
        if end - position < scan.HEADER_BYTES or not _lies_as_it_is(content, position):
            break
        count, _ = scan.scan(content, position, end, verifies, rows)
        plain = np.int64(0)
        while plain < count and rows[plain, scan.POSITION] < until and _lies_as_it_is(content, rows[plain, scan.POSITION]):
            bodies[plain, 0] = rows[plain, scan.POSITION] + scan.HEADER_BYTES
            bodies[plain, 1] = rows[plain, scan.POSITION] + rows[plain, scan.SIZE]
            plain += 1
        if plain == 0:
            break
        if counts[columns.FIRST_BASE_OFFSET] < 0:
            counts[columns.FIRST_BASE_OFFSET] = rows[0, scan.BASE_OFFSET]
            counts[columns.FIRST_LEADER_EPOCH] = rows[0, scan.LEADER_EPOCH]
        counts[columns.LAST_OFFSET_SEEN] = rows[plain - 1, scan.LAST_OFFSET]
        if rules[ASKED_GROUPS]:
            done = fold_asked(rows, 0, plain, content, bodies, segment, rules, tables, room)
        else:
            fitting = np.int64(0)
            while fitting < plain and takes_room(rows, fitting, bodies, room):
                fitting += 1
            done = fold(rows, 0, fitting, content, bodies, segment, rules, tables)
        if done > 0:
            counts[columns.LAST_BATCH] = rows[done - 1, scan.POSITION]
        if done < plain:
            return rows[done, scan.POSITION]
        position = bodies[plain - 1, 1]
    return position


@inlined
def _lies_as_it_is(content: Bytes, position: Number) -> Number:
    """True where a batch of format 2 begins here whose records are not compressed."""
    return content[np.uint64(position + 16)] == 2 and int16(content, position + 21) & scan.CODEC == 0
