"""Which commits of transactions came to count, and when: staged commits against the markers of their producers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exhume.analysis.detectors.commit_rows import Flags
from exhume.analysis.detectors.following.columns import Column, Int64s
from exhume.analysis.detectors.record_places import from_the_lowest


@dataclass(frozen=True, slots=True)
class Markers:
    """End-transaction markers in log order, a column for each of their numbers."""

    offset: Int64s
    time: Int64s
    producer: Int64s
    is_commit: Flags


@dataclass(frozen=True, slots=True)
class Ended:
    """Places of staged commits: those that a COMMIT marker ended, those that an ABORT marker did, those that none did.

    `marker` is for each staged commit the place of its marker, of no meaning for open ones.
    """

    committed: Int64s
    aborted: Int64s
    open: Int64s
    marker: Int64s


def settle(rows: Int64s, markers: Markers) -> Ended:
    """Of these staged commits, in log order, which marker ended each: the first one of its producer behind it."""
    producers, offsets = rows[Column.PRODUCER], rows[Column.OFFSET]
    if not len(markers.offset):
        none = np.empty(0, np.int64)
        return Ended(none, none, np.arange(len(producers)), np.zeros(len(producers), np.int64))
    _, codes = np.unique(np.concatenate([producers, markers.producer]), return_inverse=True)
    span, (staged, marked) = from_the_lowest(len(codes), offsets, markers.offset)
    staged_at, marked_at = codes[: len(producers)] * span + staged, codes[len(producers) :] * span + marked
    order = np.argsort(marked_at, kind="stable")
    places = np.searchsorted(marked_at[order], staged_at)
    found = order[np.minimum(places, len(order) - 1)]
    is_ended = (places < len(order)) & (markers.producer[found] == producers)
    is_committed = is_ended & markers.is_commit[found]
    return Ended(np.flatnonzero(is_committed), np.flatnonzero(is_ended & ~is_committed), np.flatnonzero(~is_ended), found)
