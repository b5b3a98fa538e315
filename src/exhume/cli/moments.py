"""Times in tables, shown in UTC, or in the zone of `--tz`, with the zone. A time is int64 milliseconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from exhume.moments import zone

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
# 9999-12-31 23:59:59.999, the last time with a year of four digits.
_LAST_SHOWN_MS = 253_402_300_799_999


def format_ms(moment_ms: int) -> str:
    """This time as `2026-11-21 05:26:29.123Z`, or in the zone of `--tz`; the number itself outside the years 1970 to 9999.

    Kafka uses -1 for "none", and brokers wrote Long.MAX_VALUE for "never"; both stay numbers.
    """
    if not 0 <= moment_ms <= _LAST_SHOWN_MS:
        return str(moment_ms)
    moment = _EPOCH + moment_ms * _MILLISECOND
    if zone() is UTC:
        # isoformat takes half as long as a format with % signs.
        return moment.isoformat(" ", "milliseconds").removesuffix("+00:00") + "Z"
    return moment.astimezone(zone()).isoformat(" ", "milliseconds")
