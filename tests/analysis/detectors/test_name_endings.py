"""Endings of client ids, against the regular expressions that say the same in quadratic time."""

from __future__ import annotations

import re
from random import Random

from exhume.analysis.detectors.name_endings import without_instance, without_number

_UUID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
_NUMBER = re.compile(r"[-_.]?([0-9]+|[0-9a-f]{8}-[0-9a-f-]{27})$")
_INSTANCE = re.compile(r"[-_.]?(?:[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{6,}|[0-9]+|consumer.*)$", re.IGNORECASE)


def test_endings_of_an_instance_are_cut() -> None:
    assert without_number("billing-7") == "billing"
    assert without_number(f"billing.{_UUID}") == "billing"
    assert without_instance("app-9f86d081884c7d65") == "app"
    assert without_instance("app-beef") == "app-beef"
    assert without_instance("app-Consumer-3-x") == "app"
    assert without_instance("") == ""


def test_they_are_the_endings_of_the_regular_expressions() -> None:
    random = Random(5)
    pieces = ("app", "-", "_", ".", "7", "42", "beef", "9f86d0", "consumer", "CONSUMER", _UUID, "g")
    for _ in range(20_000):
        name = "".join(random.choice(pieces) for _ in range(random.randrange(6)))
        assert without_number(name) == _NUMBER.sub("", name), name
        assert without_instance(name) == _INSTANCE.sub("", name), name
