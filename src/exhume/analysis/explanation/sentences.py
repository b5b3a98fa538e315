r"""Sentences and their evidence; numbers and names in words; and the commands that show more, exactly as a shell takes them.

Names come from the evidence and may hold any character. A command quotes them in the form that every shell of today takes (`$'…'` with
octal escapes, as in bash, zsh and ksh, for characters without a glyph), so the line is harmless to read and names the same thing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from exhume.durations import DAY_MS, HOUR_MS, MINUTE_MS
from exhume.findings import Confidence
from exhume.moments import Clock, Time, time_ms

#: Letters that leave nothing on the screen.
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._@#:/-]+")
_UNITS_MS = {"second": 1000, "minute": MINUTE_MS, "hour": HOUR_MS, "day": DAY_MS}
#: The number of ranges or topics that a sentence names; it counts the others.
_MOST_NAMED = 12


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


def moment_arguments(at_offset: int | Mapping[int, int] | None, at_time_ms: Time | None, clock: Clock | None) -> tuple[str, ...]:
    """Return the options that select this moment; none for the end of the log."""
    if at_time_ms is not None:
        return ("--at-time", str(time_ms(at_time_ms)), *(() if clock is None else ("--clock", clock)))
    if isinstance(at_offset, Mapping):
        return tuple(word for number, offset in at_offset.items() for word in ("--at-offset", f"{number}:{offset}"))
    return () if at_offset is None else ("--at-offset", str(at_offset))


def shell_word(word: str) -> str:
    """Return this word quoted for a shell, without characters that a terminal would obey or that a reader cannot see."""
    if "\\" not in word and ((word.isascii() and word.isprintable()) or all(map(_shows, word))):
        return shlex.quote(word)
    return "$'" + "".join(map(_escaped, word)) + "'"


def _shows(character: str) -> bool:
    return (character.isascii() and character.isprintable()) or (character.isalnum() and character not in _BLANK_LETTERS)


def _escaped(character: str) -> str:
    if _shows(character) and character not in "\\'":
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, the records that prove it, and a command that shows more of it.

    `records` are record offsets of the offsets partition of the page, in any order; empty where the absence of records, or the whole log,
    proves the sentence.
    """

    text: str
    records: tuple[int, ...] = ()
    confidence: Confidence = "proof"
    not_excluded: str | None = None
    next_command: Command | None = None


def records_of(rows: Iterable[Mapping[str, object]], *names: str) -> tuple[int, ...]:
    """Return the record offsets in these columns (default: `record_offset`) of these rows, without nulls."""
    found = (row[name] for row in rows for name in names or ("record_offset",))
    return tuple(offset for offset in found if isinstance(offset, int))


def named(name: str | None) -> str:
    """Return a name for a sentence: in quotes unless it is a plain word. The renderer escapes it."""
    if name is None:
        return "a name that cannot be read"
    return name if _PLAIN_NAME.fullmatch(name) else f'"{name}"'


def listed(parts: Sequence[str], *, most: int = _MOST_NAMED) -> str:
    """Return `a`, `a and b`, `a, b and c`; parts after `most` are counted."""
    if len(parts) > most:
        return f"{', '.join(parts[:most])} and {len(parts) - most} more"
    return " and ".join(parts) if len(parts) < 3 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def numbers(partitions: Iterable[int]) -> str:
    """Return partitions as ranges: `0-2, 5`."""
    ordered = sorted(set(partitions))
    breaks = [(before, after) for before, after in pairwise(ordered) if after != before + 1]
    starts, ends = [*ordered[:1], *(after for _, after in breaks)], [*(before for before, _ in breaks), *ordered[-1:]]
    runs = [str(first) if first == last else f"{first}-{last}" for first, last in zip(starts, ends, strict=True)]
    return ", ".join(runs) if len(runs) <= _MOST_NAMED else f"{', '.join(runs[:_MOST_NAMED])} and more, {len(ordered)} in all"


def partitions(keys: Iterable[tuple[str, int]]) -> str:
    """Return partitions of topics: `orders 0-5 and payments 0`."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in keys:
        by_topic.setdefault(topic, []).append(partition)
    return listed([f"{named(topic)} {numbers(by_topic[topic])}" for topic in sorted(by_topic)])


def often(count: int, length_ms: float) -> str:
    """Return a rate in the smallest unit with at least one: `12.0 a minute`."""
    unit = next((unit for unit, unit_ms in _UNITS_MS.items() if count * unit_ms >= length_ms), "day")
    return f"{count * _UNITS_MS[unit] / length_ms:.1f} a {unit}"
