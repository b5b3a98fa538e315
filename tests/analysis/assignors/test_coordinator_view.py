"""The targets of the coordinator, and the order of its sets of partitions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exhume.analysis.assignors.coordinator_view import Targets, as_number_set
from exhume.analysis.assignors.java_order import called_capacity, copied_set_capacity, hash_order, number_hash
from tests.strategies import examples


def test_targets_are_equal_to_the_lists_of_their_members() -> None:
    targets = Targets({"a": {"t": [2, 0], "s": range(2)}, "b": {}})

    assert targets == {"a": [("s", 0), ("s", 1), ("t", 0), ("t", 2)], "b": []}
    assert targets != {"a": [("s", 0), ("s", 1), ("t", 0), ("t", 2)]}
    assert (len(targets), targets.get("c")) == (2, None)


@examples(200)
@given(st.lists(st.one_of(st.integers(0, 40), st.integers(65_500, 65_600), st.integers(-3, 2**31 - 1)), max_size=40))
def test_a_set_of_partitions_has_the_order_of_a_hash_table(numbers: list[int]) -> None:
    assert as_number_set(numbers) == hash_order(numbers, number_hash, copied_set_capacity(len(numbers)))


@examples(200)
@given(st.lists(st.integers(0, 60), max_size=120), st.sampled_from((1, 2, 16, 64)))
def test_a_full_table_grows_with_the_next_call(calls: list[int], start: int) -> None:
    capacity, keys = start, set[int]()
    for key in calls:
        if 4 * len(keys) > 3 * capacity:
            capacity *= 2
        keys.add(key)

    assert called_capacity(calls, start) == capacity
