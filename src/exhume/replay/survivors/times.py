"""When the records of a log were appended: how that orders them, and where the first one is later than a moment."""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import kernel, scan
from exhume.codecs.kernels.primitives import NO_POSITION, Bytes, Int64s, Number, varint, varlong
from exhume.replay.moment import ClockOrder

#: Entries of what is found: `ClockOrder` as numbers, and the latest time so far.
_TIMED, _UNTIMED, _OUT_OF_ORDER, _LEFT_OUT, _HAS_LATER, _FIRST_LATER, _FIRST_LATER_MS, _GREATEST_MS = range(8)
_ENTRIES = 8
_NO_TIME = -1


def nothing_found() -> Int64s:
    """What `read_times` is to begin with."""
    return np.zeros(_ENTRIES, np.int64)


def order_of(found: Int64s) -> ClockOrder:
    """What was found."""
    entries = found.tolist()
    first_later = (entries[_FIRST_LATER], entries[_FIRST_LATER_MS]) if entries[_HAS_LATER] else None
    return ClockOrder(entries[_TIMED], entries[_UNTIMED], entries[_OUT_OF_ORDER], first_later, entries[_LEFT_OUT])


@kernel
def read_times(
    rows: Int64s, first: Number, last: Number, data: Bytes, bodies: Int64s, start_offset: Number, time_ms: Number, found: Int64s
) -> Number:
    """Add to `found` what the records of batches `first` to `last` of `rows` say, besides batches that end in front of `start_offset`.

    Their records lie in `data` from `bodies[:, 0]` to `bodies[:, 1]`. Gives the number of batches done: less than `last` where a record is
    cut.
    """
    for number in range(first, last):
        if rows[number, scan.LAST_OFFSET] < start_offset:
            continue
        position, end = bodies[number, 0], bodies[number, 1]
        is_stamped = rows[number, scan.ATTRIBUTES] & scan.LOG_APPEND_TIME != 0
        for _ in range(rows[number, scan.RECORD_COUNT]):
            size, position = varint(data, position, end)
            if position == NO_POSITION or size < 1 or size > end - position:
                return number
            record_end = position + size
            timestamp_delta, position = varlong(data, position + 1, record_end)
            if position == NO_POSITION:
                return number
            offset_delta, position = varint(data, position, record_end)
            if position == NO_POSITION:
                return number
            position = record_end
            appended_ms = rows[number, scan.MAX_TIMESTAMP] if is_stamped else rows[number, scan.BASE_TIMESTAMP] + timestamp_delta
            if appended_ms == _NO_TIME:
                found[_UNTIMED] += 1
                continue
            if found[_TIMED] == 0 or appended_ms >= found[_GREATEST_MS]:
                found[_GREATEST_MS] = appended_ms
            else:
                found[_OUT_OF_ORDER] += 1
            found[_TIMED] += 1
            if found[_HAS_LATER]:
                found[_LEFT_OUT] += appended_ms <= time_ms
            elif appended_ms > time_ms:
                found[_HAS_LATER] = 1
                found[_FIRST_LATER] = rows[number, scan.BASE_OFFSET] + offset_delta
                found[_FIRST_LATER_MS] = appended_ms
    return last
