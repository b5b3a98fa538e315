"""The order of a log by its clock, one record after the other."""

from __future__ import annotations

from exhume.replay.moment import ClockOrder


def take(order: ClockOrder, record_offset: int, time_ms: int | None, moment_ms: int) -> None:
    """Add the next record, in the order of the log."""
    if time_ms is None:
        order.untimed += 1
        return
    order.timed += 1
    order.out_of_order += order.greatest_ms is not None and time_ms < order.greatest_ms
    order.greatest_ms = time_ms if order.greatest_ms is None else max(time_ms, order.greatest_ms)
    if order.first_later is not None:
        order.left_out += time_ms <= moment_ms
    elif time_ms > moment_ms:
        order.first_later = record_offset, time_ms
