r"""Commands to type next, exactly.

Names come from the evidence and may hold anything. In a command they stand in quotes that every shell of today takes (`$'…'` with octal
escapes, as in bash, zsh and ksh, where a character does not show), so that the line is harmless to look at and still names what it says.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exhume.replay.moment import Clock

#: Letters by their category that leave nothing on the screen.
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0"


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand of exhume with what comes behind the places it reads. `purpose` says what it shows, as an order."""

    subcommand: str
    arguments: tuple[str, ...]
    purpose: str

    def line(self, places: Sequence[str]) -> str | None:
        """What to type; None where no command line can carry it (a name with the character NUL)."""
        words = ["exhume", self.subcommand, *places, *self.arguments]
        return None if any("\0" in word for word in words) else " ".join(map(shell_word, words))


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands about one group, as of a moment, by one release. `moment` are options that take other commands to the same moment."""

    group: str
    offsets_partition: int | None = None
    release: str | None = None
    moment: tuple[str, ...] = ()

    def of(self, subcommand: str, *arguments: str, purpose: str) -> Command:
        """A command about the group."""
        return Command(subcommand, ("--group", self.group, *arguments), purpose)

    def by_release(self, subcommand: str, *arguments: str, purpose: str) -> Command:
        """A command about the group, by the rules of the same release."""
        return self.of(subcommand, *(("--release", self.release) if self.release else ()), *arguments, purpose=purpose)


def moment_arguments(at_offset: int | Mapping[int, int] | None, at_time_ms: int | None, clock: Clock | None) -> tuple[str, ...]:
    """The options that ask for this moment; none for the end."""
    if at_time_ms is not None:
        return ("--at-time", str(at_time_ms), *(() if clock is None else ("--clock", clock)))
    if isinstance(at_offset, Mapping):
        return tuple(word for number, offset in at_offset.items() for word in ("--at-offset", f"{number}:{offset}"))
    return () if at_offset is None else ("--at-offset", str(at_offset))


def shell_word(word: str) -> str:
    """This word as a shell reads it back, with nothing in it that a terminal would obey or an eye would miss."""
    if "\\" not in word and all(map(_shows, word)):
        return shlex.quote(word)
    return "$'" + "".join(map(_escaped, word)) + "'"


def _shows(character: str) -> bool:
    return (character.isascii() and character.isprintable()) or (character.isalnum() and character not in _BLANK_LETTERS)


def _escaped(character: str) -> str:
    if _shows(character) and character not in "\\'":
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "replace"))
