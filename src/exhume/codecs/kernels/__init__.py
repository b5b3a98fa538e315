"""Loops over bytes, compiled to machine code.

A kernel takes numpy arrays and numbers, knows no Python object and no exception, and lets other threads run while it works. What it
does is what the plain code next to it in `codecs` does, for the common case; which cases those are is said where it is called.

Importing a kernel is slow (it brings the compiler): import it where it is used. Machine code is kept where `kernel_cache` says, and is made
anew on a machine of another kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba import config
from numba.core.event import Listener, register

from exhume.codecs import kernel_cache

_PLACE = kernel_cache.prepare()
if _PLACE is not None and not config.CACHE_DIR:  # type: ignore[attr-defined]
    config.CACHE_DIR = str(_PLACE)  # type: ignore[attr-defined]

#: False where every process makes its own.
KEEPS_CODE = _PLACE is not None


class _Compiling(Listener):
    def on_start(self, _event: object) -> None:
        kernel_cache.about_to_compile()

    def on_end(self, _event: object) -> None:
        pass


register("numba:compile", _Compiling())  # type: ignore[no-untyped-call]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """`function` compiled on its first call; it can be called from other kernels."""
    return _compiled(function, inline=False)


def inlined(function: _Function) -> _Function:
    """A kernel whose code is put where it is called: for what loops call, above all with many arrays."""
    return _compiled(function, inline=True)


def _compiled(function: _Function, *, inline: bool) -> _Function:
    # A kernel makes no array: so none is counted, which costs more than most of what kernels do.
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "forceinline": inline, "cache": KEEPS_CODE}
    return cast("_Function", numba.njit(**options)(function))
