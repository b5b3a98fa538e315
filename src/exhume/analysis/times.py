"""Times in sentences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def show_time(timestamp_ms: int) -> str:
    """Return a time in UTC; the number itself if it is outside of the calendar."""
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def at(timestamp_ms: int | None) -> str:
    """Return a time as the end of a phrase; nothing if there is none."""
    return "" if timestamp_ms is None else f" of {show_time(timestamp_ms)}"
