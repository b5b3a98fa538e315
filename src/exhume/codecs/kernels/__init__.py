"""Loops over bytes and columns. They are written in Python, and compiled when exhume is installed.

A kernel takes numpy arrays and numbers, uses no Python object and raises no exception, and other threads run while it works. Its module has
the Python text; `exhume._kernels` has the machine code of all kernels. Both give the same results. The environment variable EXHUME_KERNELS
chooses another code: `plain` runs the text, for example in a debugger; the path of an extension module runs another build, such as one that
checks each index.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType
from typing import Any, TypeVar, cast

import numpy as np

_Function = TypeVar("_Function", bound=Callable[..., Any])
_CHECKED = "exhume._kernels_checked"


def _compiled() -> ModuleType | None:
    """Return the machine code that EXHUME_KERNELS names; None for the text."""
    wanted = os.environ.get("EXHUME_KERNELS")
    if wanted is None:
        try:
            return import_module("exhume._kernels")
        except ModuleNotFoundError as error:
            reason = "the machine code of exhume is missing: install exhume with pip; Python cannot import it from a zip file"
            raise ImportError(reason) from error
    if wanted == "plain":
        return None
    loader = ExtensionFileLoader(_CHECKED, wanted)
    spec = spec_from_loader(_CHECKED, loader)
    assert spec is not None
    module = sys.modules[_CHECKED] = module_from_spec(spec)
    loader.exec_module(module)
    return module


_COMPILED = _compiled()
#: The type of a number in the text, by its annotation.
_NUMBERS: dict[str, Callable[[Any], Any]] = {"Number": np.int64, "int": np.int64, "np.uint64": np.uint64, "np.uint32": np.uint32}
_calls = threading.local()
_TEXTS: dict[object, Callable[..., Any]] = {}


def kernel(function: _Function) -> _Function:
    """Return the machine code of a function that other kernels and plain code call."""
    return _code_of(function, "kernel")


def inlined(function: _Function) -> _Function:
    """Return the machine code of a kernel whose code is copied to each of its calls, because loops call it."""
    return _code_of(function, "inlined")


def native(function: _Function) -> _Function:
    """Return the machine code of a function that `kernels.h` writes in C, because no translated Python becomes the same instructions."""
    return _code_of(function, "native")


def _code_of(function: _Function, role: str) -> _Function:
    text = _text(function, role)
    if _COMPILED is None:
        return text
    name = f"py_{function.__module__.removeprefix('exhume.').replace('.', '_')}__{function.__name__}"
    # An instruction without a result, such as `fetch`, is for kernels only.
    code = getattr(_COMPILED, name, text) if role == "native" else getattr(_COMPILED, name)
    _TEXTS[code] = text
    return cast("_Function", code)


def _text(function: _Function, role: str) -> _Function:
    """Return a function that takes and returns Python numbers as machine code does, and calculates with 64 bits."""
    takes = [_NUMBERS.get(each, _as_it_is) for name, each in function.__annotations__.items() if name != "return"]

    @wraps(function)
    def text(*arguments: Any) -> Any:
        is_inner, _calls.is_inner = getattr(_calls, "is_inner", False), True
        try:
            # Hashes overflow on purpose.
            with np.errstate(over="ignore"):
                result = function(*(take(each) for take, each in zip(takes, arguments, strict=True)))
        finally:
            _calls.is_inner = is_inner
        return result if is_inner else _plain(result)

    text.kernel_role = role  # type: ignore[attr-defined]
    return cast("_Function", text)


def _as_it_is(value: Any) -> Any:
    return value


def _plain(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(_plain(each) for each in result)
    return result.item() if isinstance(result, np.generic) else result


def text_of(code: _Function) -> _Function:
    """Return the Python text of a kernel, which gives the same result."""
    return cast("_Function", _TEXTS.get(code, code))


def called() -> frozenset[str]:
    """Return the names in the machine code of the kernels that Python has called; only a build that checks each index notes them."""
    return frozenset(_COMPILED.CALLED if _COMPILED is not None else ())
