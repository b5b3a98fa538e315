"""Durations: units, a default of brokers, and parsing."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TypeAlias

from exhume.errors import RequestError

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
#: The default of `transaction.max.timeout.ms`.
DEFAULT_MAX_TIMEOUT_MS = 15 * MINUTE_MS

#: A length of time as callers of the library write it: a `timedelta`, text such as `7d`, or milliseconds.
Duration: TypeAlias = int | timedelta | str

_UNITS_MS = {"ms": 1, "": 1, "s": 1000, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}


def parse_duration(text: str) -> int | None:
    """Milliseconds, from `7d`, `168h`, `1w`, `1d12h`, `7 days`, or the milliseconds themselves; None for anything else."""
    text = text.strip()
    match = re.fullmatch(r"([0-9]{1,15})(ms|s|m|h|d)?", text)
    if match is not None:
        return int(match[1]) * _UNITS_MS[match[2] or ""]
    if not re.fullmatch(r"[0-9][0-9a-zA-Z., ]{0,60}", text):
        return None
    import pytimeparse2

    seconds = pytimeparse2.parse(text)
    return None if not isinstance(seconds, int | float) else round(seconds * 1000)


def duration_ms(duration: Duration) -> int:
    """Return this length of time in milliseconds.

    Raises:
        RequestError: text that is no length of time.
    """
    if isinstance(duration, timedelta):
        return duration // timedelta(milliseconds=1)
    if isinstance(duration, int):
        return duration
    found = parse_duration(duration)
    if found is None:
        raise RequestError(
            f"{duration!r} is not a duration", remedy="Write weeks, days, hours, minutes or milliseconds, such as 1w, 7d, 1d12h or 10080m"
        )
    return found
