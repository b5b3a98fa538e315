"""Read the append times of records: count those out of order, and find the first record that is later than a moment."""

from __future__ import annotations

from exhume.codecs.kernels import kernel, scan
from exhume.codecs.kernels.primitives import NO_POSITION
from exhume.codecs.kernels.records import NO_TIMESTAMP, read_fields
from exhume.codecs.kernels.types import Bytes, Int64s, Number, Rows

#: The entries of `found`: the number of records with a time, without one, with an earlier time than a record before, and after the first
#: later record but not later than the moment; 1 if there is a record later than the moment; offset and time of the first such record; the
#: greatest time so far.
TIMED, UNTIMED, OUT_OF_ORDER, LEFT_OUT, HAS_LATER, FIRST_LATER, FIRST_LATER_MS, GREATEST_MS = range(8)
ENTRIES = 8


@kernel
def read_times(
    rows: Rows, first: Number, last: Number, data: Bytes, bodies: Rows, start_offset: Number, time_ms: Number, found: Int64s
) -> Number:
    """Add the times of the batches `first` to `last` of `rows` to `found`; return the number of the batch at which it ends.

    It skips batches that end before `start_offset`. The records of each batch are in `data` from `bodies[:, 0]` to `bodies[:, 1]`. It ends
    before `last` at a batch that does not hold exactly the records that its header counts, each with a key, a value and no header: its
    readable records depend on the reader.
    """
    for number in range(first, last):
        if rows[number, scan.LAST_OFFSET] < start_offset:
            continue
        position, end = bodies[number, 0], bodies[number, 1]
        is_stamped = rows[number, scan.ATTRIBUTES] & scan.LOG_APPEND_TIME != 0
        for _ in range(rows[number, scan.RECORD_COUNT]):
            record_end, timestamp_delta, offset_delta, _, _, _, _ = read_fields(data, position, end)
            if record_end == NO_POSITION:
                return number
            position = record_end
            appended_ms = rows[number, scan.MAX_TIMESTAMP] if is_stamped else rows[number, scan.BASE_TIMESTAMP] + timestamp_delta
            if appended_ms == NO_TIMESTAMP:
                found[UNTIMED] += 1
                continue
            if found[TIMED] == 0 or appended_ms >= found[GREATEST_MS]:
                found[GREATEST_MS] = appended_ms
            else:
                found[OUT_OF_ORDER] += 1
            found[TIMED] += 1
            if found[HAS_LATER]:
                found[LEFT_OUT] += appended_ms <= time_ms
            elif appended_ms > time_ms:
                found[HAS_LATER] = 1
                found[FIRST_LATER] = rows[number, scan.BASE_OFFSET] + offset_delta
                found[FIRST_LATER_MS] = appended_ms
        if position != end:
            return number
    return last
