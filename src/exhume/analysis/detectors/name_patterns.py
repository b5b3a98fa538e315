"""Names of one pattern: they differ only in UUIDs, hexadecimal digits, dates or numbers. The time is linear in the bytes of the names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

_Named = TypeVar("_Named")

#: Each alternative is one class of characters, so a search never goes back.
_BETWEEN_WORDS = re.compile(r"([^0-9A-Za-z]+)")
_RUNS = re.compile(r"[0-9]+|[A-Za-z]+")
DIGITS, HEX, _HEX_LETTERS = "0123456789", "0123456789abcdefABCDEF", "abcdefABCDEF"
_UUID_LENGTHS = (8, 4, 4, 4, 12)
#: Hexadecimal digits with fewer characters are a version or an abbreviation, such as b2.
_LEAST_HEX = 4
#: A word in which letters and digits alternate this often is random, not a name with a number.
_MOST_RUNS = 3
_MONTHS = frozenset(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"])


def by_pattern(named: Iterable[_Named], names: Sequence[str]) -> dict[str, list[_Named]]:
    """Group things by the pattern of their names, in the order of the first name of each pattern.

    Hexadecimal digits may be decimal digits only, or letters only. Such a part counts as hexadecimal if other names have hexadecimal digits
    in its place.
    """
    found: dict[str, list[_Named]] = {}
    folded = [_folded(name) for name in names]
    certain = {pattern for pattern, _ in folded}
    for each, (pattern, widest) in zip(named, folded, strict=True):
        found.setdefault(widest if widest in certain else pattern, []).append(each)
    return found


def _folded(name: str) -> tuple[str, str]:
    """Return the pattern of a name, and its pattern if every word that may be hexadecimal is."""
    parts = _BETWEEN_WORDS.split(name)
    certain, widest = [*parts], [*parts]
    place = 0
    while place < len(parts):
        if _is_uuid(parts, place):
            certain[place : place + 9] = widest[place : place + 9] = ["<uuid>", *[""] * 8]
            place += 10
            continue
        if parts[place]:
            certain[place] = _fold_word(parts[place])
            is_hex = len(parts[place]) >= _LEAST_HEX and not parts[place].strip(HEX)
            widest[place] = "<hex>" if is_hex and "<month>" not in certain[place] else certain[place]
        # Words are at even places, the characters between them at the others.
        place += 2
    return "".join(certain), "".join(widest)


def _is_uuid(parts: Sequence[str], place: int) -> bool:
    words = parts[place : place + 9]
    if len(words) < 9 or len(words[0]) != _UUID_LENGTHS[0]:
        return False
    return (
        all(len(word) == length and not word.strip(HEX) for word, length in zip(words[::2], _UUID_LENGTHS, strict=True))
        and words[1::2] == ["-"] * 4
    )


def _fold_word(word: str) -> str:
    """Return a word of letters and digits with a placeholder for each varying part."""
    if word.isalpha():
        return word
    if not word.strip(DIGITS):
        return "<n>"
    runs = _RUNS.findall(word)
    if len(runs) > _MOST_RUNS:
        # The first letters may be a name before the hexadecimal digits.
        return (runs[0].rstrip(_HEX_LETTERS) if runs[0].isalpha() else "") + "<hex>"
    is_date = any(run.lower() in _MONTHS for run in runs)
    if len(word) >= _LEAST_HEX and not word.strip(HEX) and not is_date:
        return "<hex>"
    return "".join("<n>" if run.isdigit() else "<month>" if run.lower() in _MONTHS else run for run in runs)
