"""Parse moments in text, and show them in sentences. A moment is int64 milliseconds since the epoch.

A text without a zone is in UTC, unless `use_zone` has chosen another zone.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal, TypeAlias, overload
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from exhume.durations import parse_duration
from exhume.errors import RequestError, did_you_mean, similar
from exhume.int64 import LARGEST_INT64

#: `append`: the record's timestamp. `commit`: the commit timestamp inside offset commits, for every other record its timestamp.
Clock = Literal["append", "commit"]

#: A time as callers of the library write it: a `datetime` (UTC without a zone), text as `parse_moment` takes it, or milliseconds.
Time: TypeAlias = int | datetime | str

# Timeouts and intervals end in `_ms` too; only these endings name a time.
_MOMENT_ENDINGS = ("timestamp_ms", "horizon_ms", "deadline_ms", "at_ms", "at_time_ms")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_BEFORE = re.compile(r"-\s*([0-9].*)|([0-9].*?)\s*ago", re.IGNORECASE)
_DAY = re.compile(
    r"now|(?:today|yesterday|(?:last )?(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
    r"(?:,? (?:at )?(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?)?",
    re.IGNORECASE,
)


_zone: list[tzinfo] = [UTC]


def use_zone(name: str | None) -> None:
    """Choose the zone of texts without one, and of times in tables: a name such as `Europe/Berlin`, or `local`; None: UTC.

    Raises:
        RequestError: no such zone.
    """
    if name is None:
        _zone[0] = UTC
        return
    try:
        _zone[0] = ZoneInfo(name) if name != "local" else datetime.now().astimezone().tzinfo or UTC
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        near = did_you_mean(name, sorted(available_timezones())) if similar(name, available_timezones()) else None
        remedy = near.partition(" Choose")[0] if near else "Write a name such as Europe/Berlin, or local"
        raise RequestError(f"no time zone {name!r}", remedy=remedy) from error


def zone() -> tzinfo:
    """Return the zone of texts without one, and of times in tables."""
    return _zone[0]


def parse_moment(text: str) -> int:
    """A moment in milliseconds since the epoch, from ISO 8601, from a time before now, or from the milliseconds themselves.

    `2026-11-21T05:26:29.123+01:00`, a space for the `T`, `Z`; midnight without a time; `-2h`, `2h ago`, `1d12h ago`, `now`, `today`,
    `yesterday 14:00`, `monday 09:00`. Fractions finer than a millisecond are cut off. Digits alone are milliseconds since the epoch.

    Raises:
        RequestError: another text, or a moment before 1970.
    """
    text = text.strip()
    if re.fullmatch(r"[+-]?[0-9]{1,100}", text):
        moment_ms = int(text)
    else:
        try:
            moment = datetime.fromisoformat(text)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=_zone[0])
            moment_ms = (aware - _EPOCH) // _MILLISECOND
        except ValueError as error:
            before_now = _before_now(text)
            if before_now is None:
                raise RequestError(
                    f"{text!r} is not a moment",
                    remedy="Write ISO 8601, such as 2026-11-21T05:26:29Z or 2026-11-21 (no zone: UTC, or --tz); a time before now, such "
                    "as -2h, '2h ago' or 'yesterday 14:00'; or milliseconds since 1970",
                ) from error
            moment_ms = before_now
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


def _before_now(text: str) -> int | None:
    """Return the moment of a text such as `-2h` or `yesterday 14:00`; None for another text."""
    now_ms = time.time_ns() // 1_000_000
    before = _BEFORE.fullmatch(text)
    if before is not None:
        duration_ms = parse_duration(before[1] or before[2])
        return None if duration_ms is None else now_ms - duration_ms
    if not _DAY.fullmatch(text):
        return None
    # It takes half a second to import, and words are rare.
    import dateparser

    now = datetime.now(_zone[0]).replace(tzinfo=None)
    found: datetime | None = dateparser.parse(text, languages=["en"], settings={"RELATIVE_BASE": now, "PREFER_DATES_FROM": "past"})
    if found is None:
        return None
    if ":" not in text and text.lower() != "now":
        found = found.replace(hour=0, minute=0, second=0, microsecond=0)
    return (found.replace(tzinfo=_zone[0]) - _EPOCH) // _MILLISECOND


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
