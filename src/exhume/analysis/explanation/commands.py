r"""Commands to run next, exactly as a shell takes them.

Names come from the evidence and may hold any character. The command quotes them in the form that every shell of today takes (`$'…'` with
octal escapes, as in bash, zsh and ksh, for characters without a glyph), so the line is harmless to read and names the same thing.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exhume.replay.moment import Clock

#: Letters that leave nothing on the screen.
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0"


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand of exhume with the arguments after the places that it reads. `purpose` says what it shows, in the imperative."""

    subcommand: str
    arguments: tuple[str, ...]
    purpose: str

    def line(self, places: Sequence[str]) -> str | None:
        """Return the command line; None if no command line can carry it (a name with the character NUL)."""
        words = ["exhume", self.subcommand, *places, *self.arguments]
        return None if any("\0" in word for word in words) else " ".join(map(shell_word, words))


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands about one group at a moment, for one release. `moment` holds the options that select the moment in other commands."""

    group: str
    offsets_partition: int | None = None
    release: str | None = None
    moment: tuple[str, ...] = ()

    def of(self, subcommand: str, *arguments: str, purpose: str) -> Command:
        """Return a command about the group."""
        return Command(subcommand, ("--group", self.group, *arguments), purpose)

    def by_release(self, subcommand: str, *arguments: str, purpose: str) -> Command:
        """Return a command about the group, for the same release."""
        return self.of(subcommand, *(("--release", self.release) if self.release else ()), *arguments, purpose=purpose)


def moment_arguments(at_offset: int | Mapping[int, int] | None, at_time_ms: int | None, clock: Clock | None) -> tuple[str, ...]:
    """Return the options that select this moment; none for the end of the log."""
    if at_time_ms is not None:
        return ("--at-time", str(at_time_ms), *(() if clock is None else ("--clock", clock)))
    if isinstance(at_offset, Mapping):
        return tuple(word for number, offset in at_offset.items() for word in ("--at-offset", f"{number}:{offset}"))
    return () if at_offset is None else ("--at-offset", str(at_offset))


def shell_word(word: str) -> str:
    """Return this word quoted for a shell, without characters that a terminal would obey or that a reader cannot see."""
    if "\\" not in word and all(map(_shows, word)):
        return shlex.quote(word)
    return "$'" + "".join(map(_escaped, word)) + "'"


def _shows(character: str) -> bool:
    return (character.isascii() and character.isprintable()) or (character.isalnum() and character not in _BLANK_LETTERS)


def _escaped(character: str) -> str:
    if _shows(character) and character not in "\\'":
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "replace"))
