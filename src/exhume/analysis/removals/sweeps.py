"""Removals of several groups at one instant: the expiry task with a new retention, not a request for each group."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from exhume.analysis.removals.causes import WINDOWS, KnownRetention

#: A sweep removes offsets of at least this many groups.
LEAST_SWEPT_GROUPS = 3


class AgedRemoval(NamedTuple):
    """Offsets of one group that were removed together, and whose age alone decides whether they were due."""

    timestamp_ms: int
    group: str
    topics: frozenset[str]
    ages_ms: tuple[int, ...]


class IdleGroup(NamedTuple):
    """A group without members that has offsets at the end of its log.

    `since_ms` is the time of its last record, None without one; `oldest_ms` that of its oldest commit.
    """

    group: str
    since_ms: int | None
    oldest_ms: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """Offsets of several groups that were removed at one instant, younger than the retention.

    `is_of_one_age` says that all were of the same age, `kept` names the groups that kept older offsets. `is_decided` is True if a shorter
    retention explains it better than requests do.
    """

    first_ms: int
    last_ms: int
    groups: frozenset[str]
    offsets: int
    least_age_ms: int
    most_age_ms: int
    kept: tuple[str, ...]
    is_decided: bool

    @property
    def is_of_one_age(self) -> bool:
        return self.most_age_ms - self.least_age_ms <= WINDOWS.next_pass_ms


class Sweeps:
    """The sweeps of all logs, in the order of time."""

    def __init__(self, sweeps: Iterable[Sweep] = ()) -> None:
        self.all: Sequence[Sweep] = sorted(sweeps, key=lambda each: each.first_ms)

    def of(self, group: str, timestamp_ms: int | None) -> Sweep | None:
        """Return the sweep that removed offsets of this group at this time; None if none did."""
        if timestamp_ms is None:
            return None
        place = bisect_right(self.all, timestamp_ms, key=lambda each: each.first_ms) - 1
        found = self.all[place] if place >= 0 else None
        return found if found is not None and timestamp_ms <= found.last_ms and group in found.groups else None


def sweeps_of(aged: Iterable[AgedRemoval], idle: Sequence[IdleGroup], retention: KnownRetention) -> Sweeps:
    """Return the sweeps among these removals of all logs. `idle` are the groups that kept offsets."""
    early = (each for each in aged if all(retention.late_ms(age_ms) is None for age_ms in each.ages_ms))
    return Sweeps(_sweep(instant, idle, retention) for instant in _at_once(early) if _is_sweep(instant))


def _at_once(removed: Iterable[AgedRemoval]) -> Iterator[list[AgedRemoval]]:
    """Yield these removals, those of one instant together, in the order of time."""
    instant: list[AgedRemoval] = []
    for each in sorted(removed, key=lambda each: each.timestamp_ms):
        if instant and each.timestamp_ms - instant[-1].timestamp_ms > WINDOWS.together_ms:
            yield instant
            instant = []
        instant.append(each)
    if instant:
        yield instant


def _is_sweep(instant: Sequence[AgedRemoval]) -> bool:
    """Return True if these removals of one instant are of several groups and topics."""
    topics = frozenset[str]().union(*(each.topics for each in instant))
    return len(topics) > 1 and len({each.group for each in instant}) >= LEAST_SWEPT_GROUPS


def _sweep(instant: Sequence[AgedRemoval], idle: Sequence[IdleGroup], retention: KnownRetention) -> Sweep:
    ages_ms = [age_ms for each in instant for age_ms in each.ages_ms]
    least_ms, most_ms = min(ages_ms), max(ages_ms)
    is_of_one_age = most_ms - least_ms <= WINDOWS.next_pass_ms
    before_ms = instant[0].timestamp_ms - least_ms
    kept = () if is_of_one_age else _older(idle, before_ms)
    return Sweep(
        first_ms=instant[0].timestamp_ms,
        last_ms=instant[-1].timestamp_ms,
        groups=frozenset(each.group for each in instant),
        offsets=len(ages_ms),
        least_age_ms=least_ms,
        most_age_ms=most_ms,
        kept=kept,
        is_decided=not kept and (retention.given_ms is not None or not is_of_one_age),
    )


def _older(idle: Sequence[IdleGroup], before_ms: int) -> tuple[str, ...]:
    """Return the groups that kept offsets of a longer age than the youngest removed one."""
    return tuple(
        sorted({each.group for each in idle if each.oldest_ms < before_ms and (each.since_ms is None or each.since_ms < before_ms)})
    )
