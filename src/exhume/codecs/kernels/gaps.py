"""Runs of offsets that no record of a log holds: a kernel."""

from __future__ import annotations

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.primitives import Int64s, Number
from exhume.codecs.kernels.records import BATCH, OFFSET

#: Entries of `place`: the number of the batch at hand, and the offset that is to come next.
AT_BATCH, NEXT_OFFSET = range(2)
#: Columns of `gaps`: the first and the last offset that is missing, and the number of the record that showed it.
FIRST, LAST, SHOWN_BY = range(3)
GAP_COLUMNS = 3


@kernel
def find_gaps(last_offsets: Int64s, records: Int64s, until: Number, start_offset: Number, place: Int64s, gaps: Int64s) -> Number:
    """The gaps that these records show, and the ends of batches in front of number `until`; gives how many there are.

    `last_offsets` are those of the batches. Records below `start_offset` count for nothing. `gaps` has room for as many as there are
    records and batches. `place` goes on.
    """
    count = 0
    for index in range(records.shape[1]):
        count = _end_batches(last_offsets, records[BATCH, index], index, place, gaps, count)
        record_offset = records[OFFSET, index]
        if record_offset >= start_offset:
            count = _expect(record_offset, index, place, gaps, count)
            place[NEXT_OFFSET] = max(place[NEXT_OFFSET], record_offset + 1)
    return _end_batches(last_offsets, until, records.shape[1], place, gaps, count)


@kernel
def _end_batches(last_offsets: Int64s, until: Number, index: Number, place: Int64s, gaps: Int64s, count: Number) -> Number:
    while place[AT_BATCH] < until:
        next_offset = last_offsets[place[AT_BATCH]] + 1
        count = _expect(next_offset, index, place, gaps, count)
        place[NEXT_OFFSET] = max(place[NEXT_OFFSET], next_offset)
        place[AT_BATCH] += 1
    return count


@kernel
def _expect(record_offset: Number, index: Number, place: Int64s, gaps: Int64s, count: Number) -> Number:
    if record_offset > place[NEXT_OFFSET]:
        gaps[count, FIRST] = place[NEXT_OFFSET]
        gaps[count, LAST] = record_offset - 1
        gaps[count, SHOWN_BY] = index
        count += 1
    return count
