"""Values derived from a table, computed again when the table gets a row: a new row needs no other registration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

_Made = TypeVar("_Made")


def derived_from(*tables: Mapping[Any, Any] | Sequence[Any]) -> Callable[[Callable[[], _Made]], Callable[[], _Made]]:
    """Cache the result of a function of these tables until the rows of one change."""

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
