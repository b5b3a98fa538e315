"""The kernels in the sources of exhume: functions with types, and the constants that they use."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin, get_type_hints

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src"
_DECORATED = re.compile(r"^@(?:kernel|inlined|native)$", re.MULTILINE)


#: The kind of a value: a name, or a tuple of kinds.
Kind = Any


@dataclass(frozen=True)
class Kernel:
    """A kernel: `name` is its name in the unit, `parameters` and `result` are kinds (see `Kinds`)."""

    name: str
    role: str
    function: Any
    tree: ast.FunctionDef
    parameters: Mapping[str, Kind]
    result: Kind | None
    doc: str


class Fields(tuple[Kind, ...]):
    """The kind of a `NamedTuple` of numbers: the kinds of its fields; `names` are their names."""

    names: tuple[str, ...]


class Kinds:
    """The kinds of values in kernels, by their annotation.

    `i64`, `u64`, `u32`, `bool` and `f64` are numbers; a tuple of kinds is a kind. Arrays have one kind for each type of element and number
    of dimensions. The name of a `NamedTuple` of arrays is a kind, too.
    """

    def __init__(self) -> None:
        types = importlib.import_module("exhume.codecs.kernels.types")
        numpy = importlib.import_module("numpy")
        self.arrays: Mapping[str, Any] = {name: getattr(types, name) for name in types.ARRAYS}
        self.numbers = {numpy.uint64: "u64", numpy.uint32: "u32", bool: "bool", int: "i64", float: "f64"}
        self.records: dict[str, Any] = {}

    def of(self, hint: Any) -> Kind | None:
        """Return the kind of a value with this annotation; None for no value."""
        if hint is type(None):
            return None
        if get_origin(hint) is tuple:
            return tuple(self.of(each) for each in get_args(hint))
        for name, array in self.arrays.items():
            if hint == array:
                return name
        if hint in self.numbers:
            return self.numbers[hint]
        if hint is Any:
            return "i64"
        if isinstance(hint, type) and hasattr(hint, "_fields"):
            kinds = [self.of(each) for each in get_type_hints(hint, include_extras=True).values()]
            if all(kind in self.numbers.values() for kind in kinds):
                fields = Fields(kinds)
                fields.names = hint._fields
                return fields
            self.records.setdefault(hint.__name__, hint)
            return hint.__name__
        raise TypeError(f"a kernel cannot take or return {hint}")

    def fields(self, record: str) -> dict[str, str]:
        """Return the kinds of the fields of a `NamedTuple`, in their order."""
        hints = get_type_hints(self.records[record], include_extras=True)
        return {name: str(self.of(hints[name])) for name in self.records[record]._fields}


def load() -> tuple[list[Kernel], Kinds]:
    """Import all modules with kernels, uncompiled; return the kernels in order, and the kinds of values."""
    os.environ["EXHUME_KERNELS"] = "plain"
    sys.path.insert(0, str(SOURCES))
    modules = [importlib.import_module(_module_name(path)) for path in files()]
    kinds = Kinds()
    kernels = [kernel for module in modules for kernel in _kernels_of(module, kinds)]
    return kernels, kinds


def files() -> Sequence[Path]:
    """Return the files that hold kernels, in order."""
    found = sorted((SOURCES / "exhume").rglob("*.py"))
    return [path for path in found if _DECORATED.search(path.read_text(encoding="utf-8"))]


def _module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts)


def _kernels_of(module: ModuleType, kinds: Kinds) -> list[Kernel]:
    found = []
    for function in vars(module).values():
        role = getattr(function, "kernel_role", None)
        if role is None or function.__module__ != module.__name__:
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        hints = get_type_hints(function, include_extras=True)
        parameters = {each.arg: kinds.of(hints[each.arg]) for each in tree.args.args}
        found.append(
            Kernel(
                name=unit_name(function),
                role=role,
                function=function,
                tree=tree,
                parameters=parameters,
                result=kinds.of(hints.get("return", type(None))),
                doc=inspect.getdoc(function) or "",
            )
        )
    return found


def unit_name(function: Any) -> str:
    """Return the name of a kernel in the unit: its module and its own."""
    return f"{function.__module__.removeprefix('exhume.').replace('.', '_')}__{function.__name__}"
