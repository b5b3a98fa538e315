"""`dataclass` as in the standard library, but each method is made at its first use.

A command defines some two hundred of these classes and uses few of them. The methods of one take up to a millisecond of its start.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError, fields, make_dataclass
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, order=False, repr=True, slots=False, kw_only=False):  # noqa: A002
        """Return this class with the methods of a data class; without a class, a decorator. Options as in `dataclasses`."""

        def decorate(plain):
            described = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(plain)
            names = ["__init__", *["__repr__"] * repr, *["__eq__"] * eq, *_COMPARISONS * order]
            has_hash = described.__dict__.get("__hash__") is not None
            for name in names:
                if name not in described.__dict__:
                    setattr(described, name, _Unmade(described, name, frozen))
            if eq and not has_hash:
                described.__hash__ = _Unmade(described, "__hash__", frozen) if frozen else None
            if frozen:
                _freeze(described, slots)
            return described

        return decorate if cls is None else decorate(cls)


class _Unset:
    """The default of a parameter whose value a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET = _Unset()
_COMPARISONS = ["__lt__", "__le__", "__gt__", "__ge__"]


class _Unmade:
    """A method that the first use of its name puts into its place."""

    def __init__(self, described: Any, name: str, is_frozen: bool) -> None:
        self._class, self._name, self._is_frozen = described, name, is_frozen

    def __get__(self, instance: object, owner: type) -> Any:
        """Make the method, and return it as the class has it."""
        described, name = self._class, self._name
        method = _init_of(described, self._is_frozen) if name == "__init__" else _method_of(described, name)
        method.__module__, method.__qualname__ = described.__module__, f"{described.__qualname__}.{name}"
        setattr(described, name, method)
        return method.__get__(instance, owner)


def _init_of(described: Any, is_frozen: bool) -> Any:
    """Return `__init__`, as `dataclasses` writes it; that would write the methods of a frozen class beside it."""
    known: dict[str, object] = {"_set": object.__setattr__, "_unset": _UNSET}
    parameters: dict[Any, list[str]] = {False: [], True: []}
    body = []
    for each in fields(described):
        name, value = each.name, each.name
        known[f"_default_{name}"], known[f"_make_{name}"] = each.default, each.default_factory
        has_default, is_made = each.default is not MISSING, each.default_factory is not MISSING
        if each.init:
            default = f"=_default_{name}" if has_default else "=_unset" if is_made else ""
            parameters[each.kw_only].append(name + default)
            value = f"_make_{name}() if {name} is _unset else {name}" if is_made else name
        elif has_default or is_made:
            value = f"_default_{name}" if has_default else f"_make_{name}()"
        else:
            continue
        body.append(f"_set(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(described, "__post_init__"):
        body.append("self.__post_init__()")
    listed = ["self", *parameters[False], *(["*", *parameters[True]] if parameters[True] else [])]
    # No text of a log is in this code: names of fields only.
    exec(f"def __init__({', '.join(listed)}):\n " + "\n ".join(body or ["pass"]), known)  # noqa: S102
    method: Any = known["__init__"]
    method.__annotations__ = {each.name: each.type for each in fields(described) if each.init} | {"return": None}
    return method


def _method_of(described: Any, name: str) -> Any:
    """Return one of the other methods."""
    return make_dataclass(
        described.__name__,
        [(each.name, each.type, each) for each in fields(described)],
        init=False,
        repr=name == "__repr__",
        eq=name != "__repr__",
        order=name in _COMPARISONS,
        unsafe_hash=name == "__hash__",
    ).__dict__[name]


def _freeze(described: Any, has_slots: bool) -> None:
    """Let instances of this class refuse new values."""
    names = frozenset(each.name for each in fields(described))

    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807
        if type(self) is described or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(described, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is described or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(described, self).__delattr__(name)

    described.__setattr__, described.__delattr__ = __setattr__, __delattr__
    if has_slots:
        for state in (_state_of, _set_state):
            if state.__name__ not in described.__dict__:
                setattr(described, state.__name__, state)


def _state_of(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


_state_of.__name__, _set_state.__name__ = "__getstate__", "__setstate__"
