"""Loops over commits: compiled for a large log, plain Python for a small one.

columns    the columns of their tables
loops      the loops
compiled   the loops as kernels
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Loops(NamedTuple):
    """The functions of `loops`, compiled or not."""

    look_up: Callable[..., None]
    enter: Callable[..., None]
    update_keys: Callable[..., int]
    update_groups: Callable[..., int]
    judge: Callable[..., int]
    keep: Callable[..., None]


def loops_for(*, compiled: bool) -> Loops:
    """Return the loops as kernels, or as plain functions."""
    module: Any
    if compiled:
        from exhume.analysis.detectors.commit_loops import compiled as module
    else:
        from exhume.analysis.detectors.commit_loops import loops as module
    return Loops(*(getattr(module, name) for name in Loops._fields))
