"""The collector goes back to its usual pace after the last block, and freed memory goes back to the system."""

from __future__ import annotations

import ctypes
import gc
import sys

import pytest

from exhume.gc_control import give_back_freed_memory, infrequent_gc


def test_the_interval_is_what_it_was_behind_the_last() -> None:
    usual = gc.get_threshold()
    one, other = infrequent_gc(), infrequent_gc()

    with one:
        other.__enter__()
        assert gc.get_threshold()[0] > usual[0]
    assert gc.get_threshold()[0] > usual[0]
    other.__exit__(None, None, None)

    assert gc.get_threshold() == usual


def test_so_it_is_behind_an_error() -> None:
    usual = gc.get_threshold()

    with pytest.raises(ValueError, match="wrong"), infrequent_gc():
        raise ValueError("wrong")

    assert gc.get_threshold() == usual


def test_a_collector_that_is_off_stays_so() -> None:
    usual = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with infrequent_gc():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*usual)


def test_what_was_made_is_old_at_the_end() -> None:
    with infrequent_gc():
        made = [[number] for number in range(10_000)]

    assert _is_among(made, gc.get_objects(generation=2))


def test_what_somebody_froze_stays_frozen() -> None:
    frozen = [1]
    gc.freeze()
    try:
        with infrequent_gc():
            pass
        # These are the objects that are not frozen.
        assert not _is_among(frozen, gc.get_objects())
    finally:
        gc.unfreeze()

    assert _is_among(frozen, gc.get_objects())


def _is_among(one: object, many: list[object]) -> bool:
    return any(each is one for each in many)


class _Library:
    def __init__(self, asked: list[int]) -> None:
        self.malloc_trim = asked.append


@pytest.mark.skipif(sys.platform != "linux", reason="another C library")
@pytest.mark.parametrize("has_function", [True, False])
def test_freed_memory_is_given_back_where_the_c_library_can(monkeypatch: pytest.MonkeyPatch, *, has_function: bool) -> None:
    asked: list[int] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda name: _Library(asked) if has_function else object())

    give_back_freed_memory()

    assert asked == [0] * has_function
