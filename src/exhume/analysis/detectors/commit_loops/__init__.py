"""Loops over commits: compiled where a log is large, as they are where it is small.

columns    what they work on
loops      the loops
compiled   the same as kernels
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Loops(NamedTuple):
    """The functions of `loops`, of whichever kind."""

    look_up: Callable[..., None]
    enter: Callable[..., None]
    update_keys: Callable[..., int]
    update_groups: Callable[..., int]
    judge: Callable[..., int]
    keep: Callable[..., None]


def loops_for(*, compiled: bool) -> Loops:
    """The loops as kernels, or as they are."""
    module: Any
    if compiled:
        from exhume.analysis.detectors.commit_loops import compiled as module
    else:
        from exhume.analysis.detectors.commit_loops import loops as module
    return Loops(*(getattr(module, name) for name in Loops._fields))
