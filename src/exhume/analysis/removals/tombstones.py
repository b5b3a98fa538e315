"""The times at which offsets of all groups of all logs were removed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from exhume.analysis.removals.causes import WINDOWS


class OffsetTombstone(NamedTuple):
    """A tombstone of an offset, of any group."""

    timestamp_ms: int
    group: str
    topic: str
    offsets_partition: int | None
    record_offset: int
    #: The same append removed the group itself.
    is_with_group: bool = False


@dataclass(frozen=True, slots=True)
class RemovalMoment:
    """The time of a tombstone."""

    group: str
    topic: str
    offsets_partition: int | None
    timestamp_ms: int


class OffsetTombstones:
    """Tombstones of offsets, sorted by time.

    One second may have many thousands: counts answer whether there is one, without a look at each.
    """

    def __init__(self, tombstones: Iterable[OffsetTombstone] = ()) -> None:
        self.all: Sequence[OffsetTombstone] = sorted(tombstones, key=_time)

    def __getstate__(self) -> dict[str, Sequence[OffsetTombstone]]:
        return {"all": self.all}

    def of_same_topic(self, moment: RemovalMoment, *, is_one_act: bool = False, has_group_stayed: bool = False) -> OffsetTombstone | None:
        """Return a tombstone of the topic for another group: of the same removal, or by another coordinator at about that time.

        One coordinator removes the offsets of a topic from all of its groups at once. `is_one_act` requires that of other coordinators too;
        `has_group_stayed` requires a group that was not removed itself.
        """
        here = moment.offsets_partition
        by_place = self._by_topic.get((moment.topic, has_group_stayed), {})
        for place in (here, *(each for each in by_place if each not in (here, _ANYWHERE))):
            within_ms = WINDOWS.together_ms if place == here or is_one_act else WINDOWS.topic_deletion_ms
            found = _within(by_place.get(place, ()), moment, within_ms)
            first = next((each for each in found if each.group != moment.group), None)
            if first is not None:
                return first
        return None

    def of_other_topics(self, moment: RemovalMoment) -> OffsetTombstone | None:
        """Return a tombstone of another topic and group from the same removal; from this offsets partition if there is one."""
        within_ms = WINDOWS.together_ms
        for place in (moment.offsets_partition, _ANYWHERE):
            listed = self._by_place.get(place, ())
            of_topic = _count(self._by_topic.get((moment.topic, False), {}).get(place, ()), moment, within_ms)
            own = sum(
                each.topic != moment.topic and place in (_ANYWHERE, each.offsets_partition)
                for each in _within(self._by_group.get(moment.group, ()), moment, within_ms)
            )
            if _count(listed, moment, within_ms) > of_topic + own:
                found = _within(listed, moment, within_ms)
                return next(each for each in found if each.group != moment.group and each.topic != moment.topic)
        return None

    @cached_property
    def _by_place(self) -> dict[object, Sequence[OffsetTombstone]]:
        grouped: defaultdict[object, list[OffsetTombstone]] = defaultdict(list)
        for each in self.all:
            grouped[each.offsets_partition].append(each)
        return {**grouped, _ANYWHERE: self.all}

    @cached_property
    def _by_topic(self) -> dict[tuple[str, bool], dict[object, list[OffsetTombstone]]]:
        """Return tombstones by topic, all or only those of groups that stayed, then by offsets partition."""
        grouped: defaultdict[tuple[str, bool], defaultdict[object, list[OffsetTombstone]]] = defaultdict(lambda: defaultdict(list))
        for each in self.all:
            for only_stayed in (False, True) if not each.is_with_group else (False,):
                grouped[each.topic, only_stayed][each.offsets_partition].append(each)
                grouped[each.topic, only_stayed][_ANYWHERE].append(each)
        return {name: dict(by_place) for name, by_place in grouped.items()}

    @cached_property
    def _by_group(self) -> dict[str, Sequence[OffsetTombstone]]:
        grouped: defaultdict[str, list[OffsetTombstone]] = defaultdict(list)
        for each in self.all:
            grouped[each.group].append(each)
        return dict(grouped)


#: Matches every offsets partition. None is a partition whose number is not known.
_ANYWHERE = object()


def _ends(tombstones: Sequence[OffsetTombstone], moment: RemovalMoment, within_ms: int) -> tuple[int, int]:
    first = bisect_left(tombstones, moment.timestamp_ms - within_ms, key=_time)
    return first, bisect_right(tombstones, moment.timestamp_ms + within_ms, lo=first, key=_time)


def _count(tombstones: Sequence[OffsetTombstone], moment: RemovalMoment, within_ms: int) -> int:
    first, end = _ends(tombstones, moment, within_ms)
    return end - first


def _within(tombstones: Sequence[OffsetTombstone], moment: RemovalMoment, within_ms: int) -> Iterator[OffsetTombstone]:
    first, end = _ends(tombstones, moment, within_ms)
    return map(tombstones.__getitem__, range(first, end))


def _time(tombstone: OffsetTombstone) -> int:
    return tombstone.timestamp_ms
