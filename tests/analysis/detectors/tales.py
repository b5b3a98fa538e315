"""Incidents that no entry of the catalogue was written for, and healthy groups: groups at work for hours, told second by second.

Each tale has its own kind of group, size, times and names. `expected` are the codes of which at least one has to be reported at `warn` or
above; a healthy tale expects none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

MINUTE, HOUR, DAY = 60, 3_600, 86_400

Offsets = dict[int, int]


class Tale:
    """Events of groups; `text` is their log, in the order of time."""

    def __init__(self) -> None:
        self._events: list[tuple[int, int, str]] = []

    def say(self, at: float, records: str) -> None:
        """Append these records at this second."""
        self._events.append((int(at), len(self._events), records))

    def text(self) -> str:
        """Return the story."""
        lines, offset = [], 0
        for at, _, records in sorted(self._events):
            days, seconds = divmod(at, DAY)
            lines.append(f"{offset} d{days} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02} {records}")
            offset += records.count(" | ") + 1
        return "\n".join(lines)

    def commit(self, at: float, group: str, topic: str, offsets: Mapping[int, int], details: str = "") -> None:
        """Commit these offsets by partition."""
        about = f" {{{details}}}" if details else ""
        self.say(at, " | ".join(f"OC {group} {topic}-{number} = {offset}{about}" for number, offset in offsets.items()))

    def work(
        self, group: str, topic: str, offsets: Offsets, start: float, end: float, *, every: float, rise: int, details: str = ""
    ) -> None:
        """Commit higher offsets again and again, and keep the last ones in `offsets`."""
        at, random = start, Random(f"{group} {topic} {start}")
        while at < end:
            for number in offsets:
                offsets[number] += random.randint(max(rise // 2, 1), max(rise * 3 // 2, 1))
            self.commit(at, group, topic, offsets, details)
            at += every

    def classic(self, at: float, group: str, generation: int, members: Iterable[str], how: str = "") -> None:
        """Write a generation of a classic group; without members it is empty."""
        listed = "; ".join(members)
        self.say(at, f"GM {group} gen={generation} {how} {{{listed}}}" if listed else f"GM {group} gen={generation} empty {how}".rstrip())


def shared(
    topic: str, count: int, members: Sequence[str], *, host: str = "10.0.0.", client: str = "app", topics: str | None = None
) -> list[str]:
    """Return these members with an even share of the partitions, each on a host of its own."""
    listed = []
    for place, member in enumerate(members):
        own = ",".join(str(number) for number in range(place, count, len(members)))
        address = host + str(place + 11) if host.endswith(".") else host
        listed.append(f"{member}@{address}/{client}: {topics or topic} → {topic + '-' + own if own else ''}".rstrip())
    return listed


def joined(*records: str) -> str:
    """Return these records as one batch."""
    return " | ".join(records)


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number}" for number in range(1, count + 1)]


@dataclass(frozen=True, slots=True)
class Told:
    """A log with its inputs, and the codes that have to be found."""

    text: str
    expected: frozenset[str] = frozenset()
    ends: Mapping[tuple[str, int], int] | None = None
    starts: Mapping[tuple[str, int], int] | None = None
    topics: Mapping[str, int] = field(default_factory=dict)
    retention: str | None = None


TALES: dict[str, Callable[[], Told]] = {}


def tale(*expected: str) -> Callable[[Callable[[Tale], Told | None]], Callable[[Tale], Told | None]]:
    """Add a tale with these codes; it returns its inputs, or None."""

    def add(tell: Callable[[Tale], Told | None]) -> Callable[[Tale], Told | None]:
        def told() -> Told:
            log = Tale()
            given = tell(log) or Told("")
            return Told(log.text(), frozenset(expected), given.ends, given.starts, given.topics, given.retention)

        TALES[tell.__name__] = told
        return tell

    return add


def given(
    ends: Mapping[tuple[str, int], int] | None = None,
    starts: Mapping[tuple[str, int], int] | None = None,
    topics: Mapping[str, int] | None = None,
    retention: str | None = None,
) -> Told:
    return Told("", frozenset(), ends, starts, topics or {}, retention)
