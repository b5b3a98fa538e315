"""Texts of the evidence for the script of a report: each one once, harmless, and named by its number."""

from __future__ import annotations

from exhume.escape import printable


class Strings:
    """A list of texts without repetition."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str | None) -> int:
        """The number of this text, made printable; -1 for none."""
        if text is None:
            return -1
        return self._numbers.setdefault(printable(text), len(self._numbers))

    def texts(self) -> list[str]:
        """All texts by number."""
        return list(self._numbers)
