"""Loops over bytes, compiled to machine code.

A kernel takes numpy arrays and numbers, knows no Python object and no exception, and lets other threads run while it works. What it
does is what the plain code next to it in `codecs` does, for the common case; which cases those are is said where it is called.

Importing a kernel is slow (it brings the compiler): import it where it is used. Machine code is kept beside the source, or in the
user's cache where that is read-only, and is made anew on a machine of another kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """`function` compiled on its first call; it can be called from other kernels."""
    try:
        compiled = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:
        # There is no directory that machine code could be kept in.
        compiled = numba.njit(nogil=True)(function)
    return cast("_Function", compiled)
