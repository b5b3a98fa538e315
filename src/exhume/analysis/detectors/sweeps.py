"""Removals of several groups at one instant: the expiry task with a new retention, not a request for each group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from exhume.analysis.detectors.removal_evidence import JudgedOffset, JudgedRemoval
from exhume.analysis.removals.causes import WINDOWS

#: A sweep removes offsets of at least this many groups.
LEAST_SWEPT_GROUPS = 3

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Removed(Generic[_Item]):
    """A removal that a shorter retention explains, as a detector describes it."""

    timestamp_ms: int
    group: str
    item: _Item


def is_early(removed: JudgedOffset) -> bool:
    """Return True if its age decides, and it was younger than the retention, but not younger than any."""
    age, value = removed.judgement.age, removed.removal.value
    is_by_age = value is None or (value.expire_timestamp_ms or 0) <= 0
    is_young = age is not None and age.late_ms is None and age.age_ms >= WINDOWS.least_retention_ms
    return removed.judgement.cause != "expired" and is_by_age and is_young


def may_be_swept(together: JudgedRemoval, offsets: Sequence[JudgedOffset]) -> bool:
    """Return True if a sweep may have removed these offsets."""
    return bool(offsets) and all(map(is_early, offsets)) and together.is_wide()


def at_once(removed: Iterable[Removed[_Item]]) -> Iterator[list[Removed[_Item]]]:
    """Yield these removals, those of one instant together, in the order of time."""
    instant: list[Removed[_Item]] = []
    for each in sorted(removed, key=lambda each: each.timestamp_ms):
        if instant and each.timestamp_ms - instant[-1].timestamp_ms > WINDOWS.together_ms:
            yield instant
            instant = []
        instant.append(each)
    if instant:
        yield instant


def is_sweep(instant: Sequence[Removed[_Item]]) -> bool:
    """Return True if these removals of one instant are of several groups."""
    return len({each.group for each in instant}) >= LEAST_SWEPT_GROUPS
