"""Keeping pandas out of a command. Arrow looks for it as soon as it is given a list, and imports it where it is installed: a quarter of the
time of a short command, for nothing. Only Spark hands tables over with it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType


class _NoPandas:
    """Says to whoever imports it that there is no pandas."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if name == "pandas":
            raise ModuleNotFoundError("kept out of this command", name=name)


def keep_out() -> None:
    """From now on there is no pandas, unless it was imported before."""
    sys.meta_path.insert(0, _NoPandas())


def let_in() -> None:
    """Take back `keep_out`. To be called before Arrow has looked for it."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _NoPandas)]
