"""Keep pandas out of a program. Arrow imports it, if installed, as soon as it converts a list: a quarter of the time of a short command.

Only Spark needs pandas.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType


class _NoPandas:
    """A finder that raises an import error for pandas."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if name == "pandas":
            raise ModuleNotFoundError("kept out of this program", name=name)


def keep_out() -> None:
    """Hide pandas from imports, unless it is imported already."""
    sys.meta_path.insert(0, _NoPandas())


def let_in() -> None:
    """Undo `keep_out`. Call it before Arrow looks for pandas."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _NoPandas)]
