"""Parse moments in text, and show them in sentences. A moment is int64 milliseconds since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias, overload

from exhume.errors import RequestError
from exhume.int64 import LARGEST_INT64

#: `append`: the record's timestamp. `commit`: the commit timestamp inside offset commits, for every other record its timestamp.
Clock = Literal["append", "commit"]

#: A time as callers of the library write it: a `datetime` (UTC without a zone), text as `parse_moment` takes it, or milliseconds.
Time: TypeAlias = int | datetime | str

# Timeouts and intervals end in `_ms` too; only these endings name a time.
_MOMENT_ENDINGS = ("timestamp_ms", "horizon_ms", "deadline_ms", "at_ms", "at_time_ms")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def parse_moment(text: str) -> int:
    """A moment in milliseconds since the epoch, from ISO 8601 or from the milliseconds themselves.

    `2026-11-21T05:26:29.123+01:00`, a space for the `T`, `Z`; UTC without a zone, midnight without a time.
    Fractions finer than a millisecond are cut off. Digits alone are milliseconds since the epoch.

    Raises:
        RequestError: another text, or a moment before 1970.
    """
    text = text.strip()
    if re.fullmatch(r"[+-]?[0-9]{1,100}", text):
        moment_ms = int(text)
    else:
        try:
            moment = datetime.fromisoformat(text)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            moment_ms = (aware - _EPOCH) // _MILLISECOND
        except ValueError as error:
            raise RequestError(
                f"{text!r} is not a moment",
                remedy="Write ISO 8601, such as 2026-11-21T05:26:29Z or 2026-11-21 (no zone: UTC), or milliseconds since 1970",
            ) from error
    if not 0 <= moment_ms <= LARGEST_INT64:
        raise RequestError(f"{text!r} is {'before 1970' if moment_ms < 0 else 'beyond what Kafka can store'}; no record is that old or new")
    return moment_ms


@overload
def time_ms(time: Time) -> int: ...
@overload
def time_ms(time: None) -> None: ...
@overload
def time_ms(time: Time | None) -> int | None: ...
def time_ms(time: Time | None) -> int | None:
    """Return this time in milliseconds since the epoch; None for none.

    Raises:
        RequestError: text that is not a moment, or before 1970.
    """
    if isinstance(time, str):
        return parse_moment(time)
    if isinstance(time, datetime):
        return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND
    return time


def is_moment(column: str) -> bool:
    """Return True if a column of this name holds times, not durations such as `session_timeout_ms`."""
    return column.endswith(_MOMENT_ENDINGS)


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
