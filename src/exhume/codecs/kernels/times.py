"""Read the times of records: count those out of order, and find the first record that is later than each of several moments."""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import inlined, kernel, scan
from exhume.codecs.kernels.primitives import NO_POSITION, int16
from exhume.codecs.kernels.readers import read_commit
from exhume.codecs.kernels.records import NO_TIMESTAMP, read_fields
from exhume.codecs.kernels.types import Bytes, Int64s, Number, Rows
from exhume.codecs.record_types import OFFSET_COMMIT_TYPES

#: The entries of `counts`: the number of records with a time, without one, and with an earlier time than a record before; the least and the
#: greatest time so far; the rows of `highs` in use; the number of moments before the greatest time.
TIMED, UNTIMED, OUT_OF_ORDER, LEAST_MS, GREATEST_MS, HIGHS, PASSED = range(7)
COUNTS = 7
#: A row of `moments`, in ascending order, with one more row after the last moment: its time; the records after the moment before it, up to
#: it; the same, of those that come after a later record. These numbers of the moments up to one add up to its own; some are below 0.
MOMENT_MS, UP_TO, LEFT_OUT = range(3)
#: The first record later than the moment: its record offset, its time, and the number of its batch.
FIRST_LATER, FIRST_LATER_MS, FIRST_LATER_BATCH = range(3, 6)
MOMENT_COLUMNS = 6
#: A row of `highs`: the time of records that are in order, and their number. Times after the last row are not kept.
HIGH_MS, HIGH_COUNT = range(2)
HIGH_COLUMNS = 2


@kernel
def read_times(
    rows: Rows,
    first: Number,
    last: Number,
    data: Bytes,
    bodies: Rows,
    start_offset: Number,
    is_of_commits: bool,
    counts: Int64s,
    moments: Rows,
    highs: Rows,
) -> Number:
    """Count the times of the records of batches `first` to `last` of `rows`; return the number of the batch at which it ends.

    With `is_of_commits`, the time of a commit is the commit timestamp in its value. Batches that end before `start_offset` do not count.
    The records of each batch are in `data` from `bodies[:, 0]` to `bodies[:, 1]`. It ends before `last` at a batch that does not hold
    exactly the records that its header counts, each with a key, a value and no header: its readable records depend on the reader.
    """
    for number in range(first, last):
        if rows[number, scan.LAST_OFFSET] < start_offset:
            continue
        position, end = bodies[number, 0], bodies[number, 1]
        attributes = rows[number, scan.ATTRIBUTES]
        is_stamped = attributes & scan.LOG_APPEND_TIME != 0
        may_be_commit = is_of_commits and attributes & scan.CONTROL == 0
        for _ in range(rows[number, scan.RECORD_COUNT]):
            record_end, timestamp_delta, offset_delta, key_start, key_size, value_start, value_size = read_fields(data, position, end)
            if record_end == NO_POSITION:
                return number
            position = record_end
            time_ms = rows[number, scan.MAX_TIMESTAMP] if is_stamped else rows[number, scan.BASE_TIMESTAMP] + timestamp_delta
            if may_be_commit and key_size >= 2 and value_size >= 0 and int16(data, key_start) in OFFSET_COMMIT_TYPES:
                commit = read_commit(data, value_start, value_start + value_size)
                if commit.after == NO_POSITION:
                    return number
                time_ms = max(commit.commit_timestamp_ms, np.int64(NO_TIMESTAMP))
            _count(rows[number, scan.BASE_OFFSET] + offset_delta, time_ms, number, counts, moments, highs)
        if position != end:
            return number
    return last


@kernel
def take_times(record_offsets: Int64s, times_ms: Int64s, counts: Int64s, moments: Rows, highs: Rows) -> None:
    """Count the times of these records; -1 for a record without one. The number of the batch of a record is its place here."""
    for place in range(len(times_ms)):
        _count(record_offsets[place], times_ms[place], place, counts, moments, highs)


@inlined
def _count(record_offset: Number, time_ms: Number, batch: Number, counts: Int64s, moments: Rows, highs: Rows) -> None:
    if time_ms == NO_TIMESTAMP:
        counts[UNTIMED] += 1
        return
    if counts[TIMED] == 0 or time_ms < counts[LEAST_MS]:
        counts[LEAST_MS] = time_ms
    if counts[TIMED] != 0 and time_ms < counts[GREATEST_MS]:
        counts[TIMED] += 1
        counts[OUT_OF_ORDER] += 1
        low, high = np.int64(0), counts[PASSED]
        while low < high:
            middle = (low + high) // 2
            if moments[middle, MOMENT_MS] < time_ms:
                low = middle + 1
            else:
                high = middle
        moments[low, UP_TO] += 1
        moments[low, LEFT_OUT] += 1
        moments[counts[PASSED], LEFT_OUT] -= 1
        return
    counts[TIMED] += 1
    counts[GREATEST_MS] = time_ms
    while counts[PASSED] < len(moments) - 1 and moments[counts[PASSED], MOMENT_MS] < time_ms:
        moments[counts[PASSED], FIRST_LATER] = record_offset
        moments[counts[PASSED], FIRST_LATER_MS] = time_ms
        moments[counts[PASSED], FIRST_LATER_BATCH] = batch
        counts[PASSED] += 1
    moments[counts[PASSED], UP_TO] += 1
    row = counts[HIGHS] - 1
    if row >= len(highs):
        return
    if row < 0 or highs[row, HIGH_MS] != time_ms:
        counts[HIGHS] += 1
        row += 1
        if row == len(highs):
            return
        highs[row, HIGH_MS], highs[row, HIGH_COUNT] = time_ms, 0
    highs[row, HIGH_COUNT] += 1
