"""A time is a `datetime`, text, or milliseconds, wherever the library takes one; so is a length of time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.durations import duration_ms
from exhume.errors import RequestError
from exhume.moments import Time, time_ms

DEMO_LOG = Path(exhume.__file__).parent / "cli" / "demo_log"
MOMENT_MS = 1_795_230_840_500
#: The same moment, as callers write it.
MOMENTS: list[Time] = [
    datetime(2026, 11, 21, 3, 14, 0, 500_999, UTC),
    datetime(2026, 11, 21, 3, 14, 0, 500_000),  # UTC without a zone
    datetime(2026, 11, 21, 5, 14, 0, 500_000, timezone(timedelta(hours=2))),
    "2026-11-21T03:14:00.5",
]

ANSWERS: dict[str, Callable[[exhume.OffsetsTopic, Any], Any]] = {
    "state": lambda topic, time: topic.state(at_time_ms=time).offsets,
    "graded_state": lambda topic, time: topic.graded_state(at_time_ms=time)["completeness"],
    "diff": lambda topic, time: topic.diff(from_time_ms=time),
    "diff, later": lambda topic, time: topic.diff(from_time_ms=time, to_time_ms=datetime(2026, 11, 21, 3, 14, 20, tzinfo=UTC)),
    "records": lambda topic, time: topic.records(from_time_ms=time).read_all(),
    "dump": lambda topic, time: topic.dump(to_time_ms=time).read_all(),
    "owners": lambda topic, time: topic.owners(at_time_ms=time),
    "assignments": lambda topic, time: topic.assignments(at_time_ms=time).verdicts,
    "explain": lambda topic, time: topic.explain("fraud-scoring", at_time_ms=time),
    "reset_plan": lambda topic, time: topic.reset_plan(["fraud-scoring"], at_time_ms=time, now_ms=time).records,
    "expiry": lambda topic, time: topic.expiry(now_ms=time).forecast,
    "why": lambda topic, time: topic.why("fraud-scoring", now_ms=time),
    "growth": lambda topic, time: topic.growth(now_ms=time).partitions,
}


@pytest.mark.parametrize("name", ANSWERS)
def test_each_method_takes_a_time_in_every_form(name: str) -> None:
    with exhume.open(DEMO_LOG) as topic:
        expected = ANSWERS[name](topic, MOMENT_MS)
        for moment in (MOMENTS[0], MOMENTS[3]):
            assert ANSWERS[name](topic, moment) == expected


@pytest.mark.parametrize("moment", MOMENTS)
def test_every_form_is_the_same_time(moment: Time) -> None:
    assert time_ms(moment) == MOMENT_MS


def test_text_that_is_no_time_is_refused() -> None:
    with exhume.open(DEMO_LOG) as topic, pytest.raises(RequestError, match="'soon' is not a moment"):
        topic.state(at_time_ms="soon")


def test_a_length_of_time_has_three_forms() -> None:
    assert duration_ms(timedelta(days=7)) == duration_ms("7d") == duration_ms(604_800_000)
    with pytest.raises(RequestError, match="'long' is not a duration"):
        duration_ms("long")
    with exhume.open(DEMO_LOG) as topic:
        now = "2026-11-28"
        assert topic.expiry(retention_ms="3d", now_ms=now).forecast == topic.expiry(retention_ms=timedelta(days=3), now_ms=now).forecast
        assert topic.transactions(max_timeout_ms="15m").table == topic.transactions().table
