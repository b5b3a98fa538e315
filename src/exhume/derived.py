"""Values that follow from a table, made again when a row is added: so that a row of the table is all that there is to register."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

_Made = TypeVar("_Made")


def derived_from(*tables: Mapping[Any, Any] | Sequence[Any]) -> Callable[[Callable[[], _Made]], Callable[[], _Made]]:
    """Keep what a function makes of these tables until one of them has other rows."""

    def keep(make: Callable[[], _Made]) -> Callable[[], _Made]:
        kept: list[tuple[list[Any], _Made]] = []

        @wraps(make)
        def get() -> _Made:
            rows = [list(table.values() if isinstance(table, Mapping) else table) for table in tables]
            if not kept or kept[0][0] != rows:
                kept[:] = [(rows, make())]
            return kept[0][1]

        return get

    return keep
