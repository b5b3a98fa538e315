"""Patterns of names that differ in their varying parts."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable

import pytest

from exhume.analysis.detectors.name_patterns import by_pattern

_RANDOM = random.Random(20)


def _counts(names: list[str]) -> dict[str, int]:
    return {pattern: len(alike) for pattern, alike in by_pattern(names, names).items()}


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("app-<uuid>", lambda: f"app-{uuid.UUID(int=_RANDOM.getrandbits(128))}"),
        ("<uuid>.<uuid>", lambda: f"{uuid.UUID(int=_RANDOM.getrandbits(128))}.{uuid.UUID(int=1)}"),
        ("preview-<hex>-<hex>-tab", lambda: f"preview-{_RANDOM.getrandbits(16):04x}-{_RANDOM.getrandbits(32):08x}-tab"),
        ("run<hex>", lambda: f"run{_RANDOM.getrandbits(256):064x}7f7f7"),
        ("console-consumer-<n>", lambda: f"console-consumer-{_RANDOM.randrange(10 ** _RANDOM.randint(1, 30))}"),
        ("etl-<n>-<n>-<n>T<n>:<n>", lambda: f"etl-2024-{_RANDOM.randrange(1, 13)}-{_RANDOM.randrange(1, 29)}T10:{_RANDOM.randrange(60)}"),
        ("etl_<n><month><n>", lambda: f"etl_{_RANDOM.randrange(1, 29)}{_RANDOM.choice(['Jan', 'Feb', 'Mar'])}2024"),
        ("worker<n>", lambda: f"worker{_RANDOM.randrange(1000)}"),
    ],
)
def test_names_that_differ_in_varying_parts_have_one_pattern(pattern: str, name: Callable[[], str]) -> None:
    assert _counts([name() for _ in range(420)]) == {pattern: 420}


def test_words_are_no_varying_parts() -> None:
    names = ["billing", "mail", "orders.eu", "orders.us", "face", "b2b", "b2c", "cafe-west", "west-cafe"]

    assert len(_counts(names)) == len(names)


def test_numbers_stay_numbers_without_hexadecimal_neighbours() -> None:
    assert _counts([f"tenant-{number}" for number in range(1000, 2000)]) == {"tenant-<n>": 1000}


@pytest.mark.parametrize("unit", ["a1", "1-", "a-", "0", "f", "f0-", "12345678-1234-1234-1234-", "é1"])
def test_the_time_is_linear_in_the_bytes_of_a_name(unit: str) -> None:
    def seconds(size: int) -> float:
        names = [unit * (size // len(unit)) + "z"]
        began = time.perf_counter()
        by_pattern(names, names)
        return time.perf_counter() - began

    small, large = (min(seconds(size) for _ in range(5)) for size in (20_000, 400_000))

    assert large < 80 * small + 0.05
