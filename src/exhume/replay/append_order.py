"""The order of append times in each log, from one pass over all readable batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exhume.arrow_rows import Origin
from exhume.codecs.segment_reader import SegmentBatch, SegmentReader
from exhume.replay.moment import ClockOrder

if TYPE_CHECKING:
    from exhume.codecs.columns.runs import Run

#: The approximate number of bytes that are unfolded and read at once.
_MOST_BYTES = 8 * 1024 * 1024


def append_orders(reader: SegmentReader, time_ms: int) -> dict[Origin, ClockOrder]:
    """The order of append times in each log, and its first record later than this time.

    By replica and offsets partition, without logs that have no batch. Records before the log start count here; a load leaves them out.
    """
    orders: dict[Origin, ClockOrder] = {}
    if not reader.is_worth_compiling:
        for batch in reader.batches():
            _take_batch(orders.setdefault(_origin(batch), ClockOrder()), batch, time_ms)
        return orders
    from exhume.codecs.columns.runs import runs

    for found in runs(reader):
        order = orders.setdefault(_origin(found), ClockOrder())
        if isinstance(found, SegmentBatch):
            _take_batch(order, found, time_ms)
        else:
            orders[_origin(found)] = _after_run(order, found, time_ms)
    return orders


def _origin(found: SegmentBatch | Run) -> Origin:
    return found.partition.replica, found.partition.offsets_partition


def _take_batch(order: ClockOrder, batch: SegmentBatch, time_ms: int) -> None:
    for record in batch.records():
        order.take(record.record_offset, record.timestamp_ms, time_ms)


def _after_run(order: ClockOrder, run: Run, time_ms: int) -> ClockOrder:
    from exhume.codecs.kernels.times import read_times
    from exhume.replay.fold.clock_order import found_of, order_of

    sections = run.sections()
    first = 0
    while first < len(run):
        last, data = sections.memory_from(first, len(run), _MOST_BYTES)
        done = first
        if data is not None:
            found = found_of(order)
            done = read_times(run.rows, first, last, data, sections.bodies, 0, time_ms, found)
            if done < last:
                # The times of the unfinished batch must not count twice.
                found = found_of(order)
                read_times(run.rows, first, done, data, sections.bodies, 0, time_ms, found)
            order = order_of(found)
        if done < last:
            _take_batch(order, run.batch(done), time_ms)
            done += 1
        first = done
    return order
