"""Counts of times against a slow count, and merged counts against those of all records."""

from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.replay import clock_counts
from exhume.replay.clock_counts import ClockCounts
from exhume.replay.moment import ClockOrder
from tests.clocks import take
from tests.strategies import examples

TIMES = st.lists(st.none() | st.integers(0, 12), max_size=20)
MOMENTS = st.lists(st.integers(-1, 13), min_size=1, max_size=5).map(sorted)


def slowly(times: list[int | None], moment_ms: int) -> ClockOrder:
    order = ClockOrder()
    for record_offset, time_ms in enumerate(times):
        take(order, record_offset, time_ms, moment_ms)
    return order


def counted(times: list[int | None], moments: list[int], first: int = 0) -> ClockCounts:
    counts = ClockCounts.of(moments, is_part=True)
    counts.take([first + place for place in range(len(times))], times)
    return counts


@examples(200)
@given(TIMES, MOMENTS)
def test_the_order_for_each_moment(times: list[int | None], moments: list[int]) -> None:
    counts = counted(times, moments)

    assert [counts.order(number) for number in range(len(moments))] == [slowly(times, moment_ms) for moment_ms in moments]


@examples(200)
@given(TIMES, MOMENTS, st.lists(st.integers(0, 20), min_size=1, max_size=3), st.booleans())
def test_merged_counts_are_those_of_all_records(times: list[int | None], moments: list[int], cuts: list[int], from_the_right: bool) -> None:
    parts = [counted(times[start:end], moments, start or 0) for start, end in pairwise([0, *sorted(cuts), None])]
    parts = pickle.loads(pickle.dumps(parts))
    while len(parts) > 1:
        earlier, later = parts[-2:] if from_the_right else parts[:2]
        assert earlier.merge(later)
        parts.remove(later)

    assert [parts[0].order(number) for number in range(len(moments))] == [slowly(times, moment_ms) for moment_ms in moments]


def test_with_too_many_different_times_the_order_of_two_parts_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_counts, "_MOST_HIGHS", 3)
    late, many = counted([5], [9]), counted([1, 2, 3, 4, 6], [9], 1)

    assert not late.merge(many)
    assert counted([1], [9]).merge(many)
