"""`exhume.data_classes` against the standard library: the same classes, and no method before its first use."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
from dataclasses import FrozenInstanceError, field
from pathlib import Path
from typing import Any

import pytest

from exhume import data_classes
from exhume.data_classes import dataclass as unmade

SOURCES = Path(data_classes.__file__).parent

OPTIONS = [
    {},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"slots": True, "order": True},
    {"slots": True, "eq": False},
    {"frozen": True, "slots": True, "kw_only": True, "repr": False},
]


def _made(decorator: Any, options: dict[str, bool]) -> Any:
    class Base:
        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.one + self.two)  # type: ignore[attr-defined]

    class Example(Base):
        """An example."""

        one: int
        two: int = field(default=2, repr=False)
        listed: list[int] = field(default_factory=list, compare=False)
        total: int = field(default=0, init=False)
        later: dict[str, int] = field(default_factory=dict, init=False)

    return decorator(**options)(Example)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options) or "none")
def test_a_class_does_as_one_of_the_standard_library(options: dict[str, bool]) -> None:
    ours, theirs = _made(unmade, options), _made(dataclasses.dataclass, options)

    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__match_args__ == theirs.__match_args__
    made = [[each(one=1), each(one=1, two=3, listed=[4]), each(one=1)] for each in (ours, theirs)]
    for one, other in zip(*made, strict=True):
        assert [getattr(one, each.name) for each in dataclasses.fields(one)] == [
            getattr(other, each.name) for each in dataclasses.fields(other)
        ]
        assert options.get("repr") is False or repr(one) == repr(other)
        assert dataclasses.replace(one, one=9).total == dataclasses.replace(other, one=9).total
        assert copy.copy(one).total == one.total
    for find in (
        lambda listed: listed[0] == listed[2],
        lambda listed: listed[0] == listed[1],
        lambda listed: listed[0] < listed[1],
        lambda listed: hash(listed[0]) == hash(listed[2]),
        lambda listed: type(listed[0])(),
        lambda listed: setattr(listed[0], "one", 5),
        lambda listed: delattr(listed[0], "two"),
    ):
        assert _outcome(find, made[0]) == _outcome(find, made[1])


def _outcome(find: Any, listed: list[Any]) -> object:
    """What this returns, or the error that it raises."""
    try:
        return find(listed)
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


@unmade(frozen=True, slots=True)
class Pickled:
    """Travels to another process."""

    name: str
    numbers: tuple[int, ...] = ()


def test_an_instance_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Pickled("a", (1, 2)))) == Pickled("a", (1, 2))
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        Pickled("a").name = "b"  # type: ignore[misc]


def test_a_method_is_made_at_its_first_use_only() -> None:
    example = _made(unmade, {})

    assert not inspect.isfunction(example.__dict__["__init__"])
    example(one=1)
    assert inspect.isfunction(example.__dict__["__init__"])
    assert not inspect.isfunction(example.__dict__["__repr__"])


def test_every_module_takes_the_decorator_from_here() -> None:
    """One that takes it from the standard library pays for its methods at every start."""
    plain = re.compile(r"^\s*from dataclasses import .*\bdataclass\b", re.MULTILINE)
    others = [path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.py") if plain.search(path.read_text(encoding="utf-8"))]

    assert others == ["data_classes.py"]
