r"""Text from the evidence, made harmless for a terminal.

A client chooses the names of groups, topics, members and clients. They may hold escape sequences, marks that change the reading direction,
or characters without width that make two names look alike. `printable` shows all of these as visible escapes.
"""

from __future__ import annotations

import re

_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\\": r"\\"}

# Characters that count as printable letters, marks or symbols and yet leave nothing on the screen (Unicode's
# Default_Ignorable_Code_Point beyond the format characters, and the blank Braille pattern).
_INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
_INVISIBLE_PATTERN = re.compile(f"[{_INVISIBLE}]")
_READS_AS_ESCAPE = re.compile(r"\\[\\nrtxuU]")


def printable(text: str) -> str:
    r"""Escape characters that a reader cannot see or that control a terminal: `\n`, `\x1b`, `\u202e`.

    These are controls, format characters (bidirectional marks, zero width), line and paragraph separators, surrogates, private and
    unassigned code points, and all spaces except U+0020. Two different texts always give two different results: backslashes are doubled if
    the result could be mistaken for an escape.
    """
    if text.isprintable() and not _INVISIBLE_PATTERN.search(text) and not _READS_AS_ESCAPE.search(text):
        return text
    return "".join(_SHORT.get(character) or _visible(character) for character in text)


def is_visible(character: str) -> bool:
    """True when this character shows on a screen as itself."""
    return character.isprintable() and not _INVISIBLE_PATTERN.match(character)


def _visible(character: str) -> str:
    if is_visible(character):
        return character
    code_point = ord(character)
    if code_point <= 0xFF:
        return f"\\x{code_point:02x}"
    return f"\\u{code_point:04x}" if code_point <= 0xFFFF else f"\\U{code_point:08x}"
